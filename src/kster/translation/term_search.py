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

from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import islice
from math import inf
from operator import attrgetter
from typing import NamedTuple

import torch

from kster.model.step import Candidates, Predict, Wanting
from kster.terms.gender import readings_before
from kster.translation.beams import IMPOSSIBLE, Beams, Chosen
from kster.translation.term_agreement import DISAGREEMENT
from kster.translation.term_constraints import Progress, Requirement, continuations, start

LEAST_BEAM = 4  # narrower, there is no room for hypotheses with a term beside those without
COST_OF_BEGINNING = 1.5  # −log p of a form's first token at a good place, and …
COST_OF_THE_REST = 1.0  # … of its other tokens, until one hypothesis has paid for them
UNMET = 1.0e4  # taken from the score of what ends without a term, because it has become too long


class _Way(NamedTuple):
    """A way for a sentence to go on."""

    score: float
    parent: int
    token: int
    progress: Progress
    promise: float  # its score less what the terms that it misses will cost
    before: float = 0.0  # what it promised before the form that it is in went on


_BY_PROMISE = attrgetter("promise")
_BEFORE = attrgetter("before")
_BY_SCORE = attrgetter("score")


class _Form(NamedTuple):
    """A token that a form begins or goes on with."""

    after: Progress  # except `inner`
    due: float  # what the terms that are missing then will cost, less …
    rests: list[float]  # … what has been paid of each of these already


class _Ahead(NamedTuple):
    """What may follow a hypothesis."""

    forms: dict[int, _Form]
    outside: Progress  # after any other token
    due: float


class _Sentence:
    """The progress of a sentence's beams.

    What may follow a progress, and what it still has to pay, is worked out once: few differ.
    """

    def __init__(self, requirements: Sequence[Requirement], beam: int) -> None:
        self.requirements = requirements
        self.beginning = start(requirements)
        self.progress = [self.beginning] * beam
        self.said = [""] * beam  # by each beam, where an agreement is looked at
        self.agrees = any(one.agreement is not None for one in requirements)
        self.ahead: list[_Ahead] = []
        self.opened: dict[tuple[int, int], Progress] = {}
        self.free = False  # all hypotheses have all terms: it is searched like any other from now on
        self._rest = [COST_OF_THE_REST] * len(requirements)  # what forms cost after their beginning
        self._paid = [False] * len(requirements)  # whether that is what one has cost
        self._known: dict[object, _Ahead] = {}

    def look_ahead(self, *, first: bool) -> None:
        """Note what may follow each beam; first: at the beginning of the sentence."""
        self.ahead = [self._after(progress, first=first) for progress in self.progress]

    def _after(self, progress: Progress, *, first: bool) -> _Ahead:
        key = (progress.left, progress.within, progress.ended, progress.grown, first)
        if key not in self._known:
            found = continuations(self.requirements, progress, first=first)
            forms = {token: _Form(after, *self._due(after)) for token, after in found.items()}
            outside = progress.outside
            self._known[key] = _Ahead(forms, outside, self._due(outside)[0])
        return self._known[key]

    def _due(self, progress: Progress) -> tuple[float, list[float]]:
        """What the terms that a hypothesis misses will cost, as in `_Form`."""
        within = {i for i, _ in progress.within if progress.left[i][0]}
        due = sum(
            count * (COST_OF_BEGINNING + rest)
            for (count, _), rest in zip(progress.left, self._rest, strict=True)
        )
        return due - COST_OF_BEGINNING * len(within), [self._rest[i] for i in within]

    def follow(self, parents: list[int], tokens: list[int], text_of: Callable[[int], str]) -> None:
        """Go on with beams that have read these tokens after what their parents had read."""
        nothing = self.beginning  # of beams that are not in use
        after = [self.opened.get(key, nothing) for key in zip(parents, tokens, strict=True)]
        for parent, progress in zip(parents, after, strict=True):
            if progress.ended is not None:
                self._learn(self.progress[parent], progress)
        if self.agrees:
            each = zip(parents, tokens, strict=True)
            self.said = [self.said[parent] + text_of(token) for parent, token in each]
        self.progress, self.opened = after, {}
        self.free = not any(own.unmet or own.within or own.ended for own in after)

    def costs_of_beginning(self, beam: int) -> list[float]:
        """Of each requirement, what it costs to begin a form after what a beam has said; [] if nothing."""
        if not self.agrees:
            return []
        before = readings_before(self.said[beam])
        each = (one.agreement for one in self.requirements)
        costs = [0.0 if own is None else own.cost_of_beginning(before) for own in each]
        return costs if any(costs) else []

    def left_wrongly(self, beam: int, progress: Progress) -> float:
        """What it costs to go on after a form that does not go with the words before it."""
        own = self.requirements[progress.ended[0]].agreement if progress.ended else None
        return DISAGREEMENT if own is not None and not own.fits(self.said[beam]) else 0.0

    def _learn(self, before: Progress, after: Progress) -> None:
        """A form was finished: what it has cost is what others will have to pay, if nobody pays less."""
        for i, ((had, _), (has, _)) in enumerate(zip(before.left, after.left, strict=True)):
            if has < had and (not self._paid[i] or after.inner < self._rest[i]):
                self._rest[i], self._paid[i] = after.inner, True
                self._known.clear()


class TermSearch:
    """The terms of a batch, and the choices that follow from them."""

    def __init__(
        self,
        requirements: Sequence[Sequence[Requirement]],
        beam: int,
        n_best: int,
        text_of: Callable[[int], str],
        ends_word: Callable[[int], bool],
        pad: int,
        eos: int,
    ) -> None:
        """requirements: of every sentence of the batch; none where it has no terms.

        text_of: a token's text, with a space where a word begins; ends_word: whether a word ends before it.
        """
        self._sentences = {i: _Sentence(own, beam) for i, own in enumerate(requirements) if own}
        self._beam, self._n_best = beam, n_best
        self._text_of = text_of
        self._ends_word, self._pad, self._eos = ends_word, pad, eos

    def predictor(self, predict: Predict, beams: Beams, step: int) -> Predict:
        """One whose candidates have, besides the best tokens, those that forms begin or go on with."""
        rows: list[list[int]] = []
        for number in beams.sentence.tolist():
            sentence = self._sentences.get(number)
            if sentence is None or sentence.free:
                rows += [[]] * self._beam
                continue
            sentence.look_ahead(first=step == 0)
            rows += (list(ahead.forms) for ahead in sentence.ahead)
        width = max(map(len, rows))
        if not width:
            return predict
        padded = [row + [self._pad] * (width - len(row)) for row in rows]
        wanted = torch.tensor(padded, dtype=torch.int64, device=beams.done.device)  # (s * b, w)
        return Wanting(predict, wanted)

    def choose(self, beams: Beams, candidates: Candidates, chosen: Chosen, step: int) -> Chosen:
        """`chosen`, with other ways for the sentences that have terms."""
        numbers, done, limits = beams.sentence.tolist(), beams.done.tolist(), beams.limit.tolist()
        known = map(self._sentences.get, numbers)
        own = [i for i, one in enumerate(known) if one is not None and not one.free and not done[i]]
        if not own:
            return chosen
        index = torch.tensor(own, device=beams.done.device)
        shape = (len(numbers), self._beam, -1)
        log_probs = candidates.log_probs.masked_fill(candidates.tokens == self._pad, -inf)
        log_probs, order = log_probs.view(shape).index_select(0, index).sort()  # (own, b, c)
        columns = (
            candidates.tokens.view(shape).index_select(0, index).gather(2, order).tolist(),
            log_probs.tolist(),
            beams.open_scores.index_select(0, index).tolist(),
        )
        rows = []
        for i, tokens, log_probs, scores in zip(own, *columns, strict=True):
            sentence = self._sentences[numbers[i]]
            going, ended = self._ways(sentence, tokens, log_probs, scores)
            rows.append(self._allot(sentence, going, ended, at_limit=step + 1 >= limits[i]))
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
            if sentence is None or not (sentence.opened or sentence.free):
                continue
            if not sentence.free:
                sentence.follow(parents[i], tokens[i], self._text_of)
            if best_open[i] <= worst_found[i]:
                finished.append(i)
        if finished:
            beams.done[torch.tensor(finished, device=beams.done.device)] = True

    def _ways(
        self, sentence: _Sentence, tokens: list[list[int]], log_probs: list[list[float]], scores: list[float]
    ) -> tuple[list[_Way], list[_Way]]:
        """Those that go on, and those that end with all their terms.

        tokens, log_probs: of each beam, the best last; what stands there again has −∞.
        """
        going: list[_Way] = []
        ended: list[_Way] = []
        others: list[_Way] = []  # a form may become another word only if nothing else can follow
        for parent, score in enumerate(scores):
            if score <= IMPOSSIBLE / 2:  # a beam that is not in use
                continue
            progress, (forms, outside, due) = sentence.progress[parent], sentence.ahead[parent]
            first = bisect_right(log_probs[parent], -inf)
            known = dict(zip(tokens[parent][first:], log_probs[parent][first:], strict=True))
            costs = sentence.costs_of_beginning(parent)
            for token, (after, left, rests) in forms.items():
                log_prob = known.pop(token, None)
                if log_prob is None:
                    continue
                total = score + log_prob
                if costs and after.begun:
                    begun = after.within or (after.ended,)  # a form of one token has ended already
                    total -= min(costs[place[0]] for place in begun if place is not None)
                if not after.begun:
                    inner = progress.inner - log_prob
                    after = Progress(*after[:4], inner=inner, unmet=after.unmet)
                    paid = sum(min(rest, inner) for rest in rests)
                    # Ways from one beam promise the same as long as they pay what is due, but for rounding.
                    going.append(
                        _Way(
                            total,
                            parent,
                            token,
                            after,
                            round(total - left + paid, 3),
                            round(total - left + inner, 3),
                        )
                    )
                else:
                    going.append(_Way(total, parent, token, after, total - left, total - left))
            score -= sentence.left_wrongly(parent, progress)
            end = score + known.pop(self._eos, -inf)
            if end > -inf and not outside.unmet and not progress.grown:
                ended.append(_Way(end, parent, self._eos, outside, end))
            room = self._beam  # more of one beam than there are beams cannot go on
            while room and known:
                token, log_prob = known.popitem()
                total = score + log_prob
                way = _Way(total, parent, token, outside, total - due)
                if progress.grown or (progress.ended is not None and not self._ends_word(token)):
                    others.append(way)
                else:
                    going.append(way)
                    room -= 1
        return (going, ended) if going or ended else (others, ended)

    def _allot(
        self, sentence: _Sentence, going: list[_Way], ended: list[_Way], *, at_limit: bool
    ) -> tuple[list[float], list[int], list[int]]:
        """The columns of `Chosen`: hypotheses that end, those that go on, and what fills it up."""
        going.sort(key=_BY_SCORE, reverse=True)
        going.sort(key=_BY_PROMISE, reverse=True)  # of those that promise the same, the likeliest first
        ended = sorted(ended, key=_BY_SCORE, reverse=True)[: self._beam]
        fewest = min((way.progress.unmet for way in going), default=0)
        best = (way for way in going if way.progress.unmet == fewest and not way.progress.within)
        opened = list(islice(best, 1))
        in_a_form = [way for way in going if way.progress.within]
        if in_a_form:
            opened.append(max(in_a_form, key=_BEFORE))
        more = (way for way in going if way not in opened)
        opened += list(islice(more, self._beam - len(opened)))
        if at_limit:  # there is no more room: what misses something comes last
            late = [way._replace(score=way.score - UNMET * way.progress.unmet) for way in opened]
            ended, opened = sorted([*ended, *late], key=_BY_SCORE, reverse=True)[: self._beam], []
        sentence.opened = {(way.parent, way.token): way.progress for way in opened}
        row = ended + opened
        row += [_Way(4 * IMPOSSIBLE, 0, self._eos, Progress(()), 0.0)] * (2 * self._beam - len(row))
        return [way.score for way in row], [way.parent for way in row], [way.token for way in row]
