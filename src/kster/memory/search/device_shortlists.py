"""Search in shortlists on a GPU: for each sentence the entries of its best segments, where an index has them.

A memory's keys lie on the GPU already (`block_index.py`), so a shortlist is a row of places among them. A
step computes the exact distances of its entries, however large the memory is. Nothing in it waits for the
GPU, and all it reads lies in a few tensors, so it can be recorded with the decoder's step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from types import ModuleType

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from kster.memory.search.neighbours import Neighbours, filled_up
from kster.memory.search.retriever import Retriever

Measure = Callable[[Tensor, Tensor], Tensor]  # distances, similarities (n, k) → other distances (n, k)
Ints = npt.NDArray[np.int64]

LEAST_ROOM = 512  # entries; there is room for powers of two, so that recorded steps serve many batches
NUMBERS_AT_ONCE = 1 << 25  # differences held at a time where there are no kernels: 128 MiB
QUERIES_AT_ONCE = 1 << 11  # of explanations and scores
LOW = (1 << 32) - 1
MOST_SETTLED = 4  # memories, or shapes of their shortlists, in one place
SHORTLISTS = "shortlists"  # where in a state's room they are


@dataclass(frozen=True, slots=True, eq=False)
class Entries:
    """Where keys lie, and what belongs to them."""

    keys: Tensor  # (N, d) float16
    values: Tensor  # (N,) int32
    ids: Tensor  # (N,) int64

    def are(self, others: Entries) -> bool:
        """Whether it is the same storage; what has been added to it since does not matter."""
        mine, theirs = ((of.keys, of.values, of.ids) for of in (self, others))
        return all(one is other for one, other in zip(mine, theirs, strict=True))


@dataclass(frozen=True, slots=True, eq=False)
class DeviceShortlists(Retriever):
    """The shortlists of s sentences, each in the order of ids, with room for L entries."""

    stored: Entries
    places: Tensor  # (s, L) int64: of each entry among those stored; -1 for none
    similarity: Tensor  # (s, L) float32
    words: Tensor  # (s, L) int64: see `Neighbours`
    rare: Tensor  # (s,) int64
    beam: int | None = None  # rows of each sentence; None: as many as fit
    lasting: bool = True  # whether what is stored is there for the next batch, too

    @property
    def sentences(self) -> int:
        return len(self.places)

    @property
    def _about(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        return self.places, self.similarity, self.words, self.rare

    def keep(self, sentences: Tensor) -> DeviceShortlists:
        return self._of(lambda column: column.index_select(0, sentences))

    def _of(self, change: Callable[[Tensor], Tensor]) -> DeviceShortlists:
        places, similarity, words, rare = map(change, self._about)
        return DeviceShortlists(self.stored, places, similarity, words, rare, lasting=self.lasting)

    def search_for(self, queries: Tensor, sentences: Tensor, k: int) -> Neighbours:
        parts = zip(queries.split(QUERIES_AT_ONCE), sentences.split(QUERIES_AT_ONCE), strict=True)
        return Neighbours.stack([self.keep(own)._search(some, 1, k) for some, own in parts])

    def search(self, queries: Tensor, k: int) -> Neighbours:
        return self.search_measured(queries, k)

    def search_measured(
        self, queries: Tensor, k: int, nearest: int | None = None, measure: Measure | None = None
    ) -> Neighbours:
        """As `search`, but with a measure only the `nearest` of the k neighbours by that measure."""
        return self._search(queries, self.beam or len(queries) // self.sentences, k, nearest, measure)

    def _search(
        self,
        queries: Tensor,
        beam: int,
        k: int,
        nearest: int | None = None,
        measure: Measure | None = None,
    ) -> Neighbours:
        """queries: (s · b, d), of the first s sentences."""
        n, length, stored = len(queries), self.places.shape[1], self.stored
        ordered = ordered_distances(queries, stored.keys, self.places[: n // beam], beam)  # (n, L)
        best = ordered.topk(min(k, length), largest=False).values  # (n, k), ascending
        distances = (best >> 32).int().view(torch.float32).sqrt()
        first = torch.arange(n, device=queries.device).div(beam, rounding_mode="floor") * length
        slots = first[:, None] + (length - 1 - (best & LOW))  # (n, k) of all s · L
        similarity = _looked_up(self.similarity, slots)
        plain = None
        if measure is not None:
            own, order = measure(distances, similarity).sort(dim=1, stable=True)
            order, plain = order[:, :nearest], distances
            slots, similarity, plain = (of.gather(1, order) for of in (slots, similarity, plain))
            distances = own[:, :nearest]
        there = distances.isfinite()
        places = _looked_up(self.places, slots).clamp_min(0)
        found = Neighbours(
            distances=distances.masked_fill(~there, torch.inf),
            values=_looked_up(stored.values, places).long() * there,
            ids=_looked_up(stored.ids, places).masked_fill(~there, -1),
            keys=stored.keys.index_select(0, places.flatten()).half().view(*places.shape, -1)
            * there[..., None],
            similarity=similarity * there,
            words=_looked_up(self.words, slots),
            plain=None if plain is None else plain.masked_fill(~there, torch.inf),
            rare=self.rare[: n // beam, None].expand(-1, beam).reshape(n),
        )
        return filled_up(found, nearest or k)

    def settled_in(self, room: dict[str, object], sentences: int, beam: int) -> DeviceShortlists:
        """These shortlists in tensors that stay where they are for the next ones, too.

        room: where they are kept, those of a few memories; sentences: how many there is room for.
        """
        kept = room.setdefault(SHORTLISTS, [])
        assert isinstance(kept, list)
        shape = sentences, self.places.shape[1]
        own = next((one for one in kept if one.stored.are(self.stored) and one.places.shape == shape), None)
        if own is None:
            fresh = self._of(lambda column: column.new_zeros((sentences, *column.shape[1:])))
            own = replace(fresh, beam=beam)
        else:
            kept.remove(own)
        kept.append(own)
        del kept[:-MOST_SETTLED]
        own.places[self.sentences :] = -1
        for mine, theirs in zip(own._about, self._about, strict=True):
            mine[: self.sentences] = theirs
        return own

    def is_settled_in(self, room: dict[str, object]) -> bool:
        kept = room.get(SHORTLISTS, [])
        assert isinstance(kept, list)
        return self in kept


def _looked_up(table: Tensor, at: Tensor) -> Tensor:
    return table.view(-1).index_select(0, at.flatten()).view_as(at)


@dataclass(frozen=True, slots=True, eq=False)
class Listed:
    """The segments of one sentence's shortlist, those with the smallest ids first."""

    first: Ints  # (m,) the place of each segment's first entry among those stored; -1 if it has none
    counts: Ints  # (m,) its entries
    relative: npt.NDArray[np.float32]  # (m,) its similarity
    having: Ints  # (m,) which words of the sentence it has
    rare: int  # which of these are in few segments


def on_device(stored: Entries, lists: Sequence[Listed], *, lasting: bool) -> DeviceShortlists:
    """Shortlists of segments, as shortlists of entries."""
    most = max((len(one.first) for one in lists), default=0)
    table = np.zeros((len(lists), max(1, most), 4), np.int64)  # first, counts, words, similarity
    for i, one in enumerate(lists):
        own = table[i, : len(one.first)]
        own[:, 0], own[:, 1], own[:, 2] = one.first, one.counts, one.having
        own[:, 3] = one.relative.astype(np.float32).view(np.int32)
    longest = int(table[:, :, 1].sum(1).max(initial=0))
    room = max(LEAST_ROOM, 1 << max(0, longest - 1).bit_length())
    device = stored.keys.device
    first, counts, having, bits = torch.from_numpy(table).to(device).unbind(2)  # (s, m) each
    slots = torch.arange(room, device=device).expand(len(lists), -1).contiguous()  # (s, L)
    ends = counts.cumsum(1)
    segment = torch.searchsorted(ends, slots, right=True)  # (s, L), m where there is none
    there = segment < table.shape[1]
    segment = segment.clamp_max(table.shape[1] - 1)
    places = (first - ends + counts).gather(1, segment) + slots
    similarity = bits.int().view(torch.float32)
    return DeviceShortlists(
        stored=stored,
        places=places.masked_fill(~there, -1),
        similarity=similarity.gather(1, segment) * there,
        words=having.gather(1, segment),
        rare=torch.tensor([one.rare for one in lists], dtype=torch.int64, device=device),
        lasting=lasting,
    )


def ordered_distances(queries: Tensor, keys: Tensor, places: Tensor, beam: int) -> Tensor:
    """(s · b, L) int64 that order as ‖q − k‖² does, of equal ones the last first: its bits, and the place
    counted from the end. inf where there is none.

    queries: (s · b, d); keys: (N, d); places: (s, L), -1 for none.
    """
    queries = queries.float()
    if keys.is_cuda and keys.shape[1] % 64 == 0 and (fused := kernels()) is not None:
        ordered: Tensor = fused.ordered_distances(queries, keys, places, beam)
        return ordered
    sentences, length = places.shape
    grouped = queries.view(sentences, beam, 1, -1)
    at_once = max(1, NUMBERS_AT_ONCE // (len(queries) * keys.shape[1]))
    parts = []
    for some in places.split(at_once, dim=1):  # (s, l)
        own = keys.index_select(0, some.clamp_min(0).flatten()).float().view(*some.shape, -1)
        parts.append((own[:, None] - grouped).square().sum(-1).flatten(0, 1))  # (s · b, l)
    squared = torch.cat(parts, dim=1)
    squared = squared.masked_fill((places < 0).repeat_interleave(beam, 0), torch.inf)
    return squared.view(torch.int32).long() << 32 | torch.arange(length - 1, -1, -1, device=keys.device)


@cache
def kernels() -> ModuleType | None:
    """`device_kernels`, or None where Triton is not installed."""
    try:
        from kster.memory.search import device_kernels
    except ImportError:
        return None
    return device_kernels
