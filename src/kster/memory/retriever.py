"""Search on behalf of some sentences: each query belongs to one, and is answered for it.

A retriever is made when a batch of sentences begins and knows their source texts. `WholeRetriever` searches
all entries of a memory at every step; `ShortlistRetriever` only those of the segments whose sources resemble
a sentence best, which are gathered into a block once, so that the work of a step does not depend on how large
the memory is. Both say how much the source a neighbour comes from resembles the sentence.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Protocol

import torch
from torch import Tensor

from kster.memory.index.blocks import BLOCK, MARGIN, positions_of_newest_smallest, smallest
from kster.memory.neighbours import Neighbours, rank

AT_ONCE = 1 << 18  # candidates compared exactly at a time, 512 MiB at d = 512


class Searcher(Protocol):
    """What searches all entries there are: a memory, or several as one."""

    def search(self, queries: Tensor, k: int) -> Neighbours: ...


class Retriever(ABC):
    """Searches for s sentences; queries come in as many rows for each, in the sentences' order."""

    sentences: int

    @abstractmethod
    def keep(self, sentences: Tensor) -> Retriever:
        """The retriever of these sentences alone; sentences: (kept,) ascending."""

    @abstractmethod
    def search_for(self, queries: Tensor, sentences: Tensor, k: int) -> Neighbours:
        """queries: (n, d); sentences: (n,) which one each belongs to."""

    def search(self, queries: Tensor, k: int) -> Neighbours:
        """queries: (s · b, d), b rows of each sentence together."""
        sentences = torch.arange(self.sentences, device=queries.device)
        return self.search_for(queries, sentences.repeat_interleave(len(queries) // self.sentences), k)


@dataclass(frozen=True, slots=True, eq=False)
class RowsOf:
    """A retriever with queries whose sentences are known one by one."""

    retriever: Retriever
    rows: Tensor  # (n,) sentences

    def search(self, queries: Tensor, k: int) -> Neighbours:
        return self.retriever.search_for(queries, self.rows.to(queries.device), k)


@dataclass(frozen=True, slots=True, eq=False)
class Similarities:
    """How much the sources of a memory's segments resemble each sentence."""

    first_entries: Tensor  # (m,) the id of each segment's first entry, growing
    table: Tensor  # (s, m) float16

    def of(self, ids: Tensor, sentences: Tensor) -> Tensor:
        """(n, k) float32. ids: (n, k) of entries, -1 for none; sentences: (n,). 0 for what is newer."""
        if not len(self.first_entries):
            return torch.zeros(ids.shape, device=ids.device)
        lines = torch.searchsorted(self.first_entries, ids, right=True) - 1  # (n, k)
        found = self.table[sentences[:, None], lines.clamp(min=0)].float()
        return found.masked_fill(lines < 0, 0.0)

    def keep(self, sentences: Tensor) -> Similarities:
        return Similarities(self.first_entries, self.table.index_select(0, sentences))


@dataclass(frozen=True, slots=True, eq=False)
class WholeRetriever(Retriever):
    """All entries of a memory, or of several as one, as they are at every step."""

    memory: Searcher
    similarities: Similarities
    sentences: int

    def keep(self, sentences: Tensor) -> WholeRetriever:
        return replace(self, similarities=self.similarities.keep(sentences), sentences=len(sentences))

    def search_for(self, queries: Tensor, sentences: Tensor, k: int) -> Neighbours:
        found = self.memory.search(queries, k)
        found.similarity = self.similarities.of(found.ids, sentences)
        return found


@dataclass(frozen=True, slots=True, eq=False)
class ShortlistRetriever(Retriever):
    """The entries of each sentence's shortlist; L of each, in the order of their ids."""

    keys: Tensor  # (s, L, d) float32 on a CPU, float16 elsewhere
    norms: Tensor  # (s, L) float32 ‖k‖², inf where there is no entry; L is a multiple of BLOCK
    values: Tensor  # (s, L) int32
    ids: Tensor  # (s, L) int64, -1 where there is no entry
    similarity: Tensor  # (s, L) float16
    sentences: int

    def keep(self, sentences: Tensor) -> ShortlistRetriever:
        return ShortlistRetriever(
            keys=self.keys.index_select(0, sentences),
            norms=self.norms.index_select(0, sentences),
            values=self.values.index_select(0, sentences),
            ids=self.ids.index_select(0, sentences),
            similarity=self.similarity.index_select(0, sentences),
            sentences=len(sentences),
        )

    def search(self, queries: Tensor, k: int) -> Neighbours:
        rows = queries.view(self.sentences, -1, queries.shape[1])  # (s, b, d)
        products = torch.bmm(rows.to(self.keys.dtype), self.keys.transpose(1, 2))  # (s, b, L)
        scores = torch.add(self.norms[:, None], products.float(), alpha=-2).flatten(0, 1)  # (s · b, L)
        sentences = torch.arange(self.sentences, device=queries.device).repeat_interleave(rows.shape[1])
        return self._ranked(queries, scores, sentences, k)

    def search_for(self, queries: Tensor, sentences: Tensor, k: int) -> Neighbours:
        parts = []
        most = max(1, AT_ONCE // max(1, self.keys.shape[1]))
        for own, some in zip(queries.split(most), sentences.split(most), strict=True):
            keys = self.keys[some]  # (n, L, d)
            products = torch.bmm(keys, own.to(keys.dtype)[:, :, None])[:, :, 0]  # (n, L)
            parts.append(self._ranked(own, self.norms[some] - 2 * products.float(), some, k))
        return Neighbours.stack(parts)

    def _ranked(self, queries: Tensor, scores: Tensor, sentences: Tensor, k: int) -> Neighbours:
        """The k nearest by the distances of the stored keys. scores: (n, L), smaller is nearer."""
        n, length = scores.shape
        if length == 0:
            return _without_similarity(Neighbours.missing(n, k, queries.shape[1], queries.device))
        count = min(k + MARGIN, length)
        places = smallest(scores, count, positions_of_newest_smallest)[1]  # (n, c)
        flat = places + sentences[:, None] * length  # in all sentences' entries
        ids, values = self.ids.flatten()[flat], self.values.flatten()[flat]
        found = rank(queries, ids, self.keys.flatten(0, 1)[flat], values, k)
        own = self.similarity.flatten()[flat].float()  # (n, c)
        same = found.ids[:, :, None] == ids[:, None]  # (n, k, c)
        found.similarity = (own[:, None] * same).amax(-1).masked_fill(found.ids < 0, 0.0)
        return found


def _without_similarity(nothing: Neighbours) -> Neighbours:
    nothing.similarity = torch.zeros_like(nothing.distances)
    return nothing


@dataclass(frozen=True, slots=True, eq=False)
class Shortlist:
    """The entries of one sentence's best segments, in the order of their ids; on the CPU."""

    keys: Tensor  # (e, d) float16
    values: Tensor  # (e,) int32
    ids: Tensor  # (e,) int64
    similarity: Tensor  # (e,) float32


def block_of(shortlists: list[Shortlist], dimension: int, device: torch.device) -> ShortlistRetriever:
    """Shortlists side by side, filled up to the longest."""
    longest = max((len(one.ids) for one in shortlists), default=0)
    length = -(-longest // BLOCK) * BLOCK
    shape = len(shortlists), length
    dtype = torch.float32 if device.type == "cpu" else torch.float16
    keys = torch.zeros((*shape, dimension), dtype=dtype, device=device)
    values = torch.zeros(shape, dtype=torch.int32, device=device)
    ids = torch.full(shape, -1, dtype=torch.int64, device=device)
    similarity = torch.zeros(shape, dtype=torch.float16, device=device)
    norms = torch.full(shape, torch.inf, device=device)
    for i, one in enumerate(shortlists):
        count = len(one.ids)
        keys[i, :count] = one.keys.to(device)
        values[i, :count], ids[i, :count] = one.values.to(device), one.ids.to(device)
        similarity[i, :count] = one.similarity.to(device)
        norms[i, :count] = keys[i, :count].float().square().sum(-1)
    return ShortlistRetriever(keys, norms, values, ids, similarity, len(shortlists))
