"""Does a memory keep facts straight? Near-duplicates of what it was taught, taught words, corrections.

    python benchmarks/facts.py models/en-de                 # sentences that no number was chosen on
    python benchmarks/facts.py models/en-de --development
    python benchmarks/facts.py models/en-de --as-found      # the search's best hypotheses, whatever they say

All sets are in tests/data, those of the first kind as `*_fresh.tsv`:

- near_duplicates: a taught sentence with one word changed (a number, a negation, a name, a noun, a date, a
  unit). Right: the new word is there, the taught one is not. Shared: the taught translation's own word for
  the rest is taken over.
- reframed: another sentence of the same situation, with one of its facts changed ("Why does the scanner beep
  when the badge is lost?" after "The scanner beeps twice when the badge is invalid."). Right: as above.
- taught_words: the next sentence uses the word that one example taught.
- corrections: after a second, contradictory translation near-identical text follows it.
- negated: sentences that deny something, with the example memory, which has nothing to do with them. Right:
  their translations do, too.
- addressed: sentences that speak to their reader several times, with a memory that says "du", and one that
  says "Sie" (voices_memory.tsv). Right: in one voice, that of the memory.

The first four for the base model, a memory as it is (with the smoother that the model carries), and the same
memory fitted.
"""

from __future__ import annotations

import argparse
import csv
import re
import tempfile
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from kster import Memory, Pair, Translator
from kster.formats import read_pairs
from kster.smoothing import FitSettings, fit
from kster.text.negation import loses_negation
from kster.text.voice import Voice, is_mixed, lacks_verb, voices_in
from kster.translation import outputs
from kster.translation.taught_words import TaughtWords
from machine import describe

ROOT = Path(__file__).parents[1]
DATA = ROOT / "tests" / "data"
SYSTEMS = ("base", "unfitted", "fitted")
Row = dict[str, str]


def read(name: str) -> list[Row]:
    with (DATA / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def has(text: str, word: str) -> bool:
    """Whether a word stands in a text; a long one may have an ending ("Bäume" in "Bäumen")."""
    ending = r"\w{0,2}" if re.search(r"[^\W\d]{4}$", word) else ""
    return re.search(rf"(?<!\w){re.escape(word)}{ending}(?!\w)", text) is not None


def is_right(row: Row, text: str) -> bool:
    """Whether a translation has one of the words it must have, and none that it must not."""
    wanted, unwanted = row["must"].split("/"), (row.get("must_not") or "").split(";")
    return any(has(text, word) for word in wanted) and not any(has(text, word) for word in unwanted if word)


class Systems:
    """The base model, a memory of these pairs, and the same memory fitted."""

    def __init__(self, translator: Translator, pairs: Iterable[Pair], scratch: Path, steps: int) -> None:
        self.translator = translator
        self.memory = Memory.create(scratch, translator.model)
        for pair in pairs:
            self.memory.add(pair.source, pair.target)
        self.steps = steps

    def translations(self, sources: list[str]) -> dict[str, list[str]]:
        """By system; the memory is fitted in between."""
        made = {"base": self._translate(sources, None), "unfitted": self._translate(sources, self.memory)}
        fit(self.translator.model, self.memory, FitSettings(steps=self.steps))
        return {**made, "fitted": self._translate(sources, self.memory)}

    def _translate(self, sources: list[str], memory: Memory | None) -> list[str]:
        return [made.text for made in self.translator.translate(sources, memory=memory)]


def score(rows: list[Row], made: dict[str, list[str]], *, show: bool) -> None:
    """Print the share that is right, by kind where there are kinds, and how many take over the rest."""
    right: dict[tuple[str, str], list[bool]] = defaultdict(list)
    for system in SYSTEMS:
        for row, text in zip(rows, made[system], strict=True):
            good = is_right(row, text)
            right[row.get("kind", "all"), system].append(good)
            if "shared" in row:
                right["shared words", system].append(has(text, row["shared"]))
            if show and not good:
                print(f"  {system}: {row['source']} → {text}")
    for kind in dict.fromkeys(kind for kind, _ in right):
        shares = "   ".join(f"{sum(r) / len(r):6.1%}" for r in (right[kind, system] for system in SYSTEMS))
        print(f"  {kind:13} {shares}   of {len(right[kind, 'base'])}")
    if "kind" in rows[0]:
        totals = [sum(is_right(r, t) for r, t in zip(rows, made[s], strict=True)) for s in SYSTEMS]
        print(f"  {'all kinds':13} {'   '.join(f'{t / len(rows):6.1%}' for t in totals)}   of {len(rows)}")


def negations(translator: Translator, rows: list[Row], scratch: Path, *, show: bool) -> None:
    """Print how many sentences still deny something, without and with the example memory."""
    sources = [row["source"] for row in rows]
    pairs = [p for p in read_pairs(ROOT / "examples/ombravella.tmx", "en", "de") if isinstance(p, Pair)]
    memory = Memory.create(scratch, translator.model)
    memory.import_pairs(pairs)
    shares = []
    for used in (None, memory):
        made = translator.translate(sources, memory=used)
        kept = [not loses_negation(t.source, t.text, "en", "de") for t in made]
        shares.append(f"{sum(kept) / len(kept):6.1%}")
        if show:
            print(*(f"  {t.source} → {t.text}" for t, is_kept in zip(made, kept, strict=True) if not is_kept))
    print(f"  {'all':13} {'   '.join(shares)}   of {len(rows)}")


def voices(translator: Translator, rows: list[Row], scratch: Path, *, show: bool) -> None:
    """Print how many sentences mix voices, or one reader and several, how many speak in another than the
    memory's, and how many say "du" with a verb that does not go with it."""
    sources = [row["source"] for row in rows]
    wanted: dict[str, Voice | None] = {"base": None, "du": "less", "Sie": "more"}
    for name, voice in wanted.items():
        memory = None
        if voice is not None:
            memory = Memory.create(scratch / name, translator.model)
            for row in read("voices_memory.tsv"):
                memory.add(row["source"], row[name])
        made = translator.translate(sources, memory=memory)
        heard = [set() if is_mixed(t.text, t.source) else voices_in(t.text, t.source) for t in made]
        mixed = sum(is_mixed(t.text, t.source) for t in made)
        other = sum(len(own) == 1 and own != {voice} for own in heard) if voice else 0
        lacking = sum(lacks_verb(t.text, t.source) for t in made)
        print(
            f"  {name:13} mixed {mixed:3}   in the other voice {other:3}   du without its verb {lacking:3}   "
            f"of {len(rows)}"
        )
        if show:
            print(*(f"    {t.text}" for t, own in zip(made, heard, strict=True) if own != {voice}), sep="\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("model", help="from English into German")
    parser.add_argument("--steps", type=int, default=FitSettings().steps, help="of a fit")
    parser.add_argument("--development", action="store_true", help="the sets that the numbers were chosen on")
    parser.add_argument(
        "--as-found", action="store_true", help="without `translation/choice.py` and `taught_words.py`"
    )
    parser.add_argument("--show", action="store_true", help="print the translations that are not right")
    options = parser.parse_args()
    print(
        describe(
            model=options.model,
            steps=options.steps,
            development=options.development,
            as_found=options.as_found,
        )
    )
    translator = Translator(options.model)
    if options.as_found:
        outputs.chosen = lambda model, texts, found, *_: found
        TaughtWords.missing = lambda *_: {}  # type: ignore[method-assign]
    print(f"right                {'   '.join(f'{system:>8}' for system in SYSTEMS)}")
    ending = "" if options.development else "_fresh"
    with tempfile.TemporaryDirectory() as scratch:
        for name in ("near_duplicates", "reframed", "taught_words", "corrections"):
            rows = read(f"{name}{ending}.tsv")
            pairs = [Pair(r["taught_source"], r.get("first_target") or r["taught_target"]) for r in rows]
            pairs += [Pair(r["taught_source"], r["second_target"]) for r in rows if "second_target" in r]
            systems = Systems(translator, pairs, Path(scratch) / name, options.steps)
            print(name.replace("_", " "))
            score(rows, systems.translations([row["source"] for row in rows]), show=options.show)
        print("negations kept             base    example memory")
        negations(translator, read(f"negated{ending}.tsv"), Path(scratch) / "example", show=options.show)
        print("voices")
        voices(translator, read(f"addressed{ending}.tsv"), Path(scratch), show=options.show)


if __name__ == "__main__":
    main()
