"""Verification: is everything on disk what was once written?"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kster.errors import KsterError
from kster.memory.store.database import State
from kster.memory.store.entry_files import MappedEntries, checksum_of
from kster.memory.store.spans import Spans
from kster.memory.store.store import Store


def problems_of(store: Store) -> list[str]:
    """Everything that is wrong with a memory's files, in words; empty when nothing is."""
    while True:
        try:
            with store.reading_apart() as database:
                damage = [row[0] for row in database.execute("PRAGMA integrity_check") if row[0] != "ok"]
                state, spans = database.state(), database.spans()
                found = [f"memory.sqlite: {text}" for text in damage]
                found += [f"segment {id}: its text is not what was written" for id in database.altered()]
                short = store.files(state).problems(state.row_count, state.dropped)
                if short and database_has_moved(store, state.epoch):
                    continue  # a compaction dropped files meanwhile
                if short:
                    return found + short
            entries = store.map_entries(state)
        except FileNotFoundError:
            continue  # the same
        except KsterError as error:
            return [str(error)]
        vocabulary_size = store.description.vocabulary_size
        per_file = store.description.entries_per_shard
        order = _order(spans, state, per_file)
        return found + list(order) + list(_contents(entries, spans, vocabulary_size))


def database_has_moved(store: Store, epoch: int) -> bool:
    with store.reading() as database:
        return database.state().epoch != epoch


def _order(spans: Spans, state: State, per_file: int) -> Iterator[str]:
    """Every row belongs to one segment at most, and no segment to a file that was dropped."""
    end = 0
    columns = (column[spans.lines_by_row] for column in (spans.segment_ids, spans.first_rows, spans.counts))
    for segment, first, count in zip(*(column.tolist() for column in columns), strict=True):
        if first < end:
            yield f"segment {segment}: starts at row {first}, which is another segment's"
        if count < 1:
            yield f"segment {segment}: has no entries"
        end = first + count
        if not state.dropped.isdisjoint(range(first // per_file, -(-end // per_file))):
            yield f"segment {segment}: its file has been dropped"
    if end > state.row_count:
        yield f"{state.row_count} entries are recorded, segments have {end}"


def _contents(entries: MappedEntries, spans: Spans, vocabulary_size: int) -> Iterator[str]:
    columns = (spans.segment_ids, spans.first_rows, spans.counts, spans.checksums)
    for segment, first, count, checksum in zip(*(column.tolist() for column in columns), strict=True):
        if not entries.has(first, first + count):
            continue  # said by _order
        keys, values = entries.keys(first, first + count), entries.values(first, first + count)
        if checksum_of(keys, values) != checksum:
            yield f"segment {segment}: keys or values are not what was written (checksum)"
        elif not np.isfinite(keys).all():
            yield f"segment {segment}: keys are not finite"
        elif values.min() < 0 or values.max() >= vocabulary_size:
            yield f"segment {segment}: a value is outside the vocabulary (0 … {vocabulary_size - 1})"
