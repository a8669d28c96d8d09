"""How often short strings of user interfaces are told to be English or German, and what it costs.

python benchmarks/language_identification.py   # lingua is compared where it is installed
"""

from __future__ import annotations

import csv
import platform
import resource
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

from kster.text.detection import Detector

STRINGS = Path(__file__).parents[1] / "tests/text/ui_strings.tsv"
TWO = ["de", "en"]
MANY = ["cs", "da", "de", "en", "es", "fi", "fr", "hu", "it", "nl", "pl", "pt", "ro", "sv", "tr"]


def main() -> None:
    with STRINGS.open(encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines, delimiter="\t"))
    items = [(row[code], code) for code in TWO for row in rows]
    print(f"{len(items)} strings, Python {platform.python_version()}, py3langid {version('py3langid')}")
    for candidates in (TWO, MANY):
        detector = Detector(candidates)
        measure(f"py3langid, {len(candidates)} languages", items, lambda text: detector.best(text)[0])  # noqa: B023
    try:
        from lingua import IsoCode639_1, LanguageDetectorBuilder
    except ImportError:
        return
    for candidates in (TWO, MANY):
        codes = [getattr(IsoCode639_1, code.upper()) for code in candidates]
        lingua = LanguageDetectorBuilder.from_iso_codes_639_1(*codes).build()

        def best(text: str) -> str:
            found = lingua.detect_language_of(text)  # noqa: B023
            return found.iso_code_639_1.name.lower() if found else ""

        measure(f"lingua {version('lingua-language-detector')}, {len(candidates)} languages", items, best)


def measure(name: str, items: list[tuple[str, str]], best: Callable[[str], str]) -> None:
    best("warm")
    began = time.perf_counter()
    right = sum(best(text) == code for text, code in items)
    each = (time.perf_counter() - began) / len(items)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"{name:36} {right / len(items):6.1%} right, {1e6 * each:5.0f} µs each, {memory} MB at most so far")


if __name__ == "__main__":
    main()
