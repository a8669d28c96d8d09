"""The edit distance by bits is that of the table everybody knows."""

from __future__ import annotations

import random

import pytest

from kster.memory.sources.matching import edit_distance


def by_table(first: list[str], second: list[str]) -> int:
    row = list(range(len(second) + 1))
    for i, token in enumerate(first, 1):
        above, row = row, [i]
        for j, other in enumerate(second, 1):
            row.append(min(above[j - 1] + (token != other), above[j] + 1, row[j - 1] + 1))
    return row[-1]


@pytest.mark.parametrize(
    ("first", "second", "distance"),
    [
        ("", "", 0),
        ("abc", "", 3),
        ("", "ab", 2),
        ("kitten", "sitting", 3),
        ("abc", "abc", 0),
        ("ab", "ba", 2),
    ],
)
def test_distances_by_hand(first: str, second: str, distance: int) -> None:
    assert edit_distance(first, second) == distance


def test_distances_are_those_of_the_table() -> None:
    chance = random.Random(1)
    for longest in (3, 8, 40, 150):  # also longer than a machine word
        for _ in range(60):
            pair = [[chance.choice("abcd") for _ in range(chance.randrange(longest + 1))] for _ in range(2)]
            assert edit_distance(*pair) == by_table(*pair)
