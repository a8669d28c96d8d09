"""Beam search over any next-token distribution.

The rules are those of `transformers.generate` (2 × beam candidates a step, finished hypotheses only from
the best `beam` of them, scores divided by length ** length_penalty, a sentence ends when its best open
hypothesis can no longer enter its list), so that base translations agree with it token for token.
Nothing is read back from a GPU inside the loop but one flag every few steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import torch
from torch import Tensor

from kster.model.state import DecodingState
from kster.model.step import Predict, StepDecoder

IMPOSSIBLE = -1.0e9
STEPS_BETWEEN_CHECKS_ON_GPU = 8


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """A translation as token ids, without the end of sentence, and its length-normalised score."""

    tokens: tuple[int, ...]
    score: float


@dataclass(slots=True)
class Beams:
    """The search's state for s sentences, b beams and at most T steps."""

    sentence: Tensor  # (s,) which of the caller's sentences this row block is
    limit: Tensor  # (s,) most tokens a translation may have, end of sentence included
    open_tokens: Tensor  # (s, b, T) int64
    open_scores: Tensor  # (s, b) sum of log-probabilities
    tokens: Tensor  # (s, b, T) finished hypotheses, best first
    lengths: Tensor  # (s, b) their lengths
    scores: Tensor  # (s, b) their normalised scores, −∞ where there is none yet
    done: Tensor  # (s,) bool


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
) -> list[list[Hypothesis]]:
    """Translate tokenised sources; n_best hypotheses each, best first.

    limits: per source the most tokens its translation may have, end of sentence included.
    """
    steps = max(limits)
    state = decoder.start(sources, beam, steps)
    beams = open_beams(len(sources), beam, steps, limits, decoder.model.device)
    found: list[list[Hypothesis]] = [[] for _ in sources]
    tokens, parents = decoder.first_tokens(len(sources) * beam), None
    on_cpu = decoder.model.device.type == "cpu"
    for step in range(steps):
        parents, tokens = extend(decoder, state, beams, tokens, parents, predict, step, length_penalty)
        if on_cpu or step % STEPS_BETWEEN_CHECKS_ON_GPU == STEPS_BETWEEN_CHECKS_ON_GPU - 1:
            finished = int(beams.done.sum())
            if finished == len(beams.done):
                break
            # Shrinking pays once a good share of the rows would decode for nothing.
            if finished * 4 >= len(beams.done):
                _collect(beams, beams.done, found, n_best, decoder.model.eos_id)
                kept = (~beams.done).nonzero()[:, 0]
                tokens, parents = _shrink(beams, kept, tokens, parents)
                state = decoder.keep(state, kept)
    decoder.finish(state)
    _collect(beams, torch.ones_like(beams.done), found, n_best, decoder.model.eos_id)
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
) -> tuple[Tensor, Tensor]:
    """One step of the search, without waiting for the device.

    tokens: (s * b,) to read, by rows that go on from what parents, (s * b,), have read. Returns both for the
    next step.
    """
    log_probs = decoder.predict(state, tokens, parents, predict)  # (s * b, V)
    log_probs[:, decoder.model.pad_id] = -torch.inf  # padding is not a word
    extra = len(decoder.model.layout.prefix) - 1  # a language token counts as generated, as in `generate`
    return _advance(beams, log_probs, step, decoder.model.eos_id, length_penalty, extra)


def open_beams(sentences: int, beam: int, steps: int, limits: list[int], device: torch.device) -> Beams:
    open_scores = torch.full((sentences, beam), IMPOSSIBLE, device=device)
    open_scores[:, 0] = 0.0  # all beams start alike: let only the first one speak
    return Beams(
        sentence=torch.arange(sentences, device=device),
        limit=torch.tensor(limits, device=device),
        open_tokens=torch.zeros((sentences, beam, steps), dtype=torch.int64, device=device),
        open_scores=open_scores,
        tokens=torch.zeros((sentences, beam, steps), dtype=torch.int64, device=device),
        lengths=torch.zeros((sentences, beam), dtype=torch.int64, device=device),
        scores=torch.full((sentences, beam), -inf, device=device),
        done=torch.zeros(sentences, dtype=torch.bool, device=device),
    )


def _advance(
    beams: Beams, log_probs: Tensor, step: int, eos: int, length_penalty: float, extra: int
) -> tuple[Tensor, Tensor]:
    """Extend every open hypothesis by one token; returns parent rows and the tokens read next, (s * b,)."""
    sentences, beam = beams.open_scores.shape
    vocabulary = log_probs.shape[-1]
    total = log_probs.view(sentences, beam, vocabulary) + beams.open_scores[:, :, None]  # (s, b, V)
    best, where = total.view(sentences, -1).topk(2 * beam)  # (s, 2b), best first
    parent, token = where // vocabulary, where % vocabulary  # (s, 2b)
    history = _pick(beams.open_tokens, parent)  # (s, 2b, T)
    history[:, :, step] = token
    ended = (token == eos) | (step + 1 >= beams.limit)[:, None]  # (s, 2b)

    length = step + 1 + extra
    _finish(beams, history, best / length**length_penalty, ended, step + 1)

    open_scores, chosen = (best + ended * IMPOSSIBLE).topk(beam)  # (s, b)
    beams.open_scores = open_scores
    beams.open_tokens = _pick(history, chosen)
    full = (beams.scores > -inf).all(-1)  # (s,) every place in the list is taken
    hopeless = open_scores[:, 0] / length**length_penalty <= beams.scores[:, -1]  # (s,)
    beams.done |= (full & hopeless) | (step + 1 >= beams.limit)

    first_row = torch.arange(sentences, device=token.device)[:, None] * beam
    parents = (parent.gather(1, chosen) + first_row).flatten()
    return parents, token.gather(1, chosen).flatten()


def _finish(beams: Beams, history: Tensor, scores: Tensor, ended: Tensor, length: int) -> None:
    """Enter hypotheses that just ended into their sentence's list, unless that sentence is done."""
    beam = beams.scores.shape[1]
    eligible = ended.clone()
    eligible[:, beam:] = False  # the second half is only there to refill the open beams
    eligible &= ~beams.done[:, None]
    scores = torch.where(eligible, scores, -inf)
    merged = torch.cat((beams.scores, scores), dim=1)  # (s, 3b)
    beams.scores, places = merged.topk(beam)
    beams.tokens = _pick(torch.cat((beams.tokens, history), dim=1), places)
    lengths = torch.cat((beams.lengths, torch.full_like(scores, length, dtype=torch.int64)), dim=1)
    beams.lengths = lengths.gather(1, places)


def _pick(rows: Tensor, index: Tensor) -> Tensor:
    """rows: (s, m, T), index: (s, n) → (s, n, T)."""
    return rows.gather(1, index[:, :, None].expand(-1, -1, rows.shape[-1]))


def _shrink(beams: Beams, kept: Tensor, tokens: Tensor, parents: Tensor) -> tuple[Tensor, Tensor]:
    """Go on with the kept sentences only; tokens and parents are renumbered to the rows that remain."""
    sentences, beam = beams.open_scores.shape
    for name in ("sentence", "limit", "open_tokens", "open_scores", "tokens", "lengths", "scores", "done"):
        setattr(beams, name, getattr(beams, name).index_select(0, kept))
    tokens = tokens.view(sentences, beam).index_select(0, kept)
    within = parents.view(sentences, beam).index_select(0, kept) - kept[:, None] * beam
    first_row = torch.arange(len(kept), device=kept.device)[:, None] * beam
    return tokens.flatten(), (within + first_row).flatten()


def _collect(beams: Beams, ready: Tensor, found: list[list[Hypothesis]], n_best: int, eos: int) -> None:
    """Move the finished lists of the sentences marked ready to the host."""
    index = ready.nonzero()[:, 0]
    columns = (beams.sentence, beams.tokens, beams.lengths, beams.scores)
    rows = zip(*(column.index_select(0, index).tolist() for column in columns), strict=True)
    for sentence, tokens, lengths, scores in rows:
        for row, length, score in list(zip(tokens, lengths, scores, strict=True))[:n_best]:
            if score > -inf:
                ids = row[:length]
                found[sentence].append(Hypothesis(tuple(ids[:-1] if ids[-1] == eos else ids), score))
