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
from kster.memory.search.scores import SHARED, Scorer, best_places, centre_of, scorer_of

Measure = Callable[[Tensor, Tensor], Tensor]  # distances, similarities (n, k) → other distances (n, k)

MARGIN = 16  # candidates beyond k that are ranked exactly, since scores are rounded
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

    All E entries lie one after the other, followed by one that stands for "none".
    """

    keys: Tensor  # (E + 1, d) float16
    values: Tensor  # (E + 1,) int64
    ids: Tensor  # (E + 1,) int64, the last is -1
    centre: Tensor  # (d,) float32: what scorers take for the origin
    scorers: list[Scorer]  # per sentence; those with the same entries have the same one
    first: Tensor  # (s,) int64: where a sentence's entries begin …
    count: Tensor  # (s,) int64: … and how many there are
    similarity: Tensor  # (s, L) float32
    words: Tensor  # (s, L) int64
    rare: Tensor  # (s,) int64

    @property
    def sentences(self) -> int:
        return len(self.scorers)

    def keep(self, sentences: Tensor) -> ShortlistRetriever:
        return replace(
            self,
            scorers=[self.scorers[i] for i in sentences.tolist()],
            first=self.first.index_select(0, sentences),
            count=self.count.index_select(0, sentences),
            similarity=self.similarity.index_select(0, sentences),
            words=self.words.index_select(0, sentences),
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
        sentences = torch.arange(self.sentences, device=queries.device).repeat_interleave(beam)
        counts = [beam] * self.sentences
        return self._search(queries, sentences, range(self.sentences), counts, k, nearest, measure)

    def _search(
        self,
        queries: Tensor,
        sentences: Tensor,
        runs: Sequence[int],
        counts: Sequence[int],
        k: int,
        nearest: int | None = None,
        measure: Measure | None = None,
    ) -> Neighbours:
        """sentences: (n,) of each query; they come in runs of this many."""
        length = self.words.shape[1]
        if length == 0 or len(queries) == 0:
            nothing = Neighbours.missing(len(queries), nearest or k, queries.shape[1], queries.device)
            nothing.similarity = torch.zeros_like(nothing.distances)
            return nothing
        scores = self._scores(queries.float() - self.centre, runs, counts)
        places = best_places(scores, min(k + MARGIN, length))  # (n, c)
        parts = zip(queries.split(RANKED), sentences.split(RANKED), places.split(RANKED), strict=True)
        found = Neighbours.stack([self._ranked(*part, k, nearest, measure) for part in parts])
        found.rare = self.rare.index_select(0, sentences)
        return filled_up(found, nearest or k)

    def _scores(self, queries: Tensor, runs: Sequence[int], counts: Sequence[int]) -> Tensor:
        """(n, L) float32, smaller is nearer; inf where a sentence has no entry."""
        scores = torch.empty((len(queries), self.words.shape[1]), device=queries.device)
        first = 0
        # By identity: two sentences that share no word with any source have two scorers of no entries.
        for _, same in groupby(zip(runs, counts, strict=True), lambda run: id(self.scorers[run[0]])):
            own = list(same)
            here = slice(first, first := first + sum(rows for _, rows in own))
            found = self.scorers[own[0][0]](queries[here])  # (rows, entries)
            scores[here, : found.shape[1]] = found
            scores[here, found.shape[1] :] = torch.inf
        return scores

    def _ranked(
        self,
        queries: Tensor,
        sentences: Tensor,
        places: Tensor,
        k: int,
        nearest: int | None,
        measure: Measure | None,
    ) -> Neighbours:
        """The k nearest of these places, (n, c), by the distances of the stored keys; see `rank`.

        The rest of a neighbour is looked up once it is known which neighbours these are.
        """
        places = places.sort(
            dim=1, descending=True
        ).values  # of equal distances the newest, so the last, first
        begin = sentences[:, None] * self.words.shape[1]  # (n, 1) in what is said of all sentences' entries
        shift = self.first.index_select(0, sentences)[:, None] - begin  # from there to the entries themselves
        at = places + begin
        distances = distances_of(queries.float(), self.keys, (at + shift).clamp_(max=len(self.ids) - 1))
        there = (places < self.count.index_select(0, sentences)[:, None]).logical_and_(distances.isfinite())
        distances, order = torch.where(there, distances, torch.inf).sort(dim=1, stable=True)
        distances, at = distances[:, :k], at.gather(1, order[:, :k])
        similarity = _at(self.similarity, at)
        plain = None
        if measure is not None:
            own, order = measure(distances, similarity).sort(dim=1, stable=True)
            order = order[:, :nearest]
            at, similarity = at.gather(1, order), similarity.gather(1, order)
            plain, distances = distances.gather(1, order), own[:, :nearest]
        rows = (at + shift).clamp_(max=len(self.ids) - 1)
        found = Neighbours(
            distances=distances,
            values=_at(self.values, rows),
            ids=_at(self.ids, rows),
            keys=self.keys.index_select(0, rows.flatten()).view(*rows.shape, -1),
            similarity=similarity,
            words=_at(self.words, at),
            plain=plain,
        )
        there = distances.isfinite()
        if there.is_cuda or not bool(there.all()):  # on a GPU, looking would mean waiting
            found.values, found.ids = found.values * there, found.ids.masked_fill(~there, -1)
            found.keys, found.similarity = found.keys * there[..., None], similarity * there
        return found


def _at(column: Tensor, places: Tensor) -> Tensor:
    return column.view(-1).index_select(0, places.flatten()).view_as(places)


def search_in(shortlists: Sequence[Shortlist], dimension: int, device: torch.device) -> ShortlistRetriever:
    """A retriever for some sentences' shortlists; dimension: of keys."""
    distinct = {id(one.ids): one for one in shortlists}
    entries = sum(len(one.ids) for one in distinct.values())
    keys = torch.zeros((entries + 1, dimension), dtype=torch.float16, device=device)
    values = torch.zeros(entries + 1, dtype=torch.int64, device=device)
    ids = torch.full((entries + 1,), -1, dtype=torch.int64, device=device)
    places: dict[int, slice] = {}
    first = 0
    for name, one in distinct.items():
        places[name] = here = slice(first, first := first + len(one.ids))
        keys[here], values[here], ids[here] = one.keys.to(device), one.values.to(device), one.ids.to(device)
    centre = centre_of(keys[:entries])
    scorers = {name: scorer_of(keys[here], centre) for name, here in places.items()}
    length = -(-max((len(one.ids) for one in shortlists), default=0) // SHARED) * SHARED
    similarity = torch.zeros((len(shortlists), length), device=device)
    words = torch.full((len(shortlists), length), ALL_WORDS, dtype=torch.int64, device=device)
    for i, one in enumerate(shortlists):
        here = slice(len(one.ids))
        similarity[i, here], words[i, here] = one.similarity.to(device), one.words.to(device)
    own = [scorers[id(one.ids)] for one in shortlists]
    numbers = [(places[id(one.ids)].start, len(one.ids), one.rare) for one in shortlists]
    begin, count, rare = torch.tensor(numbers, dtype=torch.int64, device=device).view(-1, 3).unbind(1)
    return ShortlistRetriever(keys, values, ids, centre, own, begin, count, similarity, words, rare)
