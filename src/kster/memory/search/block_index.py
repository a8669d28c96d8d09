"""Exact search: one matrix product and a top-k in two stages, on the CPU and on a GPU.

The k smallest of N scores lie in the k blocks whose smallest scores are smallest, so the second stage
looks at k blocks only. That is exact, and several times faster than a top-k over all N.
On the CPU keys are held as float32, because products of float16 are slow there; on a GPU as float16, and
where Triton is at hand both stages are kernels of our own (`triton_kernels.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, cached_property
from types import ModuleType

import numpy as np
import torch
from torch import Tensor

from kster.memory.search.device_shortlists import Entries
from kster.memory.search.neighbours import Neighbours, filled_up, rank
from kster.memory.store.snapshot import Snapshot

BLOCK = 256  # entries; over 50,000 to 200,000 scores on 2 CPU cores faster than 64 and 1,000, or as fast
MARGIN = 16  # candidates beyond k that are ranked exactly, since scores carry rounding errors
SCORES_AT_ONCE = {"cpu": 1 << 26, "cuda": 1 << 28}  # float32 scores held at a time: 256 MiB, 1 GiB
WIDE_SUMS = tuple(map(int, torch.__version__.split(".")[:2])) >= (2, 8)  # torch.mm's out_dtype
RANKED = 4_096  # candidates of one query compared exactly at a time: 8 MiB each at d = 512
SPARE = 8  # storage is reserved for 1/SPARE more entries than there are
UPLOAD = 1 << 16  # entries copied at a time while loading
MANY_GROUPS = 1 << 14  # more than these are chosen from in two stages, too


class BlockIndex:
    """The live entries of a snapshot, held on one device. Any number of threads may search.

    An index never changes what it answers; `advance` gives the one for a newer snapshot. The two share
    storage, so that advancing costs as much as the entries that are new.
    """

    snapshot: Snapshot

    @torch.inference_mode(False)  # the storage outlives the inference mode that a search may run in
    def __init__(self, snapshot: Snapshot, device: torch.device, dtype: torch.dtype | None = None) -> None:
        """dtype: what keys are held as; by default what is fastest on the device."""
        dimension = snapshot.entries.dimension
        self.device = device
        dtype = dtype or (torch.float32 if device.type == "cpu" else torch.float16)
        self._keys = torch.zeros((0, dimension), dtype=dtype, device=device)  # (capacity, d)
        self._values = torch.zeros(0, dtype=torch.int32, device=device)  # (capacity,)
        self._ids = torch.zeros(0, dtype=torch.int64, device=device)  # (capacity,)
        self._lines = np.zeros(0, np.int64)  # (size,) of each entry's segment in the snapshot …
        self._rows = np.zeros(0, np.int64)  # (size,) … and where the entry lies in the files
        self._norms = torch.zeros(0, device=device)  # (blocks × BLOCK,) ‖k‖², inf for what must not be found
        self.size = 0
        self._take(snapshot, first_row=0)

    def advance(self, snapshot: Snapshot) -> BlockIndex:
        """The index of a newer snapshot. Called by one thread at a time."""
        old = self.snapshot
        if snapshot.epoch != old.epoch or _count_again(old, snapshot):
            return BlockIndex(snapshot, self.device, self._keys.dtype)
        newer = object.__new__(BlockIndex)
        newer.device, newer.size = self.device, self.size
        newer._keys, newer._values, newer._ids = self._keys, self._values, self._ids
        newer._norms, newer._lines, newer._rows = self._norms, self._lines, self._rows
        newer.snapshot = old
        newer._take(snapshot, first_row=old.rows)
        return newer

    def search(self, queries: Tensor, k: int) -> Neighbours:
        """queries: (n, d), any floating type."""
        n, d = queries.shape
        if self.size == 0 or n == 0:
            return Neighbours.missing(n, k, d, queries.device)
        at_once = SCORES_AT_ONCE.get(self.device.type, 1 << 26)
        if self._fused is not None:
            width = len(self._norms) // self._fused.GROUP + (k + MARGIN) * self._fused.GROUP
            parts = queries.split(max(1, at_once // width))
            return Neighbours.stack([self._search_fused(self._fused, part, k) for part in parts])
        rows = max(1, at_once // len(self._norms))
        return Neighbours.stack([self._search(part, k) for part in queries.split(rows)])

    @property
    def stored(self) -> Entries:
        """All entries, some of which may have been removed."""
        return Entries(self._keys, self._values, self._ids)

    @property
    def room(self) -> int:
        """How many entries there is storage for."""
        return len(self._keys)

    @cached_property
    def places_of_rows(self) -> np.ndarray:
        """(rows + 1,) where each row of the snapshot lies among those stored; -1 for one that does not, and
        for row -1. Entries of a segment follow each other in both."""
        places = np.full(self.snapshot.rows + 1, -1, np.int64)
        places[self._rows] = np.arange(self.size)
        return places

    @property
    def _fused(self) -> ModuleType | None:
        """The kernels, where they can be used."""
        if self._keys.dtype != torch.float16 or self._keys.shape[1] % 64:
            return None
        return kernels() if self._keys.is_cuda else None

    # Searching -----------------------------------------------------------------------------------

    def _search(self, queries: Tensor, k: int) -> Neighbours:
        queries = queries.float()  # (n, d)
        scores = self._scores(queries)  # (n, b·B)
        on_cpu = self.device.type == "cpu"
        choose = positions_of_smallest if on_cpu else positions_of_newest_smallest
        best, places = smallest(scores, min(k + MARGIN, self.size), choose)  # (n, c) each
        answer = self._rank(queries, places.masked_fill(best.isinf(), -1), k)
        if on_cpu and best.shape[1] < self.size:
            self._settle_ties(queries, scores, best[:, -1], answer)
        return answer

    def _search_fused(self, fused: ModuleType, queries: Tensor, k: int) -> Neighbours:
        """The same in two kernels. Distances inside chosen groups are exact, so nothing is ranked again."""
        queries, keys = queries.float(), self._keys[: len(self._norms)]  # (n, d), (b·B, d)
        best = fused.smallest_of_groups(queries.half(), keys, self._norms)  # (n, g)
        count = min(k + MARGIN, best.shape[1])
        if best.shape[1] > MANY_GROUPS:
            best = torch.nn.functional.pad(best, (0, -best.shape[1] % BLOCK), value=torch.inf)
            groups = smallest(best, count, positions_of_newest_smallest)[1]  # (n, c)
        else:
            groups = positions_of_newest_smallest(best, count)
        groups = groups.sort().values  # in the order of their entries
        squared = fused.squared_distances(queries, keys, self._norms, groups)  # (n, c·G)
        places = positions_of_newest_smallest(squared, min(k, squared.shape[1]))  # (n, k)
        distances = squared.gather(1, places).sqrt()
        found = distances.isfinite()
        places = groups.gather(1, places // fused.GROUP) * fused.GROUP + places % fused.GROUP
        answer = Neighbours(
            distances=distances.masked_fill(~found, torch.inf),
            values=self._values[places].long() * found,
            ids=self._ids[places].masked_fill(~found, -1),
            keys=keys[places] * found[..., None],
        )
        return filled_up(answer, k)

    def _scores(self, queries: Tensor) -> Tensor:
        """(n, b·B) float32: ‖k‖² − 2q·k, which orders entries as the distance does."""
        keys = self._keys[: len(self._norms)]  # (b·B, d)
        if keys.dtype == torch.float32:
            return torch.addmm(self._norms, queries, keys.T, alpha=-2)
        if keys.is_cuda and WIDE_SUMS:  # float16 products, float32 sums: float16 sums could overflow
            products = torch.mm(queries.half() * -2, keys.T, out_dtype=torch.float32)
            return products.add_(self._norms)
        return torch.addmm(self._norms, queries.half().float(), keys.float().T, alpha=-2)

    def _rank(self, queries: Tensor, places: Tensor, k: int) -> Neighbours:
        """places: (n, c) in this index, -1 where there is none."""
        found = places.clamp(min=0)
        ids = self._ids[found].masked_fill(places < 0, -1)
        return rank(queries, ids, self._keys, found, self._values[found], k)

    def _settle_ties(self, queries: Tensor, scores: Tensor, last: Tensor, answer: Neighbours) -> None:
        """Search once more where the candidates may not have been all that could be among the k nearest.

        That happens when more than `MARGIN` entries lie at the k-th distance, give or take a rounding
        error: then all of them are ranked, so that ties are decided by age here as well. On a GPU the margin
        has to do, since asking whether it did would make the CPU wait for the GPU at every step; equal keys
        have equal scores there, of which the newest are chosen in the first place.
        last: (n,) the score of each query's worst candidate.
        """
        k = answer.ids.shape[1]
        length = queries.square().sum(1)  # (n,)
        kth = answer.distances[:, -1].square() - length  # (n,) as a score
        limit = kth + 1e-5 * (length + answer.distances[:, -1].square() + kth.abs())
        for row in torch.nonzero((last <= limit) & last.isfinite())[:, 0].tolist():
            near = torch.nonzero(scores[row] <= limit[row]).T  # (1, c)
            parts = [self._rank(queries[row : row + 1], part, k) for part in near.split(RANKED, dim=1)]
            answer.put(row, Neighbours.merge(parts, k))

    # Loading -------------------------------------------------------------------------------------

    @torch.inference_mode(False)  # the same
    def _take(self, snapshot: Snapshot, first_row: int) -> None:
        """Load what is live of the snapshot from `first_row` on, and forget what it has removed."""
        lines = snapshot.lines_with_keys
        lines = lines[snapshot.spans.first_rows[lines] >= first_row]
        added, ids, _ = snapshot.spans.entries_of_lines(lines)
        old, new = self.size, self.size + len(added)
        blocks = -(-new // BLOCK)
        self._reserve(blocks * BLOCK)
        norms = torch.full((blocks * BLOCK,), torch.inf, device=self.device)
        norms[:old] = self._norms[:old]
        for first in range(old, new, UPLOAD):
            last = min(first + UPLOAD, new)
            keys = torch.from_numpy(snapshot.entries.gather(added[first - old : last - old]))
            part = keys.to(self.device).float()  # (m, d)
            self._keys[first:last] = part
            norms[first:last] = part.square().sum(1)
        self._values[old:new] = torch.from_numpy(snapshot.entries.values_of(added)).to(self.device)
        self._ids[old:new] = torch.from_numpy(ids).to(self.device)
        self._lines = np.concatenate([self._lines, np.repeat(lines, snapshot.spans.counts[lines])])
        self._rows = np.concatenate([self._rows, added])
        if snapshot.live_count < new:
            removed = torch.from_numpy(~snapshot.live_segments[self._lines]).to(self.device)
            norms[:new].masked_fill_(removed, torch.inf)
        if self.device.type == "cuda":  # other threads may search on streams of their own
            torch.cuda.current_stream(self.device).synchronize()
        self._norms, self.size, self.snapshot = norms, new, snapshot

    def _reserve(self, needed: int) -> None:
        """Make room, with some to spare for what will be added; older indexes keep the storage they have.

        An eighth is a compromise: it is copied seldom enough, and a memory that just fits still does when
        something is added to it.
        """
        if needed <= len(self._keys):
            return
        capacity = needed + needed // SPARE // BLOCK * BLOCK
        self._keys = _enlarged(self._keys, self.size, capacity)
        self._values = _enlarged(self._values, self.size, capacity)
        self._ids = _enlarged(self._ids, self.size, capacity)


def _count_again(old: Snapshot, new: Snapshot) -> bool:
    """Whether older segments that have keys, and did not count, do so now."""
    live = new.live_segments[: len(old.spans)]
    return bool((live & ~old.live_segments & (old.spans.first_rows >= 0)).any())


@cache
def kernels() -> ModuleType | None:
    """`triton_kernels`, or None where Triton is not installed."""
    try:
        from kster.memory.search import triton_kernels
    except ImportError:
        return None
    return triton_kernels


def _enlarged(old: Tensor, size: int, capacity: int) -> Tensor:
    new = torch.zeros((capacity, *old.shape[1:]), dtype=old.dtype, device=old.device)
    new[:size] = old[:size]
    return new


def smallest(
    scores: Tensor, c: int, choose: Callable[[Tensor, int], Tensor] | None = None
) -> tuple[Tensor, Tensor]:
    """The c smallest of each row, exactly, and where they are: (n, c) each. scores: (n, b·B).

    choose: how the smallest of some numbers are found. Where it prefers the last of equal ones, so does this:
    of equally good blocks the last are chosen, and each of them has an entry that is as good.
    """
    choose = choose or positions_of_smallest
    n, width = scores.shape
    blocks = scores.view(n, width // BLOCK, BLOCK)  # (n, b, B)
    if blocks.shape[1] <= c:
        places = choose(scores, c)
        return scores.gather(1, places), places
    chosen = choose(blocks.amin(2), c).sort().values  # (n, c) blocks, in the order of their entries
    inside = blocks.gather(1, chosen[..., None].expand(-1, -1, BLOCK)).flatten(1)  # (n, c·B)
    best = choose(inside, c)  # (n, c)
    block = chosen.gather(1, best // BLOCK)
    return inside.gather(1, best), block * BLOCK + best % BLOCK


def positions_of_smallest(scores: Tensor, c: int) -> Tensor:
    """(n, c), smallest first; any of equal ones. scores: (n, w)."""
    return scores.topk(c, largest=False).indices


def positions_of_newest_smallest(scores: Tensor, c: int) -> Tensor:
    """(n, c), smallest first; of equal ones the last, which is the newest. scores: (n, w) float32.

    `topk` promises nothing about ties, so the place becomes part of the number: a float's bits, read as an
    integer, order as the float does (negative ones once their other bits are turned over). It takes three
    times as long, which on the CPU would be a tenth of a search.
    """
    width = scores.shape[1]
    bits = (scores + 0.0).view(torch.int32)  # + 0.0: -0.0 is 0.0
    ordered = bits ^ ((bits >> 31) & 0x7FFFFFFF)
    from_end = torch.arange(width - 1, -1, -1, device=scores.device)  # (w,)
    best = (ordered.long() << 32 | from_end).topk(c, largest=False).values  # (n, c)
    return width - 1 - (best & 0xFFFFFFFF)
