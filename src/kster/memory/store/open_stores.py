"""How many memories of a process keep their files open: the ones used last.

An open memory has three descriptors (the database, its log and shared memory; mapped files have none). A
process may hold any number of memories: when too many are open, those that were not used for longest let
go of their files, and open them again when they are used.
"""

from __future__ import annotations

import itertools
import resource
import threading
from typing import Protocol
from weakref import WeakSet

DESCRIPTORS_EACH = 3
SHARE = 4  # of the process's descriptors, one in so many is for idle memories
FEWEST, MOST = 4, 1_000

_clock = itertools.count()


class Releasable(Protocol):
    last_used: int

    def release(self) -> bool:
        """Close files unless they are in use just now; returns whether they are closed."""

    def __hash__(self) -> int: ...


class OpenStores:
    """All stores of this process whose files are open."""

    def __init__(self) -> None:
        self._open: WeakSet[Releasable] = WeakSet()
        self._lock = threading.Lock()

    def opened(self, store: Releasable) -> None:
        """Called by a store that has just opened its files; closes those of others if that is too many."""
        with self._lock:
            self._open.add(store)
            others = [other for other in self._open if other is not store]
        too_many = len(others) + 1 - limit()
        for other in sorted(others, key=lambda one: one.last_used):
            if too_many <= 0:
                break
            if other.release():
                too_many -= 1

    def closed(self, store: Releasable) -> None:
        with self._lock:
            self._open.discard(store)


def limit() -> int:
    """How many stores may be open, by how many files the process may."""
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if files == resource.RLIM_INFINITY:
        return MOST
    return min(MOST, max(FEWEST, files // SHARE // DESCRIPTORS_EACH))


def tick() -> int:
    """A number that grows with every call."""
    return next(_clock)


open_stores = OpenStores()
