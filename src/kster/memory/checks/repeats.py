"""Sources that a memory has more than once, with targets that disagree or are nearly equal.

Segments in different contexts are there for a reason, and are not compared.
"""

from __future__ import annotations

from dataclasses import dataclass

from kster.memory.segment import Segment
from kster.memory.sources.words import folded, tokens_of


@dataclass(frozen=True, slots=True)
class Repeat:
    kind: str  # "contradictions" or "duplicates"
    reason: str
    other: int  # the newer segment


@dataclass(frozen=True, slots=True)
class _Newest:
    id: int
    target: int


class Repeats:
    """Holds a few numbers a segment, whatever its length. Segments are added in their order."""

    def __init__(self) -> None:
        self._by_source: dict[int, _Newest] = {}
        self._by_words: dict[int, int] = {}  # of source and target

    def add(self, segment: Segment) -> None:
        self._by_source[_source(segment)] = _Newest(segment.id, _words(segment.target))
        self._by_words[_both(segment)] = segment.id

    def newer(self, segment: Segment) -> Repeat | None:
        """The newest segment that this one repeats or contradicts."""
        if (twin := self._by_words.get(_both(segment), segment.id)) > segment.id:
            return Repeat("duplicates", f"segment {twin} says the same", twin)
        newest = self._by_source.get(_source(segment))
        if newest is not None and newest.id > segment.id and newest.target != _words(segment.target):
            return Repeat("contradictions", f"segment {newest.id} has another target", newest.id)
        return None


def _source(segment: Segment) -> int:
    return hash((folded(segment.source), segment.context))


def _both(segment: Segment) -> int:
    return hash((_words(segment.source), _words(segment.target), segment.context))


def _words(text: str) -> int:
    """Equal for texts that differ in case, white space and punctuation between words alone."""
    words = [token for token in tokens_of(text) if any(map(str.isalnum, token))]
    return hash(tuple(words) if words else text)
