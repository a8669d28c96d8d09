"""The memory: example pairs as segments, their keys and values on disk, and search among them."""

from kster.memory.entries import Entries
from kster.memory.group import MemoryGroup
from kster.memory.key_maker import ForcedKeys, KeyMaker
from kster.memory.memory import Memory
from kster.memory.neighbours import Neighbours
from kster.memory.report import CompactReport, ImportReport, MemoryInfo, SinceFit
from kster.memory.segment import Provenance, Segment
from kster.memory.settings import SearchSettings
from kster.memory.sources import Match, Similar

__all__ = [
    "CompactReport",
    "Entries",
    "ForcedKeys",
    "ImportReport",
    "KeyMaker",
    "Match",
    "Memory",
    "MemoryGroup",
    "MemoryInfo",
    "Neighbours",
    "Provenance",
    "SearchSettings",
    "Segment",
    "Similar",
    "SinceFit",
]
