"""Search in shortlists: for each sentence only the entries of the segments whose sources resemble it best.

They are gathered and packed once, so that the work of a step does not depend on how large the memory is. A
step scores a sentence's entries in 8 bits (`scores.py`) and ranks the best of them exactly, by their stored
keys.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import torch
from torch import Tensor

from kster.memory.search.neighbours import ALL_WORDS, Neighbours, distances_of, filled_up
from kster.memory.search.retriever import Retriever
from kster.memory.search.scores import Scorer, best_places, centre_of, rounded_up, scorer_of

Measure = Callable[[Tensor, Tensor], Tensor]  # distances, similarities (n, k) → other distances (n, k)

MARGIN = 16  # candidates beyond k that are ranked exactly, since scores are rounded
ABOUT = 4  # numbers that are known of an entry
RANKED = 1_024  # queries whose candidates are ranked at a time: 100 MiB at d = 512 and k = 32


@dataclass(frozen=True, slots=True, eq=False)
class Shortlist:
    """The entries of one sentence's best segments, in the order of their ids; on the CPU.

    Sentences with the same entries share their tensors, and what is made of these.
    """

    keys: Tensor  # (e, d) float16
    values: Tensor  # (e,) int32
    ids: Tensor  # (e,) int64
    similarity: Tensor  # (e,) float32
    words: Tensor  # (e,) int64: which words of the sentence its source has, see `Neighbours`
    rare: int = 0  # which of them are in few sources


@dataclass(frozen=True, slots=True, eq=False)
class ShortlistRetriever(Retriever):
    """The entries of s sentences' shortlists, at most L each.

    All E keys lie one after the other, followed by one that stands for "none" and is infinitely far.
    """

    keys: Tensor  # (E + 1, d) float16
    centre: Tensor  # (d,) float32: what scorers take for the origin, twice
    scorers: list[Scorer]  # per sentence; those with the same entries have the same one
    first: Tensor  # (s, 1) int64: the place of a sentence's first entry among the s · L places
    entries: Tensor  # (s, L, 4) int64: what is at each place, its key's row, value, id and words
    similarity: Tensor  # (s, L) float32
    rare: Tensor  # (s, 1) int64

    @property
    def sentences(self) -> int:
        return len(self.scorers)

    def keep(self, sentences: Tensor) -> ShortlistRetriever:
        return replace(
            self,
            scorers=[self.scorers[i] for i in sentences.tolist()],
            first=_first_places(len(sentences), self.similarity),
            entries=self.entries.index_select(0, sentences),
            similarity=self.similarity.index_select(0, sentences),
            rare=self.rare.index_select(0, sentences),
        )

    def search_for(self, queries: Tensor, sentences: Tensor, k: int) -> Neighbours:
        runs, counts = torch.unique_consecutive(sentences, return_counts=True)
        first, rare = self.first.index_select(0, sentences), self.rare.index_select(0, sentences)
        return self._search(queries, first, rare, runs.tolist(), counts.tolist(), k)

    def search(self, queries: Tensor, k: int) -> Neighbours:
        return self.search_measured(queries, k)

    def search_measured(
        self, queries: Tensor, k: int, nearest: int | None = None, measure: Measure | None = None
    ) -> Neighbours:
        """As `search`, but with a measure only the `nearest` of the k neighbours by that measure."""
        beam = len(queries) // self.sentences
        first, rare = (of.expand(-1, beam).reshape(-1, 1) for of in (self.first, self.rare))
        counts = [beam] * self.sentences
        return self._search(queries, first, rare, range(self.sentences), counts, k, nearest, measure)

    def _search(
        self,
        queries: Tensor,
        first: Tensor,
        rare: Tensor,
        runs: Sequence[int],
        counts: Sequence[int],
        k: int,
        nearest: int | None = None,
        measure: Measure | None = None,
    ) -> Neighbours:
        """first, rare: (n, 1) of each query's sentence; queries come in runs, so many for each of `runs`."""
        length = self.similarity.shape[1]
        if length == 0 or len(queries) == 0:
            nothing = Neighbours.missing(len(queries), nearest or k, queries.shape[1], queries.device)
            nothing.similarity = torch.zeros_like(nothing.distances)
            return nothing
        queries = queries.float()
        scores = self._scores(torch.sub(self.centre, queries, alpha=2), runs, counts)
        places = best_places(scores, min(k + MARGIN, length)) + first  # (n, c)
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
        scores = torch.empty((len(queries), self.similarity.shape[1]), device=queries.device)
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

        The rest of a neighbour is looked up once it is known which neighbours these are.
        """
        # Of equal distances the newest, so the last, comes first.
        places = places.sort(dim=1, descending=True).values
        rows = self.entries.view(-1, ABOUT)[:, 0].index_select(0, places.flatten()).view_as(places)
        distances, order = distances_of(queries, self.keys, rows).sort(dim=1, stable=True)
        distances, places = distances[:, :k], places.gather(1, order[:, :k])
        similarity = self.similarity.view(-1).index_select(0, places.flatten()).view_as(places)
        plain = None
        if measure is not None:
            own, order = measure(distances, similarity).sort(dim=1, stable=True)
            order = order[:, :nearest]
            places, similarity = places.gather(1, order), similarity.gather(1, order)
            plain, distances = distances.gather(1, order), own[:, :nearest]
        entries = self.entries.view(-1, ABOUT).index_select(0, places.flatten())
        rows, values, ids, words = entries.view(*places.shape, ABOUT).unbind(-1)  # (n, k) each
        keys = self.keys.index_select(0, rows.flatten()).view(*rows.shape, -1)
        found = Neighbours(distances, values, ids, keys, similarity, words, plain)
        # On a GPU, looking would mean waiting.
        if distances.is_cuda or not float(distances.amax()) < torch.inf:
            found.clear(distances < torch.inf)
        return found


def _first_places(sentences: int, similarity: Tensor) -> Tensor:
    """(sentences, 1): where the entries of each begin, L places after those of the one before."""
    return torch.arange(sentences, device=similarity.device)[:, None] * similarity.shape[1]


def search_in(shortlists: Sequence[Shortlist], dimension: int, device: torch.device) -> ShortlistRetriever:
    """A retriever for some sentences' shortlists; dimension: of keys."""
    distinct = {id(one.ids): one for one in shortlists}
    count = sum(len(one.ids) for one in distinct.values())
    keys = torch.empty((count + 1, dimension), dtype=torch.float16, device=device)
    keys[count] = torch.inf
    firsts: dict[int, int] = {}  # rows
    at = 0
    for name, one in distinct.items():
        firsts[name] = at
        keys[at : (at := at + len(one.ids))] = one.keys.to(device)
    centre = centre_of(keys[:count])
    length = rounded_up(max((len(one.ids) for one in shortlists), default=0))
    room = torch.empty((length, dimension), device=device)
    scorers = {
        name: scorer_of(keys[firsts[name] : firsts[name] + len(one.ids)], centre, room)
        for name, one in distinct.items()
    }
    nothing = torch.tensor([count, 0, -1, ALL_WORDS], device=device)
    entries = nothing.expand(len(shortlists), length, ABOUT).contiguous()
    similarity = torch.zeros((len(shortlists), length), device=device)
    for i, one in enumerate(shortlists):
        rows = torch.arange(len(one.ids)) + firsts[id(one.ids)]
        about = torch.stack((rows, one.values.long(), one.ids, one.words), dim=-1)
        entries[i, : len(rows)], similarity[i, : len(rows)] = about.to(device), one.similarity.to(device)
    return ShortlistRetriever(
        keys=keys,
        centre=2 * centre,
        scorers=[scorers[id(one.ids)] for one in shortlists],
        first=_first_places(len(shortlists), similarity),
        entries=entries,
        similarity=similarity,
        rare=torch.tensor([one.rare for one in shortlists], dtype=torch.int64, device=device)[:, None],
    )
