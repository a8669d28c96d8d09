"""What do tags in a sentence cost its translation, and are they around the right words?

    python benchmarks/tags.py [--model models/en-de] [--examples examples] [--seed 1]

Puts `<b>` around one to three words of every held-out sentence of the example, or around a name that its
reference has, too. Translates the sentences with and without tags, with the example's memory, and prints BLEU
and chrF2 of both, tags taken away, and how many names came back between their tags.
"""

from __future__ import annotations

import argparse
import random
import re
import tempfile
from pathlib import Path

import sacrebleu

from kster import BaseModel, Memory, Translator
from machine import describe

TAGS = re.compile("</?b>")


def tagged(source: str, reference: str, rng: random.Random) -> tuple[str, str | None]:
    """The sentence with tags, and the name between them, if it is one."""
    words, other = source.split(), reference.split()
    names = [i for i, word in enumerate(words) if i and word in other and re.fullmatch(r"[A-Z]\w{2,}", word)]
    count = 1 if names else rng.randint(1, 3)
    at = rng.choice(names) if names else rng.randrange(1, max(2, len(words) - count))
    inner = " ".join(words[at : at + count])
    bare = inner.rstrip(".,;:!?")
    words[at : at + count] = [f"<b>{bare}</b>{inner[len(bare) :]}"]
    return " ".join(words), bare if names else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--model", default="models/en-de")
    parser.add_argument("--examples", type=Path, default=Path("examples"))
    parser.add_argument("--seed", type=int, default=1)
    wanted = parser.parse_args()
    rng = random.Random(wanted.seed)
    sources, references = (
        (wanted.examples / f"heldout.{language}").read_text(encoding="utf-8").splitlines()
        for language in ("en", "de")
    )
    pairs = [(s, r) for s, r in zip(sources, references, strict=True) if len(s.split()) >= 4]
    texts, names = zip(*(tagged(source, reference, rng) for source, reference in pairs), strict=True)
    model = BaseModel.load(wanted.model)
    print(describe(model=wanted.model, sentences=len(pairs), seed=wanted.seed), "\n")
    print("| | BLEU | chrF2 | repaired | names between their tags |\n|---|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as place, Memory.create(f"{place}/memory", model) as memory:
        memory.import_file(wanted.examples / "ombravella.tmx")
        for name, asked in (("without tags", [s for s, _ in pairs]), ("with tags", list(texts))):
            done = Translator(model).translate(asked, memory=memory)
            plain = [TAGS.sub("", own.text) for own in done]
            scores = [
                score(plain, [[reference for _, reference in pairs]]).score
                for score in (sacrebleu.corpus_bleu, sacrebleu.corpus_chrf)
            ]
            known = [(own.text, n) for own, n in zip(done, names, strict=True) if n and n in own.text]
            around = sum(bool(re.search(rf"<b>{n}\S*</b>", text)) for text, n in known)
            shown = f"{around} of {len(known)}" if name == "with tags" else ""
            repaired = sum(own.repaired for own in done)
            print(f"| {name} | {scores[0]:.1f} | {scores[1]:.1f} | {repaired} | {shown} |")


if __name__ == "__main__":
    main()
