"""Search in large memories: FAISS inverted lists with 8-bit codes, then exact ranking on the stored keys.

Derived from the entry files alone. The lists hold rows; entries that are newer than the lists are
searched exactly beside them until they join, in the background; removed ones are left out by a bitmap.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from kster.memory.index.base import Index
from kster.memory.index.blocks import RANKED, BlockIndex
from kster.memory.index.lists import Lists, Probe, Rows
from kster.memory.neighbours import Neighbours, rank
from kster.memory.settings import SearchSettings
from kster.memory.store.snapshot import Snapshot

CPU = torch.device("cpu")


class IvfIndex(Index):
    """The lists cover the first rows of the snapshot, `delta` the rest; at first there may be no lists.

    Making lists takes seconds to minutes, and searches need not wait for it: `build` makes them, in whichever
    thread, and `with_lists` is the index that uses them.
    """

    kind = "ivf"

    def __init__(
        self,
        snapshot: Snapshot,
        lists: Lists | None,
        delta: BlockIndex,
        directory: Path,
        settings: SearchSettings,
    ) -> None:
        self.snapshot = snapshot
        self.settings = settings
        self._directory = directory
        self._lists = lists
        self._delta = delta
        self._indexed = delta.start
        live = snapshot.live[: self._indexed]
        # Bit i: row i may be found. Rows beyond the bitmap may not, so it also hides rows that joined the
        # lists after this snapshot was taken.
        self._allowed = np.packbits(live, bitorder="little")
        self._live = int(live.sum())

    @classmethod
    def open(cls, snapshot: Snapshot, directory: Path, settings: SearchSettings) -> IvfIndex:
        """With the lists in the directory, if there are any of this memory's present contents."""
        lists = Lists.read(snapshot, directory, settings)
        if lists is None and snapshot.rows > settings.meanwhile_limit:
            lists = Lists.train(snapshot, directory, settings)
        if lists is not None and snapshot.rows - lists.rows > settings.meanwhile_limit:
            lists.extend(snapshot)
        delta = BlockIndex(snapshot, CPU, start=lists.rows if lists is not None else 0)
        return cls(snapshot, lists, delta, directory, settings)

    def advance(self, snapshot: Snapshot) -> IvfIndex:
        if self._lists is not None and snapshot.rows - self._indexed > self.settings.meanwhile_limit:
            self._lists.extend(snapshot)
            delta = BlockIndex(snapshot, CPU, start=self._lists.rows)
        else:
            delta = self._delta.advance(snapshot)
        return IvfIndex(snapshot, self._lists, delta, self._directory, self.settings)

    @property
    def outdated(self) -> bool:
        if self._outgrown:
            return True
        return self.snapshot.rows - self._indexed > self.settings.delta_limit

    @property
    def _outgrown(self) -> bool:
        """Whether lists have to be trained, there being none or some for a far smaller memory."""
        if self._lists is None:
            return True
        return self.snapshot.rows > self.settings.retrain_growth * self._lists.trained_on

    def build(self) -> Lists:
        """Lists for all of the snapshot. By one thread at a time; others may search this index meanwhile."""
        if self._outgrown or self._lists is None:
            lists = Lists.train(self.snapshot, self._directory, self.settings)
        else:
            lists = self._lists
        lists.extend(self.snapshot)
        return lists

    def with_lists(self, lists: Lists) -> IvfIndex:
        """lists: of this epoch, and not longer than the snapshot."""
        delta = BlockIndex(self.snapshot, CPU, start=lists.rows)
        return IvfIndex(self.snapshot, lists, delta, self._directory, self.settings)

    @property
    def bytes_in_ram(self) -> int:
        lists = self._lists.bytes_in_ram if self._lists is not None else 0
        return lists + self._allowed.nbytes + self._delta.bytes_in_ram

    def search(self, queries: Tensor, k: int) -> Neighbours:
        queries = queries.float()
        if self._lists is None:
            return self._delta.search(queries, k)
        rows, tied = self._candidates(self._lists, queries.numpy(), k)
        near = self._rank(queries, rows, k)
        for i, all_rows in tied.items():
            parts = (all_rows[first : first + RANKED] for first in range(0, len(all_rows), RANKED))
            ranked = [self._rank(queries[i : i + 1], part[None], k) for part in parts]
            near.put(i, Neighbours.merge(ranked, k))
        return Neighbours.merge([near, self._delta.search(queries, k)], k)

    def _rank(self, queries: Tensor, rows: npt.NDArray[np.int64], k: int) -> Neighbours:
        """rows: (n, c), -1 where there is none."""
        found = rows.clip(min=0)
        ids = np.where(rows < 0, -1, self.snapshot.spans.entries_of_rows(found))
        keys = torch.from_numpy(self.snapshot.entries.gather(rows.reshape(-1)))  # (n · c, d)
        values = self.snapshot.entries.values_of(found)
        own = torch.arange(rows.size).view(rows.shape)
        return rank(queries, torch.from_numpy(ids), keys, own, torch.from_numpy(values), k)

    def _candidates(
        self, all_lists: Lists, queries: npt.NDArray[np.float32], k: int
    ) -> tuple[Rows, dict[int, Rows]]:
        """(n, c) rows from the lists, c > k, -1 where there are fewer; and for queries to which more rows
        look equally near than that, all of those rows."""
        c = self.settings.candidates(k)
        with all_lists.searching() as lists:
            restricted = self._live < self._indexed or lists.ntotal > self._indexed
            allowed = self._allowed if restricted else None
            probe = Probe(lists, self.settings.probes_of(lists.nlist), allowed)
            rows, tied = probe.nearest(queries, c)
            # Where most of what lies nearby has been removed, the nearest lists may hold fewer than k.
            short = np.flatnonzero((rows >= 0).sum(1) < min(k, self._live))
            if len(short):
                everywhere = Probe(lists, lists.nlist, allowed)
                rows[short], more = everywhere.nearest(queries[short], c)
                tied |= {int(short[i]): all_rows for i, all_rows in more.items()}
        return rows, tied
