"""Targets that are far longer or shorter than usual in this memory for sources of that length.

A target is expected to have c characters for each of its source, with a variance that grows with the length
(Gale and Church, 1993). Both are estimated by medians over the memory, so that outliers do not shift them.
"""

from __future__ import annotations

import math
from array import array
from statistics import median

from kster.memory.checks.pairs import without_codes

TOO_FAR = 4.0  # standard deviations
FEWEST = 50  # pairs without which there is nothing to compare with
SHORTEST = 8  # characters added to a length: a word more or less says nothing
_NORMAL = 0.6745  # the median of |x| where x is normal with variance 1


class LengthCheck:
    def __init__(self) -> None:
        self._lengths = (array("i"), array("i"))
        self._measure: tuple[float, float] | None = None

    def add(self, source: str, target: str) -> None:
        for column, text in zip(self._lengths, (source, target), strict=True):
            column.append(_length(text))

    def problem(self, source: str, target: str) -> str | None:
        if len(self._lengths[0]) < FEWEST:
            return None
        if self._measure is None:
            self._measure = self._learn()
        ratio, deviation = self._measure
        first, second = _length(source), _length(target)
        if abs(_distance(first, second, ratio)) <= TOO_FAR * deviation:
            return None
        return f"{second} characters for {first}; {round(ratio * first)} are usual"

    def _learn(self) -> tuple[float, float]:
        pairs = list(zip(*self._lengths, strict=True))
        ratio = median((second + SHORTEST) / (first + SHORTEST) for first, second in pairs)
        deviation = median(abs(_distance(first, second, ratio)) for first, second in pairs) / _NORMAL
        return ratio, max(deviation, 0.5)


def _distance(first: int, second: int, ratio: float) -> float:
    expected = ratio * (first + SHORTEST)
    return (second + SHORTEST - expected) / math.sqrt(max(expected, second + SHORTEST))


def _length(text: str) -> int:
    return len(without_codes(text).strip())
