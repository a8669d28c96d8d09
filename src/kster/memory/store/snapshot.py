"""A memory as it was after one commit: immutable, so that searching threads never see half a change."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from kster.errors import MemoryStoreError
from kster.memory.store.database import LIVE, REMOVED, State
from kster.memory.store.entry_files import MappedEntries
from kster.memory.store.failures import said
from kster.memory.store.saved_spans import all_spans, save_if_worth
from kster.memory.store.spans import NO_KEYS_YET, Spans
from kster.memory.store.store import Store


@dataclass(frozen=True, eq=False)
class Snapshot:
    """Segments and entries of one generation."""

    generation: int
    epoch: int
    entries: MappedEntries  # by row
    spans: Spans
    live_segments: npt.NDArray[np.bool_]  # (s,) whether a line's segment counts: approved, not superseded
    removed_segments: npt.NDArray[np.bool_]  # (s,) whether it never will again

    @property
    def rows(self) -> int:
        """Entries on disk, removed ones and dropped files included."""
        return self.entries.count

    @cached_property
    def live_count(self) -> int:
        """Entries of live segments."""
        return int(self.spans.counts[self.live_segments].sum())

    @property
    def lines_with_keys(self) -> npt.NDArray[np.int64]:
        """Those whose segments are live and have keys, ascending: in the order of the entries' ids."""
        return np.flatnonzero(self.live_segments & (self.spans.first_rows >= 0))

    @cached_property
    def without_keys(self) -> npt.NDArray[np.bool_]:
        """(s,) whether a line's segment is live and its keys have yet to be made."""
        return (self.spans.first_rows == NO_KEYS_YET) & self.live_segments


def take_snapshot(store: Store, previous: Snapshot | None) -> Snapshot:
    """The memory as it is now; `previous` itself when nothing has changed since."""
    while True:
        with store.reading() as database:
            state = database.state()
            if previous is not None and previous.generation == state.generation:
                return previous
            known = previous if previous is not None and previous.epoch == state.epoch else None
            if known is not None:
                spans, unsaved = database.spans(known.generation), 0
            else:
                spans, unsaved = all_spans(store, database, state)
        try:
            entries = store.map_entries(state)
        except FileNotFoundError as error:
            if _is_current(store, state):
                raise MemoryStoreError(f"{store.directory}: cannot be read ({said(error)})") from error
            continue  # a compaction dropped files in between
        save_if_worth(store, spans, state, unsaved)
        return _advance(known, state, entries, spans)


def _is_current(store: Store, state: State) -> bool:
    with store.reading() as database:
        return database.state() == state


def _advance(previous: Snapshot | None, state: State, entries: MappedEntries, changed: Spans) -> Snapshot:
    """changed: the segments that are new or changed since `previous`."""
    spans, live, removed = changed, changed.removed == LIVE, changed.removed == REMOVED
    if previous is not None:
        last = previous.spans.segment_ids[-1] if len(previous.spans) else -1
        new = changed.segment_ids > last
        spans = previous.spans.with_keys(changed.where(~new)) if not new.all() else previous.spans
        spans = spans.followed_by(changed.where(new)) if new.any() else spans
        live = np.concatenate([previous.live_segments, live[new]])
        removed = np.concatenate([previous.removed_segments, removed[new]])
        lines = np.searchsorted(spans.segment_ids, changed.segment_ids)
        live[lines], removed[lines] = changed.removed == LIVE, changed.removed == REMOVED
    return Snapshot(state.generation, state.epoch, entries, spans, live, removed)
