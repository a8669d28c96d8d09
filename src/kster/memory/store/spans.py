"""Which entries belong to which segment, as columns of integers.

An entry has an id, given once and never used again, and a row: its place in the entry files, which a
compaction changes. Ids, rows and segment ids all grow in the order in which things were added.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Spans:
    """One line for each of s segments, removed ones included until compaction."""

    segment_ids: Ints  # (s,)
    first_entries: Ints  # (s,) the id of the first entry
    first_rows: Ints  # (s,) its place in the entry files
    counts: Ints  # (s,) entries
    checksums: Ints  # (s,) crc32 of the keys' bytes followed by the values' bytes
    target_groups: Ints  # (s,) equal for equal target texts
    pair_hashes: Ints  # (s,) equal for equal pairs of texts
    removed: Ints  # (s,) 0 or 1, as of when the line was made: `Snapshot.live_segments` is newer

    @classmethod
    def of(cls, rows: list[tuple[int, ...]]) -> Spans:
        """From database rows with these columns in this order."""
        table = np.array(rows, np.int64).reshape(-1, len(fields(cls)))
        return cls(*(np.ascontiguousarray(column) for column in table.T))

    def __len__(self) -> int:
        return len(self.segment_ids)

    @property
    def columns(self) -> list[Ints]:
        return [getattr(self, field.name) for field in fields(self)]

    def where(self, mask: npt.NDArray[np.bool_]) -> Spans:
        return Spans(*(column[mask] for column in self.columns))

    def followed_by(self, others: Spans) -> Spans:
        return Spans(*(np.concatenate(pair) for pair in zip(self.columns, others.columns, strict=True)))

    def lines_of_rows(self, rows: Ints) -> Ints:
        """The line of the segment each row belongs to; rows must be ≥ 0 and in the files."""
        return np.searchsorted(self.first_rows, rows, side="right") - 1

    def lines_of_entries(self, ids: Ints) -> Ints:
        """The line of the segment each entry id belongs to; -1 where there is none."""
        if len(self) == 0:
            return np.full_like(ids, -1)
        lines = np.searchsorted(self.first_entries, ids, side="right") - 1
        inside = ids - self.first_entries[lines] < self.counts[lines]
        return np.where((lines >= 0) & inside, lines, -1)

    def entries_of_rows(self, rows: Ints) -> Ints:
        """(…) entry ids of (…) rows."""
        lines = self.lines_of_rows(rows)
        return rows - self.first_rows[lines] + self.first_entries[lines]

    def rows_of_entries(self, ids: Ints) -> Ints:
        """(…) rows of (…) entry ids; -1 where there is no such entry."""
        lines = self.lines_of_entries(ids)
        if len(self) == 0:
            return lines
        return np.where(lines >= 0, ids - self.first_entries[lines] + self.first_rows[lines], -1)
