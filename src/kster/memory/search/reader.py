"""The reading side of a memory: the newest snapshot, and what is made of it to search it: an index for every
device in use, and short codes."""

from __future__ import annotations

import threading
from dataclasses import dataclass

import torch
from torch import Tensor

from kster.memory.search.block_index import BlockIndex
from kster.memory.search.codes import KeptCodes
from kster.memory.search.neighbours import Neighbours
from kster.memory.store.snapshot import Snapshot, take_snapshot
from kster.memory.store.store import Store


@dataclass(frozen=True, slots=True)
class _Current:
    """What all searches between two changes share; replaced as a whole, never changed."""

    data_version: int
    snapshot: Snapshot
    indexes: dict[torch.device, BlockIndex]


class Reader:
    """Searches always see the newest commit, made by whichever thread or process, and all of it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._newest: _Current | None = None
        self.codes = KeptCodes()
        self._lock = threading.Lock()  # for changing self._newest; reading it needs none
        store.when_released = self._let_go

    def snapshot(self) -> Snapshot:
        return self._current().snapshot

    def search(self, queries: Tensor, k: int) -> Neighbours:
        index = self.index_on(queries.device)
        if index is None:
            return Neighbours.missing(len(queries), k, queries.shape[1], queries.device)
        return index.search(queries, k)

    def index_on(self, device: torch.device) -> BlockIndex | None:
        """The index for queries on this device: the same object until something changes."""
        current = self._current()
        if current.snapshot.live_count == 0:
            return None
        return current.indexes.get(device) or self._build(device)

    def close(self) -> None:
        """Let go of everything that is held in memory."""
        with self._lock:
            self._newest = None
        self.codes.clear()

    def _let_go(self) -> None:
        """Drop mapped files and indexes, unless they are being changed; the next search opens them again."""
        if self._lock.acquire(blocking=False):
            self._newest = None
            self._lock.release()
            self.codes.clear()

    def _current(self) -> _Current:
        version = self._store.data_version()
        newest = self._newest
        if newest is not None and newest.data_version == version:
            return newest
        with self._lock:
            return self._refresh()

    def _refresh(self) -> _Current:
        """With the lock held. The version is read first: a commit in between only costs another look."""
        version, old = self._store.data_version(), self._newest
        if old is not None and old.data_version == version:
            return old
        snapshot = take_snapshot(self._store, old.snapshot if old is not None else None)
        indexes = old.indexes if old is not None else {}
        if old is not None and snapshot is not old.snapshot:
            indexes = {device: index.advance(snapshot) for device, index in indexes.items()}
        self._newest = _Current(version, snapshot, indexes)
        return self._newest

    def _build(self, device: torch.device) -> BlockIndex:
        """The index for a device, made when it has not been searched on before."""
        with self._lock:
            current = self._refresh()
            if device not in current.indexes:
                index = BlockIndex(current.snapshot, device)
                indexes = {**current.indexes, device: index}
                self._newest = _Current(current.data_version, current.snapshot, indexes)
                return index
            return current.indexes[device]
