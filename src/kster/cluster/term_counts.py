"""What a replica remembers of how common terms are, so that it need not ask before every search.

It may be outdated: whoever is asked by it compares it with what is there, and says so where it differs. A
term that nobody has asked about is taken for one that no source has: most new words are names and numbers.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kster.memory.sources.scoring import Frequencies, terms_in

MOST_TERMS = 1 << 18  # of one place; about 30 MB

Place = tuple[str, tuple[str, ...]]  # a shard, and a memory's directories there


class Counts(NamedTuple):
    """How much a memory has in some places, and how common the terms of some texts are there."""

    entries: int
    frequencies: Sequence[Frequencies]  # of each text

    def same_as(self, other: Counts) -> bool:
        return self.entries == other.entries and all(
            own.same_as(its) for own, its in zip(self.frequencies, other.frequencies, strict=True)
        )


def sum_of(frequencies: Iterable[Frequencies]) -> Frequencies:
    first, *others = frequencies
    return sum(others, first)


def total_of(counts: Sequence[Counts]) -> Counts:
    each = zip(*(one.frequencies for one in counts), strict=True)
    return Counts(sum(one.entries for one in counts), [sum_of(of_text) for of_text in each])


class TermCounts:
    """For each place what it last said; for use by several threads."""

    def __init__(self) -> None:
        self._sizes: dict[Place, tuple[int, int, int]] = {}  # entries, sources, terms of all sources
        self._having: dict[Place, dict[int, float]] = {}  # sources that have a term
        self._lock = threading.Lock()

    def of(self, place: Place, texts: Sequence[str]) -> Counts | None:
        """None where it was never asked."""
        with self._lock:
            if place not in self._sizes:
                return None
            (entries, sources, terms), having = self._sizes[place], self._having[place]
            counts = [[having.get(term, 0.0) for term in _terms(text)] for text in texts]
        return Counts(entries, [Frequencies(sources, terms, np.array(own, np.float64)) for own in counts])

    def learn(self, place: Place, texts: Sequence[str], counts: Counts) -> None:
        with self._lock:
            having = self._having.setdefault(place, {})
            if len(having) > MOST_TERMS:
                having.clear()
            for text, frequencies in zip(texts, counts.frequencies, strict=True):
                having.update(zip(_terms(text), frequencies.having.tolist(), strict=True))
                self._sizes[place] = (counts.entries, frequencies.sources, frequencies.terms)


def _terms(text: str) -> list[int]:
    terms: npt.NDArray[np.uint64] = terms_in(text)
    own: list[int] = terms.tolist()
    return own
