"""What `kster memory check` finds in a memory with seeded errors, and what it lists besides.

python benchmarks/memory_cleaning.py FOLDER_OF_CORPORA docs_ms/train it/train …

A memory is made of real pairs whose sources differ in more than case and punctuation. In 1.5 % of them each,
an error of one kind is seeded. It counts as found when its segment is listed, for whatever reason. All else
that is listed counts as false; since real pairs have errors of their own, `--show N` prints some of it.
"""

from __future__ import annotations

import argparse
import random
import re
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from corpora import pairs_of
from kster.memory.checks import KINDS, Finding, findings
from kster.memory.segment import Segment
from kster.memory.sources.words import tokens_of
from machine import describe

Text = tuple[str, str]
FOREIGN = Path(__file__).parents[1] / "tests/data/other_languages.tsv"
PLACEHOLDERS = ("%s", "{0}", "{name}", "<br>", "<b>", "%1$d", "${user}")


class Seeder:
    """Spoils pairs; each method returns None for a pair that has nothing to spoil."""

    def __init__(self, pairs: list[Text], chance: random.Random) -> None:
        self.pairs, self.chance = pairs, chance
        lines = FOREIGN.read_text(encoding="utf-8").splitlines()
        self.foreign = [line.split("\t")[1] for line in lines]

    def numbers(self, source: str, target: str) -> Text | None:
        """A digit of the target becomes another, or a number is left out."""
        found = list(re.finditer(r"\d+", target))
        if not found or not re.search(r"\d", source):
            return None
        number = self.chance.choice(found)
        if self.chance.random() < 0.25:
            changed = ""
        else:
            at = self.chance.randrange(len(number[0]))
            digit = self.chance.choice([d for d in "123456789" if d != number[0][at]])
            changed = number[0][:at] + digit + number[0][at + 1 :]
        return source, target[: number.start()] + changed + target[number.end() :]

    def codes(self, source: str, target: str) -> Text | None:
        """A placeholder or tag that the target has lost."""
        words = source.split(" ")
        words.insert(self.chance.randrange(len(words) + 1), self.chance.choice(PLACEHOLDERS))
        return " ".join(words), target

    def empty(self, source: str, target: str) -> Text | None:
        return source, self.chance.choice(["-", "…", "???", ".", "--"])

    def copies(self, source: str, target: str) -> Text | None:
        return (source, source) if source != target else None

    def language(self, source: str, target: str) -> Text | None:
        """A target in a third language, one in the source's language, or the two sides swapped."""
        return self.chance.choice(
            [
                (source, self.chance.choice(self.foreign)),
                (source, self.chance.choice(self.pairs)[0]),
                (target, source),
            ]
        )

    def length(self, source: str, target: str) -> Text | None:
        """The first third of a target, or a target and that of another pair."""
        words = target.split(" ")
        if len(words) < 6:
            return None
        if self.chance.random() < 0.5:
            return source, " ".join(words[: len(words) // 3])
        return source, f"{target} {self.chance.choice(self.pairs)[1]}"

    def contradictions(self, source: str, target: str) -> Text | None:
        """An older translation that differs in a word."""
        words = target.split(" ")
        other = self.chance.choice(self.chance.choice(self.pairs)[1].split(" "))
        words[self.chance.randrange(len(words))] = other
        return source, " ".join(words)

    def duplicates(self, source: str, target: str) -> Text | None:
        """An older pair in another case, with other punctuation or white space."""
        how: Callable[[str], str] = self.chance.choice(
            [str.upper, str.lower, lambda text: text.rstrip(".") + " !", lambda text: f"  {text}"]
        )
        return (how(source), how(target)) if how(source) != source else None


def seeded(pairs: list[Text], share: float, seed: int) -> tuple[list[Segment], dict[int, str]]:
    """A dirty memory, and the kind of error of each segment that has one."""
    chance = random.Random(seed)
    seeder = Seeder(pairs, chance)
    order = chance.sample(range(len(pairs)), len(pairs))
    spoiled: dict[int, tuple[str, Text]] = {}
    for kind in KINDS:
        wanted = round(share * len(pairs))
        for i in list(order):
            if wanted and (changed := getattr(seeder, kind)(*pairs[i])) and changed != pairs[i]:
                spoiled[i] = kind, changed
                order.remove(i)
                wanted -= 1
    segments, kinds = [], {}
    for i, pair in enumerate(pairs):
        kind, changed = spoiled.get(i, ("", pair))
        if kind:
            kinds[len(segments) + 1] = kind
            segments.append(Segment(len(segments) + 1, *changed, ""))
        if not kind or kind in ("contradictions", "duplicates"):
            segments.append(Segment(len(segments) + 1, *pair, ""))
    return segments, kinds


def read(folder: Path, name: str, n: int, seed: int) -> list[Text]:
    """A sample of the pairs of a corpus, one of those whose sources have the same words."""
    pairs = [(pair.source, pair.target) for pair in pairs_of(folder, name, ("en", "de"))]
    random.Random(seed).shuffle(pairs)
    known: set[tuple[str, ...]] = set()
    kept = []
    for pair in pairs:
        words = tuple(token for token in tokens_of(pair[0]) if any(map(str.isalnum, token)))
        if words and words not in known:
            known.add(words)
            kept.append(pair)
        if len(kept) == n:
            break
    return kept


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("corpora", nargs="+")
    parser.add_argument("--pairs", type=int, default=5_000)
    parser.add_argument("--share", type=float, default=0.015, help="of each kind of error")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", type=int, default=0, help="so many that are listed without being seeded")
    options = parser.parse_args()
    print(describe(pairs=options.pairs, share=options.share, seed=options.seed))
    for name in options.corpora:
        pairs = read(options.folder, name, options.pairs, options.seed)
        segments, kinds = seeded(pairs, options.share, options.seed)
        began = time.perf_counter()
        found = list(findings(lambda: iter(segments), ("en", "de")))  # noqa: B023
        seconds = time.perf_counter() - began
        report(name, segments, kinds, found, seconds)
        others = [finding for finding in found if finding.segment.id not in kinds]
        for finding in random.Random(options.seed).sample(others, min(options.show, len(others))):
            segment = finding.segment
            print(
                f"  {finding.kind}: {finding.reason}\n    {segment.source[:300]}\n    {segment.target[:300]}"
            )


def report(
    name: str, segments: list[Segment], kinds: dict[int, str], found: list[Finding], seconds: float
) -> None:
    listed = {finding.segment.id for finding in found}
    right = listed & kinds.keys()
    print(
        f"\n{name}: {len(segments):,} segments, {len(kinds)} seeded errors, {len(listed)} listed, "
        f"{1e3 * seconds / len(segments):.2f} ms a segment\n"
        f"recall {len(right) / len(kinds):.3f}, precision {len(right) / len(listed):.3f} "
        f"with all {len(listed) - len(right)} others counted as false"
    )
    print("| kind | seeded | found | listed as it without being seeded |\n|---|---|---|---|")
    per_kind = Counter(kinds.values())
    hit = Counter(kinds[id] for id in right)
    besides = Counter(finding.kind for finding in found if finding.segment.id not in kinds)
    for kind in KINDS:
        print(f"| {kind} | {per_kind[kind]} | {hit[kind]} | {besides[kind]} |")


if __name__ == "__main__":
    main()
