"""The reading side of a memory: the newest snapshot, and an index of it for every device in use."""

from __future__ import annotations

import threading
from dataclasses import dataclass

import torch
from torch import Tensor

from kster.errors import KsterError
from kster.memory.builder import Builder
from kster.memory.index import BlockIndex, Index
from kster.memory.neighbours import Neighbours
from kster.memory.settings import SearchSettings
from kster.memory.store.snapshot import Snapshot, take_snapshot
from kster.memory.store.store import INDEX, Store

CPU = torch.device("cpu")


@dataclass(frozen=True, slots=True)
class View:
    """What all searches between two changes share; replaced as a whole, never changed."""

    data_version: int
    snapshot: Snapshot
    indexes: dict[torch.device, Index]


class Reader:
    """Searches always see the newest commit, made by whichever thread or process, and all of it."""

    def __init__(self, store: Store, settings: SearchSettings) -> None:
        self._store = store
        self._settings = settings
        self._view: View | None = None
        self._lock = threading.Lock()  # for changing self._view; reading it needs none
        self._builder = Builder(self._improve)
        store.when_released = self._let_go

    def snapshot(self) -> Snapshot:
        return self._current().snapshot

    def search(self, queries: Tensor, k: int) -> Neighbours:
        index = self.index_on(queries.device)
        if index is None:
            return Neighbours.missing(len(queries), k, queries.shape[1], queries.device)
        if index.outdated:
            self._builder.start(index.snapshot.generation)
        return index.search(queries, k)

    def index_on(self, device: torch.device) -> Index | None:
        """What searches with queries on this device use: the same object until something changes."""
        view = self._current()
        if view.snapshot.live_count == 0:
            return None
        return view.indexes.get(device) or self._build(device)

    def build_index(self) -> None:
        """Returns when searches on the CPU are as fast as they get."""
        while self.snapshot().live_count and (index := self._build(CPU)).outdated:
            if not self._builder.start(index.snapshot.generation):
                raise KsterError(f"{self._store.directory}: the search index cannot be built; see the log")
            self._builder.wait()

    def index_kind(self, device: torch.device) -> str:
        """How a search with queries on this device is done."""
        snapshot = self.snapshot()
        if snapshot.live_count == 0:
            return "empty"
        return "ivf" if device.type == "cpu" and self._settings.quantise(snapshot.live_count) else "exact"

    def index_state(self) -> str:
        """One of `INDEX_STATES`: what searches have used since the memory was opened."""
        view = self._current()
        if view.snapshot.live_count == 0:
            return "empty"
        indexes = list(view.indexes.values())
        if any(index.outdated for index in indexes):
            return "outdated"
        return indexes[0].kind if indexes else "unused"

    @property
    def bytes_in_ram(self) -> int:
        """What searching holds; what it will on the CPU, as long as nothing was searched for."""
        view = self._current()
        snapshot, indexes = view.snapshot, view.indexes.values()
        held = sum(index.bytes_in_ram for index in indexes) if indexes else self._forecast(snapshot)
        return snapshot.bytes_in_ram + held

    def _forecast(self, snapshot: Snapshot) -> int:
        entries, dimension = snapshot.live_count, snapshot.entries.dimension
        if self.index_kind(CPU) == "ivf":
            lists = self._settings.lists(entries)
            return snapshot.rows * (dimension + 8) + lists * dimension * 4  # codes, rows; centres
        return entries * (dimension * 4 + 24)  # keys; value, id, row and norm

    def close(self) -> None:
        """Let go of everything that is held in memory, when what is being built is there for the next one."""
        self._builder.wait()
        with self._lock:
            self._view = None

    def _let_go(self) -> None:
        """Of mapped files and indexes, unless they are being changed; the next search has them again."""
        if self._lock.acquire(blocking=False):
            if not self._builder.busy:
                self._view = None
            self._lock.release()

    def _current(self) -> View:
        version = self._store.data_version()
        view = self._view
        if view is not None and view.data_version == version:
            return view
        with self._lock:
            return self._refresh()

    def _refresh(self) -> View:
        """With the lock held. The version is read first: a commit in between only costs another look."""
        version, old = self._store.data_version(), self._view
        if old is not None and old.data_version == version:
            return old
        snapshot = take_snapshot(self._store, old.snapshot if old is not None else None)
        indexes = old.indexes if old is not None else {}
        if old is not None and snapshot is not old.snapshot:
            indexes = {device: self._advance(index, snapshot, device) for device, index in indexes.items()}
        self._view = View(version, snapshot, indexes)
        return self._view

    def _build(self, device: torch.device) -> Index:
        """The index for a device, made when it has not been searched on before."""
        with self._lock:
            view = self._refresh()
            if device not in view.indexes:
                indexes = {**view.indexes, device: self._new_index(view.snapshot, device)}
                self._view = View(view.data_version, view.snapshot, indexes)
                return indexes[device]
            return view.indexes[device]

    def _advance(self, index: Index, snapshot: Snapshot, device: torch.device) -> Index:
        quantise = device.type == "cpu" and self._settings.quantise(snapshot.live_count)
        if snapshot.epoch != index.snapshot.epoch or quantise != (index.kind == "ivf"):
            return self._new_index(snapshot, device)
        return index.advance(snapshot)

    def _improve(self) -> None:
        """Build what the index for the CPU lacks, while others search; then put it in its place."""
        from kster.memory.index.ivf import IvfIndex

        view = self._view
        index = view.indexes.get(CPU) if view is not None else None
        while isinstance(index, IvfIndex) and index.outdated:
            lists, epoch = index.build(), index.snapshot.epoch
            with self._lock:
                view = self._refresh()
                index = view.indexes[CPU]
                if isinstance(index, IvfIndex) and index.snapshot.epoch == epoch:
                    index = index.with_lists(lists)
                    self._view = View(view.data_version, view.snapshot, {**view.indexes, CPU: index})

    def _new_index(self, snapshot: Snapshot, device: torch.device) -> Index:
        if device.type == "cpu" and self._settings.quantise(snapshot.live_count):
            try:
                from kster.memory.index.ivf import IvfIndex  # FAISS is needed here alone
            except ModuleNotFoundError as error:
                raise KsterError(
                    f"{self._store.directory}: {snapshot.live_count:,} entries are searched on the CPU with "
                    "FAISS, which is not installed; install faiss-cpu, or use a GPU"
                ) from error

            return IvfIndex.open(snapshot, self._store.directory / INDEX, self._settings)
        return BlockIndex(snapshot, device)
