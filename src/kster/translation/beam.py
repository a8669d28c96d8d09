"""Beam search over the tokens that may follow.

The rules are those of `transformers.generate` (2 × beam candidates a step, finished hypotheses only from
the best `beam` of them, scores divided by length ** length_penalty, a sentence ends when its best open
hypothesis can no longer enter its list), so that base translations agree with it token for token. What a
hypothesis can still reach is judged at its present length, as `generate` does by default; with a penalty of 1
and more, which lets scores grow with length, at the greatest length (`early_stopping="never"`).
Nothing is read back from a GPU inside the loop but one flag every few steps.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from kster.model.state import DecodingState
from kster.model.step import Candidates, Predict, StepDecoder
from kster.translation.beams import Beams, Chosen, Hypothesis, advance, choose, collect, open_beams, shrink
from kster.translation.recorded_search import RecordedSearch, settled

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
    watch = isinstance(predict, Watching) and predict.watches
    predict = settled(predict, state)
    if terms is None and (whole := RecordedSearch.of(decoder, state, predict, watch)) is not None:
        return whole.run(limits, length_penalty, n_best)
    beams = open_beams(len(sources), beam, steps, limits, decoder.model.device)
    found: list[list[Hypothesis]] = [[] for _ in sources]
    tokens, parents = decoder.first_tokens(len(sources) * beam), None
    on_cpu = decoder.model.device.type == "cpu"
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
                tokens, parents = shrink(beams, kept, tokens, parents)
                state = decoder.keep(state, kept)
                if isinstance(predict, PerSentence):
                    predict = settled(predict.keep(kept), state)
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
        return advance(beams, chosen, step, decoder.model.eos_id, penalty, reachable)
    chosen = terms.choose(beams, candidates, chosen, step)
    parents, tokens = advance(beams, chosen, step, decoder.model.eos_id, penalty, reachable)
    terms.follow(beams, step, penalty)
    return parents, tokens
