"""Beam search that brings terms into translations: positive constraints, each met by any form of a term.

For a sentence with terms the beams are allotted anew at every step: one to the best hypothesis of those
that miss the fewest terms, one to the best of those in the middle of a form, the others to the most
promising of all. What a hypothesis promises is its score less what its missing terms will cost: to begin
each of them, and to write it to its end. The latter depends little on the place, so it is learned from the
first hypothesis that has paid it. Thus those that have a term and those that have it still before them are
compared fairly: a term is written where it costs least, early garbage loses against what comes later in its
place, and no hypothesis is lost because a term is costly. A hypothesis ends when it has all its terms.

After Post and Vilar, "Fast Lexically Constrained Decoding with Dynamic Beam Allocation" (2018), whose beams
are allotted by the number of tokens met; with a beam of four that leaves too little for the rest of the
sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from kster.model.step import Candidates, Predict, Wanting
from kster.terms.gender import Readings, readings_before
from kster.translation.beams import IMPOSSIBLE, Beams, Chosen
from kster.translation.term_agreement import DISAGREEMENT
from kster.translation.term_constraints import Ahead, Course, Outlook, Progress, Requirement
from kster.translation.term_ways import Floats, Ways

LEAST_BEAM = 4  # narrower, there is no room for hypotheses with a term beside those without
COST_OF_BEGINNING = 1.5  # −log p of a form's first token at a good place, and …
COST_OF_THE_REST = 1.0  # … of its other tokens, until one hypothesis has paid for them

_Number = TypeVar("_Number", np.int64, np.float64)


class _Sentence:
    """The progress of a sentence's beams."""

    def __init__(self, requirements: Sequence[Requirement], course: Course, beam: int, k: int) -> None:
        """k: the most requirements that a sentence of the batch has."""
        self.requirements, self.course = requirements, course
        self.progress = [course.start] * beam
        self.inner = [0.0] * beam  # what the form that each beam is in has cost since its first token
        self.said = [""] * beam  # by each beam, where an agreement is looked at
        self.agrees = any(one.agreement is not None for one in requirements)
        self.ahead: list[Ahead] = []
        self.free = False  # all hypotheses have all terms: it is searched like any other from now on
        self.rests = [COST_OF_THE_REST] * k  # what forms cost after their beginning
        self._paid = [False] * k  # whether that is what one has cost
        self._costs = dict[Readings | None, list[float]]()
        self._costs[None] = self._costs_after(None)
        self._unused = course.ahead(course.start).beginnings.outside  # of beams that are not in use

    def look_ahead(self) -> list[Ahead]:
        """What may follow each beam."""
        self.ahead = [own.ahead or self.course.ahead(own) for own in self.progress]
        return self.ahead

    def costs_of_beginning(self) -> list[list[float]]:
        """Of each beam, what it costs to begin a form of each requirement after what it has said."""
        if not self.agrees:
            return [self._costs[None]] * len(self.said)
        found = []
        for said, ahead in zip(self.said, self.ahead, strict=True):
            before = readings_before(said) if len(ahead.tokens) else None
            costs = self._costs.get(before)
            if costs is None:
                costs = self._costs[before] = self._costs_after(before)
            found.append(costs)
        return found

    def _costs_after(self, before: Readings | None) -> list[float]:
        """before: what the words that were said allow after them (`readings_before`)."""
        each = (one.agreement for one in self.requirements)
        costs = [0.0 if own is None else own.cost_of_beginning(before) for own in each]
        return costs + [0.0] * (len(self.rests) - len(costs))

    def follow(
        self, parents: list[int], tokens: list[int], inner: Floats, text_of: Callable[[int], str], eos: int
    ) -> None:
        """Go on with beams that have read these tokens after what their parents had read.

        inner: (b, w) what the form has cost that each of the tokens ahead goes on with.
        """
        before, self.inner = self.progress, [0.0] * len(parents)
        self.progress = [self._unused] * len(parents)
        for beam, (parent, token) in enumerate(zip(parents, tokens, strict=True)):
            if token == eos:  # no more than this many could go on
                continue
            ahead = self.ahead[parent]
            after = self.progress[beam] = ahead.after(token)
            if token in ahead.going_on:
                self.inner[beam] = float(inner[parent, ahead.column_of(token)])
            if after.ended is not None:
                self._learn(before[parent], after, self.inner[beam])
        if self.agrees:
            each = zip(parents, tokens, strict=True)
            self.said = [self.said[parent] + text_of(token) for parent, token in each]
        self.free = not any(own.unmet or own.within or own.ended for own in self.progress)

    def left_wrongly(self, beam: int) -> float:
        """What it costs to go on after a form that does not go with the words before it."""
        ended = self.progress[beam].ended
        own = self.requirements[ended[0]].agreement if ended else None
        return DISAGREEMENT if own is not None and not own.fits(self.said[beam]) else 0.0

    def _learn(self, before: Progress, after: Progress, inner: float) -> None:
        """A form was finished: what it has cost is what others will have to pay, if nobody pays less."""
        for i, ((had, _), (has, _)) in enumerate(zip(before.left, after.left, strict=True)):
            if has < had and (not self._paid[i] or inner < self.rests[i]):
                self.rests[i], self._paid[i] = inner, True


class TermSearch:
    """The terms of a batch, and the choices that follow from them.

    What may follow the beams of all its sentences is looked at together: n sentences that still miss terms, b
    beams, w tokens of forms, r others that may follow.
    """

    def __init__(
        self,
        requirements: Sequence[Sequence[Requirement]],
        course_of: Callable[[Sequence[Requirement]], Course],
        beam: int,
        n_best: int,
        text_of: Callable[[int], str],
        ends_word: Callable[[int], bool],
        pad: int,
        eos: int,
    ) -> None:
        """requirements: of every sentence of the batch; none where it has no terms. course_of: their course.

        text_of: a token's text, with a space where a word begins; ends_word: whether a word ends before it.
        """
        self._k = max(map(len, requirements))
        self._sentences = {
            i: _Sentence(own, course_of(own), beam, self._k) for i, own in enumerate(requirements) if own
        }
        self._beam, self._n_best = beam, n_best
        self._text_of = text_of
        self._ends_word, self._pad, self._eos = ends_word, pad, eos
        self._guided = torch.tensor([bool(own) for own in requirements])
        self._open: list[tuple[int, _Sentence]] = []  # those that miss terms, and where in the batch they are
        self._forms = np.empty((0, 0, 0), np.int64)  # (n, b, w) the tokens of forms that may follow
        self._outlook: Outlook  # (…, n, b, 1 + w) outside of forms, and with these tokens
        self._inner: Floats  # (n, b, w) what forms have cost that go on with these tokens

    def predictor(self, predict: Predict, beams: Beams, step: int) -> Predict:
        """One whose candidates have, besides the best tokens, those that forms begin or go on with."""
        done = beams.done.tolist()
        each = ((i, self._sentences.get(number)) for i, number in enumerate(beams.sentence.tolist()))
        self._open = [(i, one) for i, one in each if one is not None and not one.free and not done[i]]
        if not self._open:
            return predict
        ahead = [own for _, sentence in self._open for own in sentence.look_ahead()]
        self._forms = self._of_beams(_padded([own.tokens for own in ahead], self._pad))
        self._outlook = Outlook.of(self._of_beams(_padded([own.columns(self._k) for own in ahead], 0.0)))
        width = self._forms.shape[2]
        if not width:
            return predict
        wanted = np.full((len(done), self._beam, width), self._pad)
        wanted[[i for i, _ in self._open]] = self._forms
        return Wanting(predict, torch.from_numpy(wanted).flatten(0, 1).to(beams.done.device))

    def choose(self, beams: Beams, candidates: Candidates, chosen: Chosen, step: int) -> Chosen:
        """`chosen`, with other ways for the sentences that have terms."""
        if not self._open:
            return chosen
        index = torch.tensor([i for i, _ in self._open], device=beams.done.device)
        shape = (len(beams.done), self._beam, -1)
        given = (*(one.view(shape) for one in candidates), beams.open_scores, beams.limit)
        tokens, log_probs, scores, limits = (one.index_select(0, index).cpu().numpy() for one in given)
        ways = self._ways(tokens, log_probs.astype(np.float64), scores.astype(np.float64))
        new = map(torch.from_numpy, ways.allot(step + 1 >= limits, self._eos))
        return Chosen(*(old.index_copy(0, index, own.to(old)) for old, own in zip(chosen, new, strict=True)))

    def follow(self, beams: Beams, step: int, penalty: float) -> None:
        """After a step: which beam goes on with which progress, and which sentences are done.

        A sentence is when its open hypotheses cannot become better than those it has.
        """
        parents, tokens = beams.parents[:, step].tolist(), beams.tokens[:, step].tolist()
        for n, (i, sentence) in enumerate(self._open):
            sentence.follow(parents[i], tokens[i], self._inner[n], self._text_of, self._eos)
        hopeless = beams.open_scores[:, 0] / penalty <= beams.scores[:, self._n_best - 1]
        beams.done |= hopeless & self._guided.to(beams.done.device)[beams.sentence]

    def _ways(self, tokens: NDArray[np.int64], log_probs: Floats, scores: Floats) -> Ways:
        """How the sentences may go on. tokens, log_probs: (n, b, w + r) of the candidates; scores: (n, b)."""
        forms, width = self._forms, self._forms.shape[2]
        log_probs[tokens == self._pad] = -inf
        log_probs[scores <= IMPOSSIBLE / 2] = -inf  # beams that are not in use
        of_forms, of_others, others = log_probs[..., :width], log_probs[..., width:], tokens[..., width:]
        twice = others[..., None] == forms[:, :, None]  # (n, b, r, w)
        np.maximum(of_forms, np.where(twice, of_others[..., None], -inf).max(2), out=of_forms)
        of_others[twice.any(3)] = -inf

        totals = scores[..., None] + log_probs
        due, cost, paid, inner = self._due(of_forms)
        totals[..., :width] -= cost
        at_odds = self._leave(totals[..., width:], others)
        promises, before, unmet = (np.full_like(totals, -inf) for _ in range(3))
        promised = totals[..., :width] - due[..., 1:]
        # Ways from one beam promise the same as long as they pay what is due, but for rounding.
        goes_on = inner > 0
        promises[..., :width] = np.where(goes_on, np.round(promised + paid, 3), promised)
        began = np.where(goes_on, np.round(promised + inner, 3), promised)
        before[..., :width] = np.where(self._outlook.within[..., 1:], began, -inf)
        missing = self._outlook.unmet[..., :1]  # outside of forms
        unmet[..., :width], unmet[..., width:] = self._outlook.unmet[..., 1:], missing
        is_end = others == self._eos
        promises[..., width:] = np.where(is_end, -inf, totals[..., width:] - due[..., :1])
        complete = is_end & (missing == 0) & ~at_odds
        ends = np.where(complete, totals[..., width:], -inf).max(2)
        return Ways(tokens, totals, _possible(promises, at_odds, ends), before, unmet, ends)

    def _due(self, log_probs: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """What the terms that are missing then will cost, (n, b, 1 + w); what it costs to begin a form here,
        and where one goes on, what of its rest is paid, and what it has cost, (n, b, w) each.

        log_probs: (n, b, w)
        """
        look = self._outlook
        rests = np.array([one.rests for _, one in self._open]).T[..., None, None]  # (k, n, 1, 1)
        due = (look.left * (COST_OF_BEGINNING + rests)).sum(0) - COST_OF_BEGINNING * look.inside.sum(0)
        costs = np.array([one.costs_of_beginning() for _, one in self._open])  # (n, b, k)
        cost = np.where(look.begun, costs.transpose(2, 0, 1)[..., None], inf).min(0)[..., 1:]
        cost[cost == inf] = 0.0
        here = (look.goes_on[..., 1:] > 0) & (log_probs > -inf)
        before = np.array([one.inner for _, one in self._open])[..., None]  # (n, b, 1)
        self._inner = np.where(here, before - np.where(here, log_probs, 0.0), 0.0)
        paid = (look.inside[..., 1:] * np.minimum(rests, self._inner)).sum(0)
        return due, cost, paid, self._inner

    def _of_beams(self, rows: NDArray[_Number]) -> NDArray[_Number]:
        """(…, n * b, w) → (…, n, b, w)"""
        return rows.reshape(*rows.shape[:-2], len(self._open), self._beam, -1)

    def _leave(self, totals: Floats, others: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Take from the scores of what leaves a form wrongly; returns where another word would come of a
        form, all (n, b, r)."""
        at_odds = np.zeros(others.shape, np.bool_)
        for n, (_, sentence) in enumerate(self._open):
            for beam, progress in enumerate(sentence.progress):
                if progress.ended is not None:
                    totals[n, beam] -= sentence.left_wrongly(beam)
                    at_odds[n, beam] = [not self._ends_word(token) for token in others[n, beam].tolist()]
                if progress.grown:
                    at_odds[n, beam] = True
        return at_odds


def _possible(promises: Floats, at_odds: NDArray[np.bool_], ends: Floats) -> Floats:
    """Promises without those of others than forms that are at odds with one, unless nothing else can follow
    in their sentence. promises: (n, b, w + r); at_odds: (n, b, r); ends: (n, b)."""
    good = promises.copy()
    good[..., -at_odds.shape[2] :][at_odds] = -inf
    stuck = ~((good > -inf).any((1, 2)) | (ends > -inf).any(1))
    good[stuck] = promises[stuck]
    return good


def _padded(rows: Sequence[NDArray[_Number]], filler: float) -> NDArray[_Number]:
    """(…, rows, longest) of rows (…, length)."""
    lengths = np.array([row.shape[-1] for row in rows])
    filled: NDArray[np.bool_] = np.arange(lengths.max()) < lengths[:, None]
    padded = np.full((*rows[0].shape[:-1], *filled.shape), filler, rows[0].dtype)
    padded[..., filled] = np.concatenate(rows, axis=-1)
    return padded
