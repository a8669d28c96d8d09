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
from itertools import islice
from math import inf
from operator import itemgetter

import torch

from kster.model.step import Candidates, Predict, Wanting
from kster.terms.gender import readings_before
from kster.translation.beams import IMPOSSIBLE, Beams, Chosen
from kster.translation.term_agreement import DISAGREEMENT
from kster.translation.term_constraints import Ahead, Course, Progress, Requirement

LEAST_BEAM = 4  # narrower, there is no room for hypotheses with a term beside those without
COST_OF_BEGINNING = 1.5  # −log p of a form's first token at a good place, and …
COST_OF_THE_REST = 1.0  # … of its other tokens, until one hypothesis has paid for them
UNMET = 1.0e4  # taken from the score of what ends without a term, because it has become too long


_Way = tuple[float, float, int, int, Progress, float, float]
"""A way for a sentence to go on; the better of two is greater.

What it promises (its score less what the terms that it misses will cost), its score, parent and token, the
progress after it, what it promised before the form that it is in went on, and what that form has cost since
its first token: −log p of the others.
"""
_BEFORE = itemgetter(5)
_SCORE = itemgetter(0)


class _Sentence:
    """The progress of a sentence's beams."""

    def __init__(self, requirements: Sequence[Requirement], course: Course, beam: int) -> None:
        self.requirements, self.course = requirements, course
        self.progress = [course.start] * beam
        self.inner = [0.0] * beam  # what the form that each beam is in has cost, as in `_Way`
        self.said = [""] * beam  # by each beam, where an agreement is looked at
        self.agrees = any(one.agreement is not None for one in requirements)
        self.ahead: list[Ahead] = []
        self.opened: dict[tuple[int, int], tuple[Progress, float]] = {}
        self.free = False  # all hypotheses have all terms: it is searched like any other from now on
        self._rest = [COST_OF_THE_REST] * len(requirements)  # what forms cost after their beginning
        self._paid = [False] * len(requirements)  # whether that is what one has cost
        self._due: dict[Progress, tuple[float, tuple[float, ...]]] = {}

    def look_ahead(self) -> list[Ahead]:
        """What may follow each beam."""
        self.ahead = [own.ahead or self.course.ahead(own) for own in self.progress]
        return self.ahead

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

    def follow(self, parents: list[int], tokens: list[int], text_of: Callable[[int], str]) -> None:
        """Go on with beams that have read these tokens after what their parents had read."""
        nothing = self.course.ahead(self.course.start).outside, 0.0  # of beams that are not in use
        after = [self.opened.get(key, nothing) for key in zip(parents, tokens, strict=True)]
        for parent, (progress, inner) in zip(parents, after, strict=True):
            if progress.ended is not None:
                self._learn(self.progress[parent], progress, inner)
        if self.agrees:
            each = zip(parents, tokens, strict=True)
            self.said = [self.said[parent] + text_of(token) for parent, token in each]
        self.progress, self.inner = [own for own, _ in after], [inner for _, inner in after]
        self.opened = {}
        self.free = not any(own.unmet or own.within or own.ended for own in self.progress)

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

    def _learn(self, before: Progress, after: Progress, inner: float) -> None:
        """A form was finished: what it has cost is what others will have to pay, if nobody pays less."""
        for i, ((had, _), (has, _)) in enumerate(zip(before.left, after.left, strict=True)):
            if has < had and (not self._paid[i] or inner < self._rest[i]):
                self._rest[i], self._paid[i] = inner, True
                self._due.clear()


class TermSearch:
    """The terms of a batch, and the choices that follow from them."""

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

    def predictor(self, predict: Predict, beams: Beams, step: int) -> Predict:
        """One whose candidates have, besides the best tokens, those that forms begin or go on with."""
        rows: list[list[int]] = []
        for number in beams.sentence.tolist():
            sentence = self._sentences.get(number)
            if sentence is None or sentence.free:
                rows += [[]] * self._beam
                continue
            rows += (list(ahead.forms) for ahead in sentence.look_ahead())
        width = max(map(len, rows))
        if not width:
            return predict
        padding = [self._pad] * width
        padded = [token for row in rows for token in (*row, *padding[len(row) :])]
        wanted = torch.tensor(padded, dtype=torch.int64, device=beams.done.device)
        return Wanting(predict, wanted.view(len(rows), width))  # (s * b, w)

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
        log_probs, order = log_probs.view(shape).index_select(0, index).sort(descending=True)  # (own, b, c)
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

        tokens, log_probs: of each beam, the best first; what stands there again has −∞, and comes last.
        """
        going: list[_Way] = []
        ended: list[_Way] = []
        others: list[_Way] = []  # a form may become another word only if nothing else can follow
        for parent, score in enumerate(scores):
            if score <= IMPOSSIBLE / 2:  # a beam that is not in use
                continue
            progress, (forms, outside) = sentence.progress[parent], sentence.ahead[parent]
            costs = sentence.costs_of_beginning(parent) if forms else []
            due, _ = sentence.due(outside)
            leaving = score - sentence.left_wrongly(parent, progress) if progress.ended else score
            room = self._beam  # more of one beam than there are beams cannot go on
            for token, log_prob in zip(tokens[parent], log_probs[parent], strict=True):
                if log_prob == -inf:
                    break
                after = forms.get(token)
                if after is not None:
                    going.append(
                        self._in_form(sentence, parent, token, score + log_prob, log_prob, after, costs)
                    )
                elif token == self._eos:
                    if not outside.unmet and not progress.grown:
                        end = leaving + log_prob
                        ended.append((end, end, parent, token, outside, end, 0.0))
                elif room:
                    total = leaving + log_prob
                    way = total - due, total, parent, token, outside, 0.0, 0.0
                    if progress.grown or (progress.ended is not None and not self._ends_word(token)):
                        others.append(way)
                    else:
                        going.append(way)
                        room -= 1
        return (going, ended) if going or ended else (others, ended)

    def _in_form(
        self,
        sentence: _Sentence,
        parent: int,
        token: int,
        total: float,
        log_prob: float,
        after: Progress,
        costs: list[float],
    ) -> _Way:
        """The way of a token that begins a form, or goes on with one; costs: of beginning each term's."""
        due, rests = sentence.due(after)
        if after.begun:
            if costs:
                begun = after.within or (after.ended,)  # a form of one token has ended already
                total -= min(costs[place[0]] for place in begun if place is not None)
            return total - due, total, parent, token, after, total - due, 0.0
        inner = sentence.inner[parent] - log_prob
        paid = sum(min(rest, inner) for rest in rests)
        # Ways from one beam promise the same as long as they pay what is due, but for rounding.
        return (
            *(round(total - due + paid, 3), total, parent, token, after),
            *(round(total - due + inner, 3), inner),
        )

    def _allot(
        self, sentence: _Sentence, going: list[_Way], ended: list[_Way], *, at_limit: bool
    ) -> tuple[list[float], list[int], list[int]]:
        """The columns of `Chosen`: hypotheses that end, those that go on, and what fills it up."""
        going.sort(reverse=True)  # of those that promise the same, the likeliest first
        ended = sorted(ended, reverse=True)[: self._beam]
        fewest = min((way[4].unmet for way in going), default=0)
        best = (way for way in going if way[4].unmet == fewest and not way[4].within)
        opened = list(islice(best, 1))
        in_a_form = [way for way in going if way[4].within]
        if in_a_form:
            opened.append(max(in_a_form, key=_BEFORE))
        more = (way for way in going if way not in opened)
        opened += list(islice(more, self._beam - len(opened)))
        sentence.opened = {(parent, token): (after, inner) for _, _, parent, token, after, _, inner in opened}
        row = [way[1:4] for way in ended + opened]
        if at_limit:  # there is no more room: what misses something comes last
            sentence.opened = {}
            late = [
                (score - UNMET * after.unmet, parent, token) for _, score, parent, token, after, *_ in opened
            ]
            row = sorted([*row[: len(ended)], *late], key=_SCORE, reverse=True)[: self._beam]
        row += [(4 * IMPOSSIBLE, 0, self._eos)] * (2 * self._beam - len(row))
        scores, parents, tokens = (list(column) for column in zip(*row, strict=True))
        return scores, parents, tokens
