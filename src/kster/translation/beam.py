"""Beam search over the tokens that may follow.

The rules are those of `transformers.generate` (2 × beam candidates a step, finished hypotheses only from
the best `beam` of them, scores divided by length ** length_penalty, a sentence ends when its best open
hypothesis can no longer enter its list), so that base translations agree with it token for token. What a
hypothesis can still reach is judged at its present length, as `generate` does by default; with a penalty of 1
and more, which lets scores grow with length, at the greatest length (`early_stopping="never"`).
Nothing is read back from a GPU inside the loop but one flag every few steps.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from math import inf
from typing import NamedTuple, Protocol, runtime_checkable

import torch
from torch import Tensor

from kster.model.state import DecodingState
from kster.model.step import Candidates, Predict, StepDecoder

IMPOSSIBLE = -1.0e9
STEPS_BETWEEN_CHECKS_ON_GPU = 8


@runtime_checkable
class PerSentence(Protocol):
    """A predictor that knows which sentences it predicts for."""

    def keep(self, sentences: Tensor) -> Predict:
        """The predictor for these sentences alone; sentences: (kept,) ascending."""


@runtime_checkable
class Watching(Protocol):
    """A predictor that may want to know what the decoder looks at in the source."""

    @property
    def watches(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """A translation as token ids, without the end of sentence, and its length-normalised score."""

    tokens: tuple[int, ...]
    score: float


@dataclass(slots=True)
class Beams:
    """The search's state for s sentences, b beams and at most T steps.

    Hypotheses are stored as steps back: what was read at each step, and from which beam it went on. A
    finished one is stored as its last step, the beam it was in before that, and its last token.
    """

    sentence: Tensor  # (s,) which of the caller's sentences this row block is
    limit: Tensor  # (s,) most tokens a translation may have, end of sentence included
    tokens: Tensor  # (s, T, b) int64: what each beam read after a step
    parents: Tensor  # (s, T, b) int64: and which of the sentence's beams it was before
    open_scores: Tensor  # (s, b) sum of log-probabilities
    scores: Tensor  # (s, b) finished hypotheses' normalised scores, best first; −∞ where there is none yet
    ends: Tensor  # (s, b, 3) int64: their last step, beam before it, and token of it
    done: Tensor  # (s,) bool
    first_row: Tensor  # (s, 1) int64: of each sentence among all s · b


class Chosen(NamedTuple):
    """The best 2b continuations of each sentence, best first."""

    scores: Tensor  # (s, 2b) sums of log-probabilities
    parents: Tensor  # (s, 2b) which of the sentence's beams goes on
    tokens: Tensor  # (s, 2b) and with what


class Steering(Protocol):
    """Makes a search produce what it must: `TermSearch`."""

    def predictor(self, predict: Predict, beams: Beams, step: int) -> Predict:
        """The predictor of this step, whose candidates include the tokens that are wanted."""

    def choose(self, beams: Beams, candidates: Candidates, chosen: Chosen, step: int) -> Chosen:
        """What the search goes on with, in place of what it would have chosen."""

    def follow(self, beams: Beams, step: int, penalty: float) -> None:
        """Note how the beams went on."""


@torch.inference_mode()
def beam_search(
    decoder: StepDecoder,
    sources: list[list[int]],
    predict: Predict,
    *,
    beam: int,
    length_penalty: float,
    limits: list[int],
    n_best: int = 1,
    terms: Steering | None = None,
) -> list[list[Hypothesis]]:
    """Translate tokenised sources; n_best hypotheses each, best first.

    limits: per source the most tokens its translation may have, end of sentence included. terms: what the
    translations must have.
    """
    steps = max(limits)
    state = decoder.start(sources, beam, steps)
    beams = open_beams(len(sources), beam, steps, limits, decoder.model.device)
    found: list[list[Hypothesis]] = [[] for _ in sources]
    tokens, parents = decoder.first_tokens(len(sources) * beam), None
    on_cpu = decoder.model.device.type == "cpu"
    watch = isinstance(predict, Watching) and predict.watches
    for step in range(steps):
        parents, tokens = extend(
            decoder, state, beams, tokens, parents, predict, step, length_penalty, terms, watch=watch
        )
        if on_cpu or step % STEPS_BETWEEN_CHECKS_ON_GPU == STEPS_BETWEEN_CHECKS_ON_GPU - 1:
            finished = int(beams.done.sum())
            if finished == len(beams.done):
                break
            # Shrinking pays once a good share of the rows would decode for nothing.
            if finished * (8 if on_cpu else 4) >= len(beams.done):
                collect(beams, beams.done, found, n_best, decoder.model.eos_id)
                kept = (~beams.done).nonzero()[:, 0]
                tokens, parents = _shrink(beams, kept, tokens, parents)
                state = decoder.keep(state, kept)
                if isinstance(predict, PerSentence):
                    predict = predict.keep(kept)
    decoder.finish(state)
    collect(beams, torch.ones_like(beams.done), found, n_best, decoder.model.eos_id)
    return found


def extend(
    decoder: StepDecoder,
    state: DecodingState,
    beams: Beams,
    tokens: Tensor,
    parents: Tensor | None,
    predict: Predict,
    step: int,
    length_penalty: float,
    terms: Steering | None = None,
    *,
    watch: bool = False,
) -> tuple[Tensor, Tensor]:
    """One step of the search, without waiting for the device.

    tokens: (s * b,) what each row reads; parents: (s * b,) the row whose hypothesis it goes on with; watch:
    whether `predict` is told what they look at in the source. Returns both for the next step.
    """
    beam = beams.open_scores.shape[1]
    if terms is not None:
        predict = terms.predictor(predict, beams, step)
    # One candidate more than wanted, because padding is not a word.
    candidates = decoder.predict(state, tokens, parents, predict, 2 * beam + 1, watch=watch)
    extra = len(decoder.model.layout.prefix) - 1  # a language token counts as generated, as in `generate`
    penalty = (step + 1 + extra) ** length_penalty
    reachable = (beams.limit + extra) ** length_penalty if length_penalty >= 1.0 else penalty
    chosen = choose(beams, candidates, decoder.model.pad_id)
    if terms is None:
        return _advance(beams, chosen, step, decoder.model.eos_id, penalty, reachable)
    chosen = terms.choose(beams, candidates, chosen, step)
    parents, tokens = _advance(beams, chosen, step, decoder.model.eos_id, penalty, reachable)
    terms.follow(beams, step, penalty)
    return parents, tokens


def choose(beams: Beams, candidates: Candidates, pad: int) -> Chosen:
    """Of all that may follow any beam of a sentence, what the search goes on with."""
    sentences, beam = beams.open_scores.shape
    log_probs = candidates.log_probs.masked_fill(candidates.tokens == pad, -inf)  # (s * b, c)
    total = log_probs.view(sentences, beam, -1).add_(beams.open_scores[:, :, None])  # (s, b, c)
    scores, where = total.flatten(1).topk(2 * beam)  # (s, 2b)
    parents = torch.div(where, total.shape[-1], rounding_mode="trunc")
    return Chosen(scores, parents, candidates.tokens.view(sentences, -1).gather(1, where))


def open_beams(sentences: int, beam: int, steps: int, limits: list[int], device: torch.device) -> Beams:
    def whole(*shape: int) -> Tensor:
        return torch.zeros(shape, dtype=torch.int64, device=device)

    open_scores = torch.full((sentences, beam), IMPOSSIBLE, device=device)
    open_scores[:, 0] = 0.0  # all beams start alike: let only the first one speak
    return Beams(
        sentence=torch.arange(sentences, device=device),
        limit=torch.tensor(limits, device=device),
        tokens=whole(sentences, steps, beam),
        parents=whole(sentences, steps, beam),
        open_scores=open_scores,
        scores=torch.full((sentences, beam), -inf, device=device),
        ends=whole(sentences, beam, 3),
        done=torch.zeros(sentences, dtype=torch.bool, device=device),
        first_row=torch.arange(0, sentences * beam, beam, device=device)[:, None],
    )


def _advance(
    beams: Beams, chosen: Chosen, step: int, eos: int, penalty: float, reachable: float | Tensor
) -> tuple[Tensor, Tensor]:
    """Extend every open hypothesis by one token; returns parent rows and the tokens read next, (s * b,).

    penalty: what scores of this length are divided by; reachable: what open hypotheses' are to be divided by,
    to know which they can reach, one for all sentences or (s,).
    """
    beam = beams.open_scores.shape[1]
    at_limit = step + 1 >= beams.limit  # (s,)
    ended = (chosen.tokens == eos).logical_or_(at_limit[:, None])  # (s, 2b)
    if ended.is_cuda or bool(ended.any()):  # on a GPU, looking would mean waiting
        _finish(beams, chosen, ended, step, penalty)
    beams.open_scores, kept = torch.add(chosen.scores, ended, alpha=IMPOSSIBLE).topk(beam)  # (s, b)
    parents, tokens = chosen.parents.gather(1, kept), chosen.tokens.gather(1, kept)  # (s, b)
    beams.parents.select(1, step).copy_(parents)
    beams.tokens.select(1, step).copy_(tokens)
    # A list that has an empty place ends with −∞, which nothing is below.
    hopeless = beams.open_scores.select(1, 0) / reachable <= beams.scores.select(1, -1)  # (s,)
    beams.done |= hopeless.logical_or_(at_limit)
    return (parents + beams.first_row).flatten(), tokens.flatten()


def _finish(beams: Beams, chosen: Chosen, ended: Tensor, step: int, penalty: float) -> None:
    """Enter hypotheses that just ended into their sentence's list, unless that sentence is done."""
    beam = beams.scores.shape[1]
    # Only the best half: the other is there to refill the open beams.
    eligible = ended[:, :beam] & ~beams.done[:, None]  # (s, b)
    scores = torch.where(eligible, chosen.scores[:, :beam] / penalty, -inf)
    beams.scores, places = torch.cat((beams.scores, scores), dim=1).topk(beam)  # (s, b)
    steps = torch.full_like(chosen.parents[:, :beam], step)
    new = torch.stack((steps, chosen.parents[:, :beam], chosen.tokens[:, :beam]), dim=-1)  # (s, b, 3)
    both = torch.cat((beams.ends, new), dim=1)  # (s, 2b, 3)
    beams.ends = both.gather(1, places[:, :, None].expand(-1, -1, 3))


def _shrink(beams: Beams, kept: Tensor, tokens: Tensor, parents: Tensor) -> tuple[Tensor, Tensor]:
    """Go on with the kept sentences only; tokens and parents are renumbered to the rows that remain."""
    sentences, beam = beams.open_scores.shape
    within = (parents.view(sentences, beam) - beams.first_row).index_select(0, kept)
    tokens = tokens.view(sentences, beam).index_select(0, kept)
    first_row = beams.first_row[: len(kept)]
    for field in fields(Beams):
        setattr(beams, field.name, getattr(beams, field.name).index_select(0, kept))
    beams.first_row = first_row
    return tokens.flatten(), (within + first_row).flatten()


def collect(beams: Beams, ready: Tensor, found: list[list[Hypothesis]], n_best: int, eos: int) -> None:
    """Move the finished lists of the sentences marked ready to the host."""
    index = ready.nonzero()[:, 0]
    columns = (beams.sentence, beams.tokens, beams.parents, beams.ends, beams.scores)
    rows = zip(*(column.index_select(0, index).cpu().numpy() for column in columns), strict=True)
    for sentence, tokens, parents, ends, scores in rows:
        for (step, beam, last), score in list(zip(ends.tolist(), scores.tolist(), strict=True))[:n_best]:
            if score > -inf:
                path = [] if last == eos else [last]
                for before in range(step - 1, -1, -1):
                    path.append(int(tokens[before, beam]))
                    beam = parents[before, beam]
                found[sentence].append(Hypothesis(tuple(reversed(path)), score))
