"""What a plain model keeps of things that must be copied: placeholders, tags, numbers, names, addresses.

    python benchmarks/copying.py models/en-de models/de-en

Six sets of 100 lines (tests/data/copying), each line with what must stand in a translation as often as in the
reference. A source in capitals is to stay in capitals, which counts as one thing more. No memory, no
repair: the model alone. `--show` prints what was lost.
"""

from __future__ import annotations

import argparse
import csv
import re
from dataclasses import dataclass
from pathlib import Path

from kster import Translator
from machine import describe

SETS = Path(__file__).parents[1] / "tests" / "data" / "copying"


@dataclass(frozen=True)
class Line:
    """A sentence, its translation, and what both have in common."""

    english: str
    german: str
    kept: tuple[str, ...]

    def sides(self, language: str) -> tuple[str, str]:
        """(source, reference) of a translation from this language."""
        return (self.english, self.german) if language.startswith("en") else (self.german, self.english)


def read(path: Path) -> list[Line]:
    """The lines of a set; its first line names the columns."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        return [
            Line(row["english"], row["german"], tuple(filter(None, row["kept"].split(" ¦ ")))) for row in rows
        ]


def occurrences(item: str, text: str) -> int:
    """How often an item stands in a text; not inside a longer word or number."""
    before = r"(?<!\w)" if item[0].isalnum() else ""
    after = r"(?!\w)" if item[-1].isalnum() and item[0] != "\\" else ""
    return len(re.findall(before + re.escape(item) + after, text))


def lost(line: Line, source: str, reference: str, translation: str) -> list[str]:
    """What a translation does not have exactly as often as the reference."""
    missing = [i for i in line.kept if occurrences(i, translation) != occurrences(i, reference)]
    if source.isupper() and not translation.isupper():
        missing.append("capitals")
    return missing


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("models", nargs="+", help="from English into German, or the other way")
    parser.add_argument("--beam", type=int, default=4)
    parser.add_argument("--every", type=int, default=1, help="take every n-th line only")
    parser.add_argument("--show", action="store_true", help="print the translations that lost something")
    options = parser.parse_args()
    print(describe(beam=options.beam, every=options.every))
    for name in options.models:
        translator = Translator(name)
        language = translator.model.source_lang or "en"
        all_items = all_kept = 0
        for path in sorted(SETS.glob("*.tsv")):
            lines = read(path)[:: options.every]
            pairs = [line.sides(language) for line in lines]
            translations = translator.translate([source for source, _ in pairs], beam=options.beam)
            items = kept = whole = 0
            for line, (source, reference), made in zip(lines, pairs, translations, strict=True):
                missing = lost(line, source, reference, made.text)
                wanted = len(line.kept) + source.isupper()
                items, kept, whole = items + wanted, kept + wanted - len(missing), whole + (not missing)
                if missing and options.show:
                    print(f"  {path.stem}: {source} → {made.text}   lost: {', '.join(missing)}")
            all_items, all_kept = all_items + items, all_kept + kept
            shares = f"{kept / items:6.1%} of {items} items, {whole / len(lines):6.1%} of lines"
            print(f"{name}  {path.stem:13} {shares}")
        print(f"{name}  {'together':13} {all_kept / all_items:6.1%} of {all_items} items")


if __name__ == "__main__":
    main()
