"""What a replica keeps of the entries that shards have sent it, so that these are sent, and coded, once.

Keys are most of what travels. Shards remember what they have sent to whom (`shard.Sent`), so that a question
need not say what is here. A shard that was started again, or has forgotten this process, sends everything
again, and what is missing all the same is asked for: a segment is always used as its shard, as it runs now,
has sent it. Entries never change, and which segments count is said with every answer.
"""

from __future__ import annotations

import threading
from secrets import token_hex

import numpy as np
import torch

from kster.cluster.wire import Ints, SegmentEntries
from kster.memory.search.codes import Codes, CodesName, CodeTable, Projection
from kster.memory.search.shortlist_retriever import Gathered

ROOM = 1 << 18  # entries that are kept before all of them are let go of: 270 MB of keys, 26 of codes
TABLES = 4  # of codes; there is one for each memory, or several as one, that is translated with

Directory = tuple[str, str]  # a shard, and a memory directory there
CodedBy = tuple[Directory, CodesName]  # the memory whose codes are used, and which of its codes


class KeptEntries:
    """Entries of one length, by rows; any number of threads may ask and add."""

    def __init__(self, dimension: int) -> None:
        self.holder = token_hex(8)  # names this to shards
        self._keys = np.empty((0, dimension), np.float16)
        self._values, self._ids = np.empty(0, np.int32), np.empty(0, np.int64)
        self._count = 0
        self._segments: dict[Directory, dict[int, tuple[int, int]]] = {}  # first row and number of entries
        self._tables: dict[CodedBy, CodeTable] = {}
        self._lock = threading.Lock()

    @property
    def is_full(self) -> bool:
        return self._count > ROOM

    def emptied(self) -> KeptEntries:
        """Others without any entries, coded as these; whoever still uses these may go on."""
        other = KeptEntries(self._keys.shape[1])
        other._tables = {by: CodeTable(table.projection, 0) for by, table in self._tables.items()}
        return other

    def add(self, directory: Directory, sent: SegmentEntries) -> None:
        with self._lock:
            first, end = self._count, self._count + len(sent.ids)
            if end > len(self._ids):
                self._grow(2 * end)
            self._keys[first:end], self._values[first:end], self._ids[first:end] = sent[2:]
            self._count = end
            spans = zip((sent.firsts[:-1] + first).tolist(), np.diff(sent.firsts).tolist(), strict=True)
            known = self._segments.setdefault(directory, {})
            known.update(zip(sent.segment_ids.tolist(), spans, strict=True))

    def _grow(self, capacity: int) -> None:
        """Rows stay where they are; who has the old arrays goes on with them."""
        for name in ("_keys", "_values", "_ids"):
            old = getattr(self, name)
            new = np.empty((capacity, *old.shape[1:]), old.dtype)
            new[: self._count] = old[: self._count]
            setattr(self, name, new)

    def missing(self, directory: Directory, segment_ids: Ints) -> Ints:
        """(n,) those of these segments that are not here."""
        known = self._segments.get(directory, {})
        return np.array([id for id in segment_ids.tolist() if id not in known], np.int64)

    def rows_of(self, directory: Directory, segment_ids: Ints) -> tuple[Ints, Ints]:
        """(e,) rows of these segments' entries, and (m,) how many each has: none if it is not here."""
        known = self._segments.get(directory, {})
        spans = np.array([known.get(id, (0, 0)) for id in segment_ids.tolist()], np.int64).reshape(-1, 2)
        firsts, counts = spans.T
        before = np.cumsum(counts) - counts
        return np.repeat(firsts - before, counts) + np.arange(counts.sum()), counts

    def values_and_ids(self, rows: Ints) -> tuple[np.ndarray, Ints]:
        """(e,) int32 tokens, and ids as the shard has them."""
        return self._values[rows], self._ids[rows]

    def keys(self) -> Gathered:
        """Of all rows that there are now."""
        return Gathered(torch.from_numpy(self._keys))

    def projection(self, by: CodedBy) -> Projection | None:
        """What codes are made by, if that is known here."""
        table = self._tables.get(by)
        return None if table is None else table.projection

    def codes(self, by: CodedBy, projection: Projection, rows: Ints) -> Codes:
        """projection: what they are made by, if that is not known yet."""
        table = self._tables.get(by)
        if table is None or table.capacity < self._count:  # others may have added more since
            with self._lock:
                while len(self._tables) >= TABLES:
                    del self._tables[next(iter(self._tables))]
                table = self._tables[by] = CodeTable(projection, len(self._ids))
        return table.of(rows, lambda missing: self._keys[rows[missing]])


_kept: dict[int, KeptEntries] = {}  # of this process, by the length of keys


def kept_entries(dimension: int) -> KeptEntries:
    """Who begins to ask shards for something takes these, and stays with them."""
    kept = _kept.get(dimension)
    if kept is None:
        kept = _kept[dimension] = KeptEntries(dimension)
    elif kept.is_full:
        kept = _kept[dimension] = kept.emptied()
    return kept
