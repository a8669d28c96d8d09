"""A memory as it was after one commit: immutable, so that searching threads never see half a change."""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kster.errors import MemoryStoreError
from kster.memory.store.database import State
from kster.memory.store.failures import said
from kster.memory.store.shards import MappedEntries
from kster.memory.store.spans import Spans
from kster.memory.store.store import Store


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """Segments and entries of one generation."""

    generation: int
    epoch: int
    entries: MappedEntries  # by row
    spans: Spans
    live: npt.NDArray[np.bool_]  # (rows,) whether a row's segment has not been removed
    live_count: int
    live_segments: npt.NDArray[np.bool_]  # (s,) whether a line's segment has not been removed

    @property
    def rows(self) -> int:
        """Entries on disk, removed ones included."""
        return self.entries.count

    @property
    def bytes_in_ram(self) -> int:
        return (
            self.live.nbytes + self.live_segments.nbytes + sum(column.nbytes for column in self.spans.columns)
        )

    def content_hash(self, rows: int) -> int:
        """A number that says what the first `rows` rows are; they must end with a segment."""
        segments = np.searchsorted(self.spans.first_rows, rows)
        return zlib.crc32(self.spans.checksums[:segments].tobytes())


def take_snapshot(store: Store, previous: Snapshot | None) -> Snapshot:
    """The memory as it is now; `previous` itself when nothing has changed since."""
    while True:
        with store.reading() as database:
            state = database.state()
            if previous is not None and previous.generation == state.generation:
                return previous
            same_files = previous is not None and previous.epoch == state.epoch
            since = previous.generation if previous is not None and same_files else -1
            spans = database.spans(since)
        try:
            entries = store.map_entries(state)
        except FileNotFoundError as error:
            if _is_current(store, state):
                raise MemoryStoreError(f"{store.directory}: cannot be read ({said(error)})") from error
            continue  # a compaction replaced the files in between
        return _advance(previous if same_files else None, state, entries, spans)


def _is_current(store: Store, state: State) -> bool:
    with store.reading() as database:
        return database.state() == state


def _advance(previous: Snapshot | None, state: State, entries: MappedEntries, changed: Spans) -> Snapshot:
    """changed: the segments that are new or changed since `previous`."""
    live = np.ones(entries.count, np.bool_)
    spans, live_segments = changed, changed.removed == 0
    if previous is not None:
        live[: previous.rows] = previous.live
        last = previous.spans.segment_ids[-1] if len(previous.spans) else -1
        new = changed.segment_ids > last
        spans = previous.spans.followed_by(changed.where(new))
        live_segments = np.concatenate([previous.live_segments, live_segments[new]])
    gone = changed.where(changed.removed == 1)
    live_segments[np.searchsorted(spans.segment_ids, gone.segment_ids)] = False
    for first, count in zip(gone.first_rows.tolist(), gone.counts.tolist(), strict=True):
        live[first : first + count] = False
    return Snapshot(state.generation, state.epoch, entries, spans, live, int(live.sum()), live_segments)
