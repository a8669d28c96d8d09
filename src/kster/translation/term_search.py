"""Beam search that brings terms into translations: positive constraints, each met by any form of a term.

For a sentence with terms the beams are allotted anew at every step: one to the best hypothesis of those
that miss the fewest terms, one to the best of those in the middle of a form, the others to the most
promising of all. What a hypothesis promises is its score less what its missing terms will cost: to begin
each of them, and to write it to its end. The latter depends little on the place, so it is learned from the
first hypothesis that has paid it. Thus those that have a term and those that have it still before them are
compared fairly: a term is written where it costs least, early garbage loses against what comes later in its
place, and no hypothesis is lost because a term is dear. A hypothesis ends when it has all its terms.

After Post and Vilar, "Fast Lexically Constrained Decoding with Dynamic Beam Allocation" (2018), whose beams
are allotted by the number of tokens met; with a beam of four that leaves too little for the rest of the
sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from heapq import nlargest
from math import inf
from typing import NamedTuple

import torch
from torch import Tensor

from kster.model.step import Candidates, Predict
from kster.translation.beam import IMPOSSIBLE, Beams, Chosen
from kster.translation.term_constraints import Progress, Requirement, continuations, start

LEAST_BEAM = 4  # narrower, there is no room for hypotheses with a term beside those without
COST_OF_BEGINNING = 1.5  # −log p of a form's first token at a good place, and …
COST_OF_THE_REST = 1.0  # … of its other tokens, until one hypothesis has paid for them
UNMET = 1.0e4  # taken from the score of what ends without a term, because it has become too long
MORE_CANDIDATES = 4  # than the search asks for: some may not follow


class _Way(NamedTuple):
    """A way for a sentence to go on."""

    score: float
    parent: int
    token: int
    progress: Progress
    promise: float  # its score less what the terms that it misses will cost


class _Sentence:
    """The progress of a sentence's beams."""

    def __init__(self, requirements: Sequence[Requirement], beam: int) -> None:
        self.requirements = requirements
        self.progress = [start(requirements)] * beam
        self.continuations: list[dict[int, Progress]] = []
        self.opened: dict[tuple[int, int], Progress] = {}
        self.rest: list[float | None] = [None] * len(
            requirements
        )  # what forms have cost after their beginning

    def due(self, progress: Progress) -> float:
        """What the terms that a hypothesis misses will cost."""
        within = {i for i, _ in progress.within}
        due = 0.0
        for i, (count, _) in enumerate(progress.left):
            if count:
                paid = self.rest[i]
                rest = COST_OF_THE_REST if paid is None else paid
                due += count * (COST_OF_BEGINNING + rest)
                if i in within:
                    due -= COST_OF_BEGINNING + min(rest, progress.inner)
        return due

    def learn(self, before: Progress, after: Progress) -> None:
        """A form was finished: what it has cost is what others will have to pay, if nobody pays less."""
        for i, ((had, _), (has, _)) in enumerate(zip(before.left, after.left, strict=True)):
            paid = self.rest[i]
            if has < had:
                self.rest[i] = after.inner if paid is None else min(paid, after.inner)


class TermSearch:
    """The terms of a batch, and the choices that follow from them."""

    def __init__(
        self,
        requirements: Sequence[Sequence[Requirement]],
        beam: int,
        n_best: int,
        ends_word: Callable[[int], bool],
        pad: int,
        eos: int,
    ) -> None:
        """requirements: of every sentence of the batch; none where it has no terms.

        ends_word: whether a word ends before a token.
        """
        self._sentences = {i: _Sentence(own, beam) for i, own in enumerate(requirements) if own}
        self._beam, self._n_best = beam, n_best
        self._ends_word, self._pad, self._eos = ends_word, pad, eos

    def predictor(self, predict: Predict, beams: Beams, step: int) -> Predict:
        """One whose candidates have, besides the best tokens, those that forms begin or go on with."""
        rows: list[list[int]] = []
        for number in beams.sentence.tolist():
            sentence = self._sentences.get(number)
            if sentence is None:
                rows += [[]] * self._beam
                continue
            sentence.continuations = [
                continuations(sentence.requirements, progress, first=step == 0)
                for progress in sentence.progress
            ]
            rows += map(list, sentence.continuations)
        width = max(map(len, rows))
        padded = [row + [self._pad] * (width - len(row)) for row in rows]
        wanted = torch.tensor(padded, dtype=torch.int64, device=beams.done.device)  # (s * b, w)

        def with_forms(
            queries: Tensor,
            logits: Tensor,
            count: int,
            _: Tensor | None = None,
            focus: Tensor | None = None,
        ) -> Candidates:
            return predict(queries, logits, count + MORE_CANDIDATES, wanted, focus)

        return with_forms

    def choose(self, beams: Beams, candidates: Candidates, chosen: Chosen, step: int) -> Chosen:
        """`chosen`, with other ways for the sentences that have terms."""
        numbers, done, limits = beams.sentence.tolist(), beams.done.tolist(), beams.limit.tolist()
        own = [i for i, number in enumerate(numbers) if number in self._sentences and not done[i]]
        if not own:
            return chosen
        index = torch.tensor(own, device=beams.done.device)
        shape = (len(numbers), self._beam, -1)
        columns = (
            candidates.tokens.view(shape).index_select(0, index).tolist(),
            candidates.log_probs.view(shape).index_select(0, index).tolist(),
            beams.open_scores.index_select(0, index).tolist(),
        )
        rows = []
        for i, tokens, log_probs, scores in zip(own, *columns, strict=True):
            sentence = self._sentences[numbers[i]]
            ways = self._ways(sentence, tokens, log_probs, scores)
            rows.append(self._allot(sentence, ways, at_limit=step + 1 >= limits[i]))
        new = (torch.tensor(column, device=index.device) for column in zip(*rows, strict=True))
        return Chosen(*(old.index_copy(0, index, row.to(old)) for old, row in zip(chosen, new, strict=True)))

    def follow(self, beams: Beams, step: int, penalty: float) -> None:
        """After a step: which beam goes on with which progress, and which sentences are done.

        A sentence is when its open hypotheses cannot become better than those it has.
        """
        parents, tokens = beams.parents[:, step].tolist(), beams.tokens[:, step].tolist()
        best_open = (beams.open_scores[:, 0] / penalty).tolist()
        worst_found = beams.scores[:, self._n_best - 1].tolist()
        finished = []
        for i, number in enumerate(beams.sentence.tolist()):
            sentence = self._sentences.get(number)
            if sentence is None or not sentence.opened:
                continue
            nothing = start(sentence.requirements)  # of beams that are not in use
            after = [sentence.opened.get(key, nothing) for key in zip(parents[i], tokens[i], strict=True)]
            for parent, progress in zip(parents[i], after, strict=True):
                sentence.learn(sentence.progress[parent], progress)
            sentence.progress, sentence.opened = after, {}
            if best_open[i] <= worst_found[i]:
                finished.append(i)
        if finished:
            beams.done[torch.tensor(finished, device=beams.done.device)] = True

    def _ways(
        self, sentence: _Sentence, tokens: list[list[int]], log_probs: list[list[float]], scores: list[float]
    ) -> list[_Way]:
        ways: list[_Way] = []
        others: list[_Way] = []
        for parent, score in enumerate(scores):
            if score <= IMPOSSIBLE / 2:  # a beam that is not in use
                continue
            progress, forms = sentence.progress[parent], sentence.continuations[parent]
            outside, room = progress.outside, self._beam
            due = sentence.due(outside)
            best_first = sorted(zip(log_probs[parent], tokens[parent], strict=True), reverse=True)
            for log_prob, token in best_first:
                if log_prob == -inf or token == self._pad:
                    continue
                total = score + log_prob
                after = forms.get(token)
                if after is not None:
                    if not after.begun:
                        after = after._replace(inner=progress.inner - log_prob)
                    ways.append(_Way(total, parent, token, after, total - sentence.due(after)))
                elif progress.ended is not None and not self._ends_word(token):
                    others.append(_Way(total, parent, token, outside, total - due))
                elif room or token == self._eos:  # more of one beam than there are beams cannot go on
                    room -= token != self._eos
                    ways.append(_Way(total, parent, token, outside, total - due))
        return ways or others  # a form may grow into another word only if nothing else can follow

    def _allot(
        self, sentence: _Sentence, ways: list[_Way], *, at_limit: bool
    ) -> tuple[list[float], list[int], list[int]]:
        """The columns of `Chosen`: hypotheses that end, those that go on, and what fills it up."""
        going = [way for way in ways if way.token != self._eos]
        ended = [way for way in ways if way.token == self._eos and not way.progress.unmet]
        ended = sorted(ended, key=lambda way: -way.score)[: self._beam]
        opened: list[_Way] = []

        def take(some: Iterable[_Way], count: int, key: Callable[[_Way], float]) -> None:
            taken = {(way.parent, way.token) for way in opened}
            free = (way for way in some if (way.parent, way.token) not in taken)
            opened.extend(nlargest(count, free, key=key))

        fewest = min((way.progress.unmet for way in going), default=0)
        outside = (way for way in going if way.progress.unmet == fewest and not way.progress.within)
        take(outside, 1, lambda way: way.promise)
        in_a_form = (way for way in going if way.progress.within)
        take(in_a_form, 1, lambda way: way.promise + way.progress.inner)
        take(going, self._beam - len(opened), lambda way: way.promise)
        if at_limit:  # there is no more room: what misses something comes last
            late = [way._replace(score=way.score - UNMET * way.progress.unmet) for way in opened]
            ended, opened = sorted([*ended, *late], key=lambda way: -way.score)[: self._beam], []
        sentence.opened = {(way.parent, way.token): way.progress for way in opened}
        row = ended + opened
        row += [_Way(4 * IMPOSSIBLE, 0, self._eos, Progress(()), 0.0)] * (2 * self._beam - len(row))
        return [way.score for way in row], [way.parent for way in row], [way.token for way in row]
