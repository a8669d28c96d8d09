"""Search in shortlists: for each sentence only the entries of the segments whose sources resemble it best.

Their codes (`codes.py`) are packed once, so that the work of a step does not depend on how large the memory
is. A step scores a sentence's entries by them (`scores.py`) and ranks the best exactly, by their stored keys,
which stay where they are until then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Protocol

import torch
from torch import Tensor

from kster.memory.search.codes import Projection
from kster.memory.search.neighbours import ALL_WORDS, Neighbours, distances_of, filled_up
from kster.memory.search.retriever import Retriever
from kster.memory.search.scores import Scorer, best_places, scorer_of, smallest

Measure = Callable[[Tensor, Tensor], Tensor]  # distances, similarities (n, k) → other distances (n, k)

MARGIN = 8  # candidates beyond k that are ranked exactly, since scores are estimated
RANKED = 1_024  # queries whose candidates are ranked at a time: 100 MiB at d = 512 and k = 32


class Keys(Protocol):
    """Stored keys, by row."""

    def take(self, rows: Tensor) -> Tensor:
        """(m, d) float16, on the device of the queries; rows: (m,) int64."""


@dataclass(frozen=True, slots=True, eq=False)
class Gathered:
    """Keys that lie in memory, on any device."""

    keys: Tensor  # (r, d) float16

    def take(self, rows: Tensor) -> Tensor:
        return self.keys.index_select(0, rows)


@dataclass(frozen=True, slots=True, eq=False)
class Shortlist:
    """The entries of one sentence's best segments, in the order of their ids; on the CPU.

    Sentences with the same entries share their tensors, and what is made of these.
    """

    rows: Tensor  # (e,) int64, of their keys
    codes: Tensor  # (e, D) int8
    norms: Tensor  # (e,) float32, see `Projection.codes`
    values: Tensor  # (e,) int32
    ids: Tensor  # (e,) int64
    similarity: Tensor  # (e,) float32
    words: Tensor  # (e,) int64: which words of the sentence its source has, see `Neighbours`
    rare: int = 0  # which of them are in few sources


@dataclass(frozen=True, slots=True, eq=False)
class ShortlistRetriever(Retriever):
    """The entries of s sentences' shortlists, at most L each, E together."""

    keys: Keys
    projection: Projection
    scorers: list[Scorer]  # per sentence; those with the same entries have the same one
    length: int  # L
    first: Tensor  # (s, 1) int64: the place of a sentence's first entry among all
    count: Tensor  # (s, 1) int64: its entries
    fewest: int  # entries of any sentence
    entries: (
        Tensor  # (E + 1, 4) int64: each entry's row, value, id and words; behind them what stands for none
    )
    similarity: Tensor  # (E + 1,) float32
    rare: Tensor  # (s, 1) int64

    @property
    def sentences(self) -> int:
        return len(self.scorers)

    def keep(self, sentences: Tensor) -> ShortlistRetriever:
        return replace(
            self,
            scorers=[self.scorers[i] for i in sentences.tolist()],
            first=self.first.index_select(0, sentences),
            count=self.count.index_select(0, sentences),
            rare=self.rare.index_select(0, sentences),
        )

    def search_for(self, queries: Tensor, sentences: Tensor, k: int) -> Neighbours:
        runs, counts = torch.unique_consecutive(sentences, return_counts=True)
        return self._search(queries, sentences, runs.tolist(), counts.tolist(), k)

    def search(self, queries: Tensor, k: int) -> Neighbours:
        return self.search_measured(queries, k)

    def search_measured(
        self, queries: Tensor, k: int, nearest: int | None = None, measure: Measure | None = None
    ) -> Neighbours:
        """As `search`, but with a measure only the `nearest` of the k neighbours by that measure."""
        beam = len(queries) // self.sentences
        counts = [beam] * self.sentences
        return self._search(queries, None, range(self.sentences), counts, k, nearest, measure)

    def _search(
        self,
        queries: Tensor,
        sentences: Tensor | None,
        runs: Sequence[int],
        counts: Sequence[int],
        k: int,
        nearest: int | None = None,
        measure: Measure | None = None,
    ) -> Neighbours:
        """sentences: (n,) of each query, None where all have equally many; queries come in runs, so many for
        each of `runs`."""
        if self.length == 0 or len(queries) == 0:
            nothing = Neighbours.missing(len(queries), nearest or k, queries.shape[1], queries.device)
            nothing.similarity = torch.zeros_like(nothing.distances)
            return nothing

        if sentences is None:  # of one sentence each
            rare, count, first = (
                of.expand(-1, counts[0]).reshape(-1, 1) for of in (self.rare, self.count, self.first)
            )
        else:
            rare, count, first = (of.index_select(0, sentences) for of in (self.rare, self.count, self.first))
        queries = queries.float()
        asked, own = self.projection.queries(queries)
        scores = self._scores(asked, runs, counts).add_(own)
        places = best_places(scores, min(k + MARGIN, self.length))  # (n, c)
        if places.shape[1] > self.fewest:
            places = torch.where(places < count, places + first, len(self.entries) - 1)
        else:
            places += first
        parts = [
            self._ranked(queries[at : at + RANKED], places[at : at + RANKED], k, nearest, measure)
            for at in range(0, len(queries), RANKED)
        ]
        found = Neighbours.stack(parts)
        found.rare = rare[:, 0]
        return filled_up(found, nearest or k)

    def _scores(self, queries: Tensor, runs: Sequence[int], counts: Sequence[int]) -> Tensor:
        """(n, L) float32, smaller is nearer; inf where a sentence has no entry. queries: for scorers."""
        if len(self.scorers) == 1:
            return self.scorers[0](queries)
        scores = torch.empty((len(queries), self.length), device=queries.device)
        first = 0
        # By identity: two sentences that share no word with any source have two scorers of no entries.
        for _, same in groupby(zip(runs, counts, strict=True), lambda run: id(self.scorers[run[0]])):
            own = list(same)
            here = slice(first, first := first + sum(rows for _, rows in own))
            scores[here] = self.scorers[own[0][0]](queries[here])
        return scores

    def _ranked(
        self, queries: Tensor, places: Tensor, k: int, nearest: int | None, measure: Measure | None
    ) -> Neighbours:
        """The k nearest of these places, (n, c), by the distances of the stored keys; see `rank`.

        places: of all entries, each row's descending, so that of equal distances the newest comes first.
        """
        entries = self.entries.index_select(0, places.flatten())  # (n · c, 4)
        keys = self.keys.take(entries.select(1, 0))  # (n · c, d)
        distances = plain = distances_of(queries, keys.view(*places.shape, -1))
        if places.shape[1] > self.fewest:
            distances.masked_fill_(places == len(self.entries) - 1, torch.inf)
        if measure is not None:
            similarity = self.similarity.index_select(0, places.flatten()).view_as(places)
            distances = measure(plain, similarity)
            if places.shape[1] > k:
                distances.masked_fill_(plain > plain.kthvalue(k, keepdim=True).values, torch.inf)
        distances, order = smallest(distances, nearest or k)
        flat = (
            order + torch.arange(0, places.numel(), places.shape[1], device=order.device)[:, None]
        ).flatten()
        _, values, ids, words = entries.index_select(0, flat).view(*order.shape, -1).unbind(-1)
        found = Neighbours(
            distances,
            values,
            ids,
            keys.index_select(0, flat).view(*order.shape, -1),
            self.similarity.index_select(0, places.view(-1).index_select(0, flat)).view_as(order),
            words,
            None if measure is None else plain.gather(1, order),
        )
        # On a GPU, looking would mean waiting.
        if distances.is_cuda or (
            places.shape[1] > self.fewest and not float(distances[:, -1].amax()) < torch.inf
        ):
            found.clear(distances < torch.inf)
        return found


def retriever_of(
    shortlists: Sequence[Shortlist], keys: Keys, projection: Projection, device: torch.device
) -> ShortlistRetriever:
    """A retriever for some sentences' shortlists, whose rows are of these keys."""
    if device.type != "cpu":
        shortlists, keys = _moved(shortlists, keys, device)
    projection = projection.to(device)
    counts = [len(one.ids) for one in shortlists]
    length = max(counts, default=0)
    scorers: dict[int, Scorer] = {}  # of sentences with the same entries
    entries = torch.empty((sum(counts) + 1, 4), dtype=torch.int64)
    at = 0
    for one in shortlists:
        own = entries[at : (at := at + len(one.ids))]
        own[:, 0], own[:, 1], own[:, 2], own[:, 3] = one.rows, one.values, one.ids, one.words
        if id(one.ids) not in scorers:
            codes, norms = one.codes.to(device), one.norms.to(device)
            scorers[id(one.ids)] = scorer_of(codes, norms, projection.scale, length)
    # What stands for no entry has a row all the same, one that is there: files of other rows may be gone.
    entries[-1] = torch.tensor([int(entries[0, 0]) if at else 0, 0, -1, ALL_WORDS])
    count = torch.tensor(counts, dtype=torch.int64, device=device)[:, None]
    return ShortlistRetriever(
        keys=keys,
        projection=projection,
        scorers=[scorers[id(one.ids)] for one in shortlists],
        length=length,
        first=count.cumsum(0) - count,
        count=count,
        fewest=min(counts, default=0),
        entries=entries.to(device),
        similarity=torch.cat([*(one.similarity for one in shortlists), torch.zeros(1)]).to(device),
        rare=torch.tensor([one.rare for one in shortlists], dtype=torch.int64, device=device)[:, None],
    )


def _moved(
    shortlists: Sequence[Shortlist], keys: Keys, device: torch.device
) -> tuple[list[Shortlist], Gathered]:
    """Shortlists whose keys lie one after the other on a device."""
    distinct = {id(one.ids): one.rows for one in shortlists}
    rows = torch.cat([*distinct.values(), torch.zeros(0, dtype=torch.int64)])
    firsts, at = {}, 0
    for name, own in distinct.items():
        firsts[name] = at
        at += len(own)
    moved = [replace(one, rows=torch.arange(len(one.rows)) + firsts[id(one.ids)]) for one in shortlists]
    return moved, Gathered(keys.take(rows).to(device))
