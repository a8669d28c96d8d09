"""The memory: example pairs as segments, their keys and values on disk, and search among them."""

from kster.memory.checks import Finding
from kster.memory.group import MemoryGroup
from kster.memory.key_maker import ForcedKeys, KeyMaker
from kster.memory.memory import Memory
from kster.memory.report import CompactReport, ImportReport, MemoryInfo, MemorySize, SinceFit
from kster.memory.search.entries import Entries
from kster.memory.search.neighbours import Neighbours
from kster.memory.search.settings import SearchSettings
from kster.memory.searchable import SearchableMemory
from kster.memory.segment import Provenance, Segment
from kster.memory.sources import Match, Resembling, Similar
from kster.memory.store.history import Event

__all__ = [
    "CompactReport",
    "Entries",
    "Event",
    "Finding",
    "ForcedKeys",
    "ImportReport",
    "KeyMaker",
    "Match",
    "Memory",
    "MemoryGroup",
    "MemoryInfo",
    "MemorySize",
    "Neighbours",
    "Provenance",
    "Resembling",
    "SearchSettings",
    "SearchableMemory",
    "Segment",
    "Similar",
    "SinceFit",
]
