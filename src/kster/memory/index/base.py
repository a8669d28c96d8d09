"""What every kind of search does."""

from __future__ import annotations

from abc import ABC, abstractmethod

from torch import Tensor

from kster.memory.neighbours import Neighbours
from kster.memory.store.snapshot import Snapshot


class Index(ABC):
    """A way to find the nearest entries of one snapshot. Derived data: it can always be rebuilt.

    An index never changes what it answers; `advance` gives the one for a newer snapshot. The two share
    storage, so that advancing costs as much as the entries that are new.
    """

    kind: str
    snapshot: Snapshot

    @abstractmethod
    def advance(self, snapshot: Snapshot) -> Index:
        """The index of a newer snapshot of the same epoch. Called by one thread at a time."""

    @abstractmethod
    def search(self, queries: Tensor, k: int) -> Neighbours:
        """queries: (n, d), any floating type. Any number of threads may search."""

    @property
    def outdated(self) -> bool:
        """Whether there is something to build that would make searches faster."""
        return False

    @property
    @abstractmethod
    def bytes_in_ram(self) -> int:
        """What the index itself holds, on whichever device."""
