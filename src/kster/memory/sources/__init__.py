"""Which segments have a source like this one: a lexical index of sources, and fuzzy matches from it."""

from kster.memory.sources.index import SourceIndex
from kster.memory.sources.matching import Match, Resembling
from kster.memory.sources.scoring import Similar

__all__ = ["Match", "Resembling", "Similar", "SourceIndex"]
