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
from kster.translation.term_constraints import Ahead, Beginnings, Course, Progress, Requirement
from kster.translation.term_ways import Floats, Ways

LEAST_BEAM = 4  # narrower, there is no room for hypotheses with a term beside those without
COST_OF_BEGINNING = 1.5  # −log p of a form's first token at a good place, and …
COST_OF_THE_REST = 1.0  # … of its other tokens, until one hypothesis has paid for them

Way = tuple[float, float, float, int]  # as in the columns of `Ways`
NO_WAY: Way = -inf, -inf, -inf, 0
_Number = TypeVar("_Number", np.int64, np.float64)


class _Sentence:
    """The progress of a sentence's beams."""

    def __init__(self, requirements: Sequence[Requirement], course: Course, beam: int) -> None:
        self.requirements, self.course = requirements, course
        self.progress = [course.start] * beam
        self.inner = [0.0] * beam  # what the form that each beam is in has cost since its first token
        self.said = [""] * beam  # by each beam, where an agreement is looked at
        self.agrees = any(one.agreement is not None for one in requirements)
        self.ahead: list[Ahead] = []
        self.inner_of: dict[
            tuple[int, int], float
        ] = {}  # … after a token that goes on with the form of a beam
        self.free = False  # all hypotheses have all terms: it is searched like any other from now on
        self._rest = [COST_OF_THE_REST] * len(requirements)  # what forms cost after their beginning
        self._paid = [False] * len(requirements)  # whether that is what one has cost
        self._due: dict[Progress, tuple[float, tuple[float, ...]]] = {}
        self._prices: dict[tuple[Beginnings, Readings | None], Floats] = {}

    def look_ahead(self) -> list[Floats]:
        """What it costs each beam to go on (`_prices_of`)."""
        self.ahead = [own.ahead or self.course.ahead(own) for own in self.progress]
        prices = []
        for ahead, said in zip(self.ahead, self.said, strict=True):
            beginnings = ahead.beginnings
            before = readings_before(said) if self.agrees and beginnings.forms else None
            known = self._prices.get((beginnings, before))
            if known is None:
                known = self._prices[beginnings, before] = self._prices_of(beginnings, before)
            prices.append(known)
        return prices

    def _prices_of(self, beginnings: Beginnings, before: Readings | None) -> Floats:
        """What it costs to go on outside of forms, and to begin each.

        before: what the words that were said allow after them (`readings_before`). Returns (4, 1 + w): what
        is taken from what a hypothesis promises, and what of it also from its score; how many terms it will
        miss; whether it will be in a form.
        """
        rows = []
        for after in beginnings.alike:
            cost = self._cost_of_beginning(after, before)
            rows.append((self.due(after)[0] + cost, cost, after.unmet, bool(after.within)))
        return np.array(rows)[beginnings.kinds].T

    def _cost_of_beginning(self, after: Progress, before: Readings | None) -> float:
        """after: of the first token of a form, or of several."""
        begun = (
            after.within or (after.ended and (after.ended,)) or ()
        )  # a form of one token has ended already
        each = (self.requirements[i].agreement for i, _ in begun)
        return min((0.0 if own is None else own.cost_of_beginning(before) for own in each), default=0.0)

    def due(self, progress: Progress) -> tuple[float, tuple[float, ...]]:
        """What the terms that a hypothesis misses will cost, and how much of that is for the rest of the
        forms that it is in; few differ, so that is worked out once."""
        known = self._due.get(progress)
        if known is None:
            within = {i for i, _ in progress.within if progress.left[i][0]}
            due = sum(
                count * (COST_OF_BEGINNING + rest)
                for (count, _), rest in zip(progress.left, self._rest, strict=True)
            )
            rests = tuple(self._rest[i] for i in within)
            known = self._due[progress] = due - COST_OF_BEGINNING * len(within), rests
        return known

    def go_on(self, beam: int, token: int, score: float, log_prob: float) -> Way:
        """The way of a token that goes on with a form: its columns in `Ways`; score: with that token."""
        after = self.ahead[beam].going_on[token]
        due, rests = self.due(after)
        if after.begun:  # what goes on has ended, and something else begins
            score -= self._cost_of_beginning(after, readings_before(self.said[beam]))
            return score, score - due, score - due if after.within else -inf, after.unmet
        inner = self.inner_of[beam, token] = self.inner[beam] - log_prob
        paid = sum(min(rest, inner) for rest in rests)
        # Ways from one beam promise the same as long as they pay what is due, but for rounding.
        before = round(score - due + inner, 3) if after.within else -inf
        return score, round(score - due + paid, 3), before, after.unmet

    def follow(self, parents: list[int], tokens: list[int], text_of: Callable[[int], str], eos: int) -> None:
        """Go on with beams that have read these tokens after what their parents had read."""
        nothing = self.course.ahead(self.course.start).beginnings.outside  # of beams that are not in use
        before = self.progress
        self.progress = [
            nothing if token == eos else self.ahead[parent].after(token)
            for parent, token in zip(parents, tokens, strict=True)
        ]
        self.inner = [self.inner_of.get(way, 0.0) for way in zip(parents, tokens, strict=True)]
        for parent, after, inner in zip(parents, self.progress, self.inner, strict=True):
            if after.ended is not None:
                self._learn(before[parent], after, inner)
        if self.agrees:
            each = zip(parents, tokens, strict=True)
            self.said = [self.said[parent] + text_of(token) for parent, token in each]
        self.inner_of.clear()
        self.free = not any(own.unmet or own.within or own.ended for own in self.progress)

    def left_wrongly(self, beam: int) -> float:
        """What it costs to go on after a form that does not go with the words before it."""
        ended = self.progress[beam].ended
        own = self.requirements[ended[0]].agreement if ended else None
        return DISAGREEMENT if own is not None and not own.fits(self.said[beam]) else 0.0

    def _learn(self, before: Progress, after: Progress, inner: float) -> None:
        """A form was finished: what it has cost is what others will have to pay, if nobody pays less."""
        for i, ((had, _), (has, _)) in enumerate(zip(before.left, after.left, strict=True)):
            if has < had and (not self._paid[i] or inner < self._rest[i]):
                self._rest[i], self._paid[i] = inner, True
                self._due.clear()
                self._prices.clear()


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
        self._sentences = {
            i: _Sentence(own, course_of(own), beam) for i, own in enumerate(requirements) if own
        }
        self._beam, self._n_best = beam, n_best
        self._text_of = text_of
        self._ends_word, self._pad, self._eos = ends_word, pad, eos
        self._guided = torch.tensor([bool(own) for own in requirements])
        self._open: list[tuple[int, _Sentence]] = []  # those that miss terms, and where in the batch they are
        self._forms = np.empty((0, 0, 0), np.int64)  # (n, b, w) the tokens of forms that may follow
        self._prices = np.empty((4, 0, 0, 0))  # (4, n, b, 1 + w) `_Sentence.look_ahead`

    def predictor(self, predict: Predict, beams: Beams, step: int) -> Predict:
        """One whose candidates have, besides the best tokens, those that forms begin or go on with."""
        done = beams.done.tolist()
        each = ((i, self._sentences.get(number)) for i, number in enumerate(beams.sentence.tolist()))
        self._open = [(i, one) for i, one in each if one is not None and not one.free and not done[i]]
        if not self._open:
            return predict
        prices = [own for _, sentence in self._open for own in sentence.look_ahead()]
        forms = [ahead.tokens for _, sentence in self._open for ahead in sentence.ahead]
        self._prices = _padded(prices, 0.0).reshape(4, len(self._open), self._beam, -1)
        self._forms = _padded(forms, self._pad).reshape(len(self._open), self._beam, -1)
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
        for i, sentence in self._open:
            sentence.follow(parents[i], tokens[i], self._text_of, self._eos)
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
        ways = Ways(tokens, totals, totals.copy(), np.full_like(totals, -inf), np.zeros_like(totals))
        begun = slice(self._prices.shape[3] - 1)  # what goes on with a form comes behind
        due, cost, unmet, within = self._prices[..., 1:]
        ways.totals[..., begun] -= cost
        ways.promises[..., begun] -= due
        ways.before[..., begun] = np.where(within, ways.promises[..., begun], -inf)
        ways.unmet[..., begun] = unmet
        at_odds = self._go_on(ways, log_probs, width)
        due, _, unmet, _ = self._prices[..., :1]  # outside of forms
        ways.promises[..., width:] = ways.totals[..., width:] - due
        ways.unmet[..., width:] = unmet
        is_end = others == self._eos
        ways.promises[..., width:][is_end] = -inf
        complete = is_end & (unmet == 0) & ~at_odds
        ways.ends = np.where(complete, ways.totals[..., width:], -inf).max(2)
        ways.leave_out(at_odds)
        return ways

    def _go_on(self, ways: Ways, log_probs: Floats, width: int) -> NDArray[np.bool_]:
        """Put in the ways that go on with a form; returns (n, b, r) where another token would make another
        word of one."""
        at_odds = np.zeros((*log_probs.shape[:2], log_probs.shape[2] - width), np.bool_)
        places: list[tuple[int, int, int]] = []
        found: list[Way] = []
        for n, (_, sentence) in enumerate(self._open):
            for beam, (progress, ahead) in enumerate(zip(sentence.progress, sentence.ahead, strict=True)):
                if ahead.going_on:
                    first = len(ahead.beginnings.tokens)
                    own = slice(first, len(ahead.tokens))
                    scores, given = ways.totals[n, beam, own].tolist(), log_probs[n, beam, own].tolist()
                    for i, (token, score, log_prob) in enumerate(
                        zip(ahead.going_on, scores, given, strict=True)
                    ):
                        if log_prob > -inf:
                            places.append((n, beam, first + i))
                            found.append(sentence.go_on(beam, token, score, log_prob))
                    places += [(n, beam, i) for i in ahead.twice]
                    found += [NO_WAY] * len(ahead.twice)
                if progress.ended is not None:
                    ways.totals[n, beam, width:] -= sentence.left_wrongly(beam)
                    others = ways.tokens[n, beam, width:].tolist()
                    at_odds[n, beam] = [not self._ends_word(token) for token in others]
                if progress.grown:
                    at_odds[n, beam] = True
        if places:
            at = tuple(np.array(places).T)
            columns = ways.totals, ways.promises, ways.before, ways.unmet
            for column, values in zip(columns, np.array(found).T, strict=True):
                column[at] = values
        return at_odds


def _padded(rows: Sequence[NDArray[_Number]], filler: float) -> NDArray[_Number]:
    """(…, rows, longest) of rows (…, length)."""
    lengths = np.array([row.shape[-1] for row in rows])
    filled: NDArray[np.bool_] = np.arange(lengths.max()) < lengths[:, None]
    padded = np.full((*rows[0].shape[:-1], *filled.shape), filler, rows[0].dtype)
    padded[..., filled] = np.concatenate(rows, axis=-1)
    return padded
