"""Which entries belong to which segment, as columns of integers.

An entry has an id, given once and never used again, and a row: its place in the entry files, which a
compaction changes. Ids grow with those of the segments: room for them is kept when a segment is added, though
its keys may be made later. Rows are in the order in which keys were made.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import chain

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]

SPARE = 8  # room for 1/SPARE more lines than there are
NO_KEYS_YET = -1  # instead of a first row
NO_KEYS_POSSIBLE = -2


@dataclass(frozen=True, eq=False)
class Spans:
    """One line for each of s segments, removed ones included until compaction."""

    segment_ids: Ints  # (s,)
    first_entries: Ints  # (s,) the id of the first entry
    first_rows: Ints  # (s,) its place in the entry files, or NO_KEYS_…
    counts: Ints  # (s,) entries; 0 without keys
    checksums: Ints  # (s,) crc32 of the keys' bytes followed by the values' bytes
    target_groups: Ints  # (s,) equal for equal target texts
    pair_hashes: Ints  # (s,) equal for equal pairs of texts
    removed: Ints  # (s,) LIVE, REMOVED or KEPT when the line was made: `Snapshot.live_segments` is newer
    storage: Storage | None = field(default=None, kw_only=True)  # that the columns are the beginnings of

    @classmethod
    def of(cls, rows: Iterable[tuple[int, ...]]) -> Spans:
        """From database rows with these columns in this order; a list of millions would take gigabytes."""
        table = np.fromiter(chain.from_iterable(rows), np.int64).reshape(-1, len(COLUMNS))
        return cls(*(np.ascontiguousarray(column) for column in table.T))

    def __len__(self) -> int:
        return len(self.segment_ids)

    @property
    def columns(self) -> list[Ints]:
        return [getattr(self, name) for name in COLUMNS]

    def where(self, mask: npt.NDArray[np.bool_] | Ints) -> Spans:
        """These lines, by a mask or by their numbers."""
        return Spans(*(column[mask] for column in self.columns))

    def followed_by(self, others: Spans) -> Spans:
        """As a rule the two share storage: what is added costs as much as it is long."""
        if not len(others):
            return self
        storage = self.storage
        if storage is None or not storage.take(len(self), others):
            storage = Storage(self, others)
        return Spans(*storage.table[:, : len(self) + len(others)], storage=storage)

    def updated(self, newer: Spans) -> Spans:
        """With these lines in the place of those of the same segments, and the others behind them."""
        known = newer.segment_ids <= (self.segment_ids[-1] if len(self) else -1)
        if not known.any():
            return self.followed_by(newer)
        old, lines = newer.where(known), np.searchsorted(self.segment_ids, newer.segment_ids[known])
        columns = [column.copy() for column in self.columns]
        for column, changed in zip(columns, old.columns, strict=True):
            column[lines] = changed
        return Spans(*columns).followed_by(newer.where(~known))

    def with_keys(self, made: Spans) -> Spans:
        """With the keys that were made for some of these segments; made: their lines as they are now."""
        lines = np.searchsorted(self.segment_ids, made.segment_ids)
        if np.array_equal(self.first_rows[lines], made.first_rows):
            return self
        changed = {}
        for name in ("first_rows", "counts", "checksums"):
            changed[name] = getattr(self, name).copy()
            changed[name][lines] = getattr(made, name)
        return replace(self, **changed, storage=None)

    @cached_property
    def lines_by_row(self) -> Ints:
        """(r,) the lines that have keys, in the order of their rows."""
        lines = np.flatnonzero(self.first_rows >= 0)
        return lines[np.argsort(self.first_rows[lines], kind="stable")]  # fast where most is in order already

    def lines_of_entries(self, ids: Ints) -> Ints:
        """The line of the segment each entry id belongs to; -1 where there is none."""
        if len(self) == 0:
            return np.full_like(ids, -1)
        lines = np.searchsorted(self.first_entries, ids, side="right") - 1
        inside = ids - self.first_entries[lines] < self.counts[lines]
        return np.where((lines >= 0) & inside, lines, -1)

    def entries_of_lines(self, lines: Ints) -> tuple[Ints, Ints, Ints]:
        """(e,) each: rows, ids and places in the segment, of all entries of (m,) lines that have keys."""
        counts = self.counts[lines]
        within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        rows = np.repeat(self.first_rows[lines], counts) + within
        return rows, np.repeat(self.first_entries[lines], counts) + within, within

    def rows_of_entries(self, ids: Ints) -> Ints:
        """(…) rows of (…) entry ids; -1 where there is no such entry, or its keys are not made yet."""
        lines = self.lines_of_entries(ids)
        if len(self) == 0:
            return lines
        return np.where(lines >= 0, ids - self.first_entries[lines] + self.first_rows[lines], -1)


COLUMNS = tuple(column.name for column in fields(Spans) if column.name != "storage")


class Storage:
    """Columns with room for more lines, which the first to ask gets: what somebody reads never changes."""

    def __init__(self, first: Spans, others: Spans) -> None:
        used = len(first) + len(others)
        self.table = np.empty((len(COLUMNS), used + used // SPARE), np.int64)
        self._used, self._lock = 0, threading.Lock()
        self.take(0, first)
        self.take(len(first), others)

    def take(self, place: int, lines: Spans) -> bool:
        """Write lines at this place, if that is where the free ones begin and there is room."""
        with self._lock:
            end = place + len(lines)
            if self._used != place or end > self.table.shape[1]:
                return False
            for column, more in zip(self.table, lines.columns, strict=True):
                column[place:end] = more
            self._used = end
            return True
