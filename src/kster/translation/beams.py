"""The state of a beam search, and its bookkeeping after every step.

It is the same for a search that is launched operation by operation (`beam.py`) and for one whose steps are
recorded as a whole (`recorded_search.py`): there the number of the step is known to the device alone.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from math import inf
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from kster.model.step import Candidates

IMPOSSIBLE = -1.0e9


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


def advance(
    beams: Beams,
    chosen: Chosen,
    step: int | Tensor,
    eos: int,
    penalty: float | Tensor,
    reachable: float | Tensor,
) -> tuple[Tensor, Tensor]:
    """Extend every open hypothesis by one token; returns parent rows and the tokens read next, (s * b,).

    step: a number, or (1,) on the device; penalty: what scores of this length are divided by; reachable: what
    open hypotheses' are to be divided by, to know which they can reach, one for all sentences or (s,).
    """
    beam = beams.open_scores.shape[1]
    at_limit = step + 1 >= beams.limit  # (s,)
    ended = (chosen.tokens == eos).logical_or_(at_limit[:, None])  # (s, 2b)
    if ended.is_cuda or bool(ended.any()):  # on a GPU, looking would mean waiting
        _finish(beams, chosen, ended, step, penalty)
    beams.open_scores, kept = torch.add(chosen.scores, ended, alpha=IMPOSSIBLE).topk(beam)  # (s, b)
    parents, tokens = chosen.parents.gather(1, kept), chosen.tokens.gather(1, kept)  # (s, b)
    if isinstance(step, int):
        beams.parents.select(1, step).copy_(parents)
        beams.tokens.select(1, step).copy_(tokens)
    else:
        beams.parents.index_copy_(1, step, parents[:, None])
        beams.tokens.index_copy_(1, step, tokens[:, None])
    # A list that has an empty place ends with −∞, which nothing is below.
    hopeless = beams.open_scores.select(1, 0) / reachable <= beams.scores.select(1, -1)  # (s,)
    beams.done |= hopeless.logical_or_(at_limit)
    return (parents + beams.first_row).flatten(), tokens.flatten()


def _finish(beams: Beams, chosen: Chosen, ended: Tensor, step: int | Tensor, penalty: float | Tensor) -> None:
    """Enter hypotheses that just ended into their sentence's list, unless that sentence is done."""
    beam = beams.scores.shape[1]
    # Only the best half: the other is there to refill the open beams.
    eligible = ended[:, :beam] & ~beams.done[:, None]  # (s, b)
    scores = torch.where(eligible, chosen.scores[:, :beam] / penalty, -inf)
    beams.scores, places = torch.cat((beams.scores, scores), dim=1).topk(beam)  # (s, b)
    parents = chosen.parents[:, :beam]
    steps = torch.full_like(parents, step) if isinstance(step, int) else step.expand_as(parents)
    new = torch.stack((steps, parents, chosen.tokens[:, :beam]), dim=-1)  # (s, b, 3)
    both = torch.cat((beams.ends, new), dim=1)  # (s, 2b, 3)
    beams.ends = both.gather(1, places[:, :, None].expand(-1, -1, 3))


def shrink(beams: Beams, kept: Tensor, tokens: Tensor, parents: Tensor) -> tuple[Tensor, Tensor]:
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
    columns = (beams.sentence, beams.tokens, beams.parents, beams.ends[:, :n_best], beams.scores)
    sentences, tokens, parents, ends, scores = (
        column.index_select(0, index).cpu().numpy() for column in columns
    )
    steps, beam, last = ends[..., 0], ends[..., 1], ends[..., 2]  # (s, n)
    paths = np.zeros((*steps.shape, int(steps.max(initial=0)) + 1), np.int64)  # (s, n, t)
    rows = np.arange(len(index))[:, None]
    for before in range(paths.shape[2] - 2, -1, -1):
        going = before < steps
        paths[:, :, before] = tokens[rows, before, beam]
        beam = np.where(going, parents[rows, before, beam], beam)
    np.put_along_axis(paths, steps[..., None], last[..., None], axis=2)
    lengths = steps + (last != eos)
    for i, sentence in enumerate(sentences.tolist()):
        for path, length, score in zip(paths[i], lengths[i].tolist(), scores[i].tolist(), strict=False):
            if score > -inf:
                found[sentence].append(Hypothesis(tuple(path[:length].tolist()), score))
