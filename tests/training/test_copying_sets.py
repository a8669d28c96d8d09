"""The six sets of things to be copied are sound, and the benchmark counts what they say."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

from copying import SETS, Line, lost, occurrences, read

FILES = sorted(SETS.glob("*.tsv"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_set_has_a_hundred_lines_whose_items_stand_on_both_sides(path: Path) -> None:
    lines = read(path)
    assert len(lines) == len({line.english for line in lines}) == 100
    for line in lines:
        for item in line.kept:
            assert occurrences(item, line.english), (line, item)
            assert occurrences(item, line.german), (line, item)
        assert line.kept or line.english.isupper()
        assert not lost(line, line.english, line.german, line.german)
        assert not lost(line, line.german, line.english, line.english)


def test_there_are_six_sets() -> None:
    assert [path.stem for path in FILES] == [
        "addresses",
        "capitals",
        "lists",
        "numbers",
        "placeholders",
        "ui_strings",
    ]


def test_what_is_missing_doubled_or_part_of_something_longer_is_lost() -> None:
    line = Line("{0} of 12", "{0} von 12", ("{0}", "12"))
    assert lost(line, line.english, line.german, "{0} von 12") == []
    assert lost(line, line.english, line.german, "{ 0} von 112") == ["{0}", "12"]
    assert lost(line, line.english, line.german, "{0} {0} von 12") == ["{0}"]
    assert lost(Line("STOP", "HALT", ()), "STOP", "HALT", "Halt") == ["capitals"]
