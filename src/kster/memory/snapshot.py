"""A memory as it was after one commit: immutable, so that searching threads never see half a change."""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kster.memory.database import State
from kster.memory.shards import MappedEntries
from kster.memory.store import Store

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """Segments and entries of one generation. Entry id = position in the entry files.

    Segments are in the order of their entries, which is also the order of their ids.
    """

    generation: int
    epoch: int
    entries: MappedEntries
    segment_ids: Ints  # (s,) removed ones included, until compaction
    first_entries: Ints  # (s,)
    checksums: Ints  # (s,)
    target_groups: Ints  # (s,)
    live: npt.NDArray[np.bool_]  # (size,) whether an entry's segment has not been removed
    live_count: int

    @property
    def size(self) -> int:
        """Entries on disk, removed ones included."""
        return self.entries.count

    @property
    def bytes_in_ram(self) -> int:
        columns = (self.segment_ids, self.first_entries, self.checksums, self.target_groups, self.live)
        return sum(column.nbytes for column in columns)

    def segments_of(self, ids: Ints) -> Ints:
        """The positions (in `segment_ids`) of the segments that entries belong to; ids must be ≥ 0."""
        return np.searchsorted(self.first_entries, ids, side="right") - 1

    def content_hash(self, count: int) -> int:
        """A number that says what the first `count` entries are; `count` must end a segment."""
        segments = np.searchsorted(self.first_entries, count)
        return zlib.crc32(self.checksums[:segments].tobytes())


def take_snapshot(store: Store, previous: Snapshot | None) -> Snapshot:
    """The memory as it is now; `previous` itself when nothing has changed since."""
    while True:
        with store.reading() as database:
            state = database.state()
            if previous is not None and previous.generation == state.generation:
                return previous
            same_files = previous is not None and previous.epoch == state.epoch
            since = previous.generation if previous is not None and same_files else -1
            spans = database.spans(since)  # (s, 6)
        try:
            entries = store.map_entries(state)
        except FileNotFoundError:
            if _is_current(store, state):
                raise
            continue  # a compaction replaced the files in between
        return _advance(previous if same_files else None, state, entries, spans)


def _is_current(store: Store, state: State) -> bool:
    with store.reading() as database:
        return database.state() == state


def _advance(previous: Snapshot | None, state: State, entries: MappedEntries, spans: Ints) -> Snapshot:
    """spans: (s, 6) the segments that are new or changed since `previous`; see Database.spans."""
    empty = np.empty(0, np.int64)
    old = (empty, empty, empty, empty)
    live = np.ones(entries.count, np.bool_)
    if previous is not None:
        old = (previous.segment_ids, previous.first_entries, previous.checksums, previous.target_groups)
        live[: previous.size] = previous.live
    last = old[0][-1] if len(old[0]) else -1
    new = spans[spans[:, 0] > last]
    for first, count in spans[spans[:, 5] == 1, 1:3].tolist():
        live[first : first + count] = False
    columns = [np.concatenate([a, new[:, i]]) for a, i in zip(old, (0, 1, 3, 4), strict=True)]
    return Snapshot(state.generation, state.epoch, entries, *columns, live, int(live.sum()))
