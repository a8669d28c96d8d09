"""The sets of near-duplicates, taught words and corrections are sound; the benchmark judges as they say."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

import pytest

from facts import has, is_right, read

BOTH = pytest.mark.parametrize("ending", ["", "_fresh"])


@BOTH
def test_near_duplicates_of_every_kind_differ_from_what_is_taught(ending: str) -> None:
    rows = read(f"near_duplicates{ending}.tsv")
    kinds = ("number", "negation", "name", "noun", "date", "unit")
    assert Counter(row["kind"] for row in rows) == dict.fromkeys(kinds, 25)
    assert len({row["source"] for row in rows} | {row["taught_source"] for row in rows}) == 300
    for row in rows:
        assert not is_right(row, row["taught_target"]), row
        assert has(row["taught_target"], row["shared"]), row


@BOTH
def test_reframed_sentences_differ_from_what_is_taught(ending: str) -> None:
    rows = read(f"reframed{ending}.tsv")
    assert (
        len(rows) == len({row["source"] for row in rows} | {row["taught_source"] for row in rows}) / 2 == 20
    )
    for row in rows:
        assert any(has(row["taught_target"], word) for word in row["must_not"].split(";")), row
        assert not is_right(row, row["taught_target"]), row


@BOTH
def test_taught_words_are_in_what_is_taught(ending: str) -> None:
    rows = read(f"taught_words{ending}.tsv")
    assert len(rows) == (30 if ending else 40)
    assert all(is_right(row, row["taught_target"]) for row in rows)


@BOTH
def test_corrections_contradict_what_was_taught_first(ending: str) -> None:
    rows = read(f"corrections{ending}.tsv")
    assert len(rows) >= 10
    assert all(is_right(row, row["second_target"]) for row in rows)
    assert not any(is_right(row, row["first_target"]) for row in rows)


def test_words_may_have_endings_but_are_not_parts_of_others() -> None:
    assert has("unter den Bäumen", "Bäume")
    assert has("40 g Mehl", "40 g")
    assert not has("40 kg Mehl", "g")
    assert not has("Der Kranich fliegt", "Kran")
    assert not has("im Jahr 1912", "12")
