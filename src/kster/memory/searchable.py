"""What one memory and several searched as one have in common."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from torch import Tensor

from kster.memory.memory import Memory
from kster.memory.search.neighbours import Neighbours
from kster.memory.search.retriever import Batch, Searcher
from kster.memory.segment import Provenance, Segment
from kster.memory.sources import Match, Resembling, Similar


class SearchableMemory(Protocol):
    """A `Memory` or a `MemoryGroup`: what translating, scoring and explaining ask for."""

    @property
    def memories(self) -> Sequence[Memory]:
        """The memories that are searched: those of a group, or the memory itself."""

    @property
    def model(self) -> Any:
        """The base model that made the keys."""

    @property
    def fingerprint(self) -> str:
        """What identifies that model."""

    @property
    def dimension(self) -> int:
        """d, the length of a key."""

    @property
    def entry_count(self) -> int:
        """Live entries, one for each target token of the segments that have their keys."""

    @property
    def is_empty(self) -> bool:
        """Whether there is no segment, with keys or without."""

    def search(self, queries: Tensor, k: int) -> Neighbours:
        """As `Memory.search`."""

    def retriever(self, batch: Batch) -> Searcher:
        """As `Memory.retriever`."""

    def similar(self, source: str, m: int) -> Similar:
        """As `Memory.similar`."""

    def matches(self, source: str, n: int = 5, *, least: int = 1, context: str | None = None) -> list[Match]:
        """As `Memory.matches`."""

    def similar_segments(self, sources: Sequence[str], m: int) -> list[list[Resembling]]:
        """As `Memory.similar_segments`; of a group, m of each memory."""

    def provenance(self, ids: Tensor | Iterable[int]) -> list[Provenance]:
        """As `Memory.provenance`."""

    def segment(self, id: int) -> Segment:
        """As `Memory.segment`."""

    def segment_ids(self, ids: Tensor) -> Tensor:
        """As `Memory.segment_ids`."""

    def target_groups(self, segment_ids: Tensor) -> Tensor:
        """As `Memory.target_groups`."""

    def close(self) -> None:
        """Close all files."""
