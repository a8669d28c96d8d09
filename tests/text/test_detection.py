"""Telling languages: short strings, scripts, codes in any spelling, and texts without words."""

from __future__ import annotations

import csv
from pathlib import Path

from kster.text.detection import Detector

STRINGS = Path(__file__).parent / "ui_strings.tsv"


def test_short_strings_of_user_interfaces_are_told_apart() -> None:
    detector = Detector({"en", "de"})
    with STRINGS.open(encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines, delimiter="\t"))
    right = [detector.best(row[code])[0] == code for row in rows for code in ("en", "de")]
    assert sum(right) / len(right) > 0.9


def test_languages_keep_the_codes_they_were_given() -> None:
    detector = Detector({"eng_Latn", "deu_Latn", "zho_Hans"})
    assert detector.best("Bitte den Wassertank öffnen")[0] == "deu_Latn"
    assert detector.best("打开水箱的盖子")[0] == "zho_Hans"


def test_a_language_the_library_does_not_know_is_never_chosen() -> None:
    assert Detector({"en", "tlh"}).detect("Open the water tank") == [("en", 100.0), ("tlh", 0.0)]
    assert Detector({"tlh"}).detect("Open the water tank") == [("tlh", 100.0)]


def test_a_text_without_words_leaves_all_alike() -> None:
    assert Detector({"en", "de"}).detect("12 + 30 = 42 …") == [("de", 50.0), ("en", 50.0)]
