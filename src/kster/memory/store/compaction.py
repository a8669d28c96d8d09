"""Giving back the space of removed segments: their entry files are dropped, all others stay as they are.

What else lives in these files is first appended behind the last one, as if it were new. Then one transaction
forgets the removed segments and the files. Until it is committed nothing has happened; afterwards the files
have yet to be deleted, which the next writer does if this one dies. Readers that have them open keep them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from kster.errors import MemoryStoreError
from kster.memory.store.database import REMOVED, State
from kster.memory.store.entry_files import Appender, checksum_of
from kster.memory.store.failures import for_people
from kster.memory.store.saved_spans import all_spans, save_if_worth
from kster.memory.store.spans import Spans
from kster.memory.store.store import UNTOUCHED, Store, transaction

WORTH_SHRINKING = 0.25  # the share of unused pages from which on the database is written anew


def compact(store: Store) -> tuple[int, int]:
    """Give back the space of removed segments; returns the (segments, entries) dropped."""
    with store.lock.held(), for_people(store.directory, UNTOUCHED), store.writer() as database:
        with transaction(database, "BEGIN IMMEDIATE"):
            state = database.state()
            store.sweep(state)
            spans, _ = all_spans(store, database, state)
            gone, kept = spans.where(spans.removed == REMOVED), spans.where(spans.removed != REMOVED)
            if not len(gone):
                return 0, 0
            moving, emptied, start = _plan(gone, kept, state, store.description.entries_per_shard)
            firsts, rows = _append(store, state, moving, start)
            moved = zip(firsts.tolist(), moving.segment_ids.tolist(), strict=True)
            database.move(moved, state.generation + 1)
            database.forget(gone.segment_ids.tolist())
            database.drop_files(emptied)
            after = State(
                state.generation + 1,
                state.epoch + 1,
                rows,
                state.next_entry,
                state.directory,
                state.dropped.union(emptied),
            )
            database.set_state(after)
        store.files(after).drop(emptied)
        database.shrink(WORTH_SHRINKING)
    kept = kept.with_keys(replace(moving, first_rows=firsts))
    save_if_worth(store, kept, after, unsaved=len(kept))
    return len(gone), int(gone.counts.sum())


def _plan(gone: Spans, kept: Spans, state: State, per_file: int) -> tuple[Spans, list[int], int]:
    """The segments to be moved, in the order of their rows; the files to be dropped; and the row from which
    on there is room."""
    count = -(-state.row_count // per_file)
    kept, gone = kept.where(kept.lines_by_row), gone.where(gone.lines_by_row)
    touched = np.cumsum(np.append(0, _files_of(gone, count, per_file)))  # (count + 1,) among the first n
    first, last = _first_and_last(kept, per_file)
    moves = touched[last + 1] > touched[first]
    occupied = _files_of(kept.where(~moves), count, per_file)
    emptied = [n for n in range(count) if n not in state.dropped and not occupied[n]]
    last_is_emptied = emptied[-1:] == [count - 1]
    return kept.where(moves), emptied, count * per_file if last_is_emptied else state.row_count


def _files_of(spans: Spans, count: int, per_file: int) -> npt.NDArray[np.bool_]:
    """(count,) whether each file has rows of these segments."""
    edges = np.zeros(count + 1, np.int64)
    first, last = _first_and_last(spans, per_file)
    np.add.at(edges, first, 1)
    np.add.at(edges, last + 1, -1)
    return np.cumsum(edges[:-1]) > 0


def _first_and_last(spans: Spans, per_file: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """(s,) each: the files that a segment's rows begin and end in; as a rule the same."""
    return spans.first_rows // per_file, (spans.first_rows + spans.counts - 1) // per_file


def _append(store: Store, state: State, moving: Spans, start: int) -> tuple[npt.NDArray[np.int64], int]:
    """Copy the entries of these segments to `start` and behind it; returns (s,) where each begins there, and
    how many rows there are then."""
    firsts = np.zeros(len(moving), np.int64)
    if not len(moving):
        return firsts, start
    old = store.map_entries(state)
    appender = Appender(store.files(state), start)
    try:
        for line, (segment, first, count, checksum) in enumerate(_lines(moving)):
            keys, values = old.keys(first, first + count), old.values(first, first + count)
            if checksum_of(keys, values) != checksum:
                raise MemoryStoreError(
                    f"{store.directory}: segment {segment} is damaged on disk; nothing was changed. "
                    "Remove it, add it again if it is needed, and compact once more"
                )
            firsts[line] = appender.append(keys, values)
        appender.sync()
    except BaseException:
        appender.undo()
        raise
    return firsts, appender.count


def _lines(spans: Spans) -> Iterator[tuple[int, int, int, int]]:
    columns = (spans.segment_ids, spans.first_rows, spans.counts, spans.checksums)
    return zip(*(column.tolist() for column in columns), strict=True)
