"""Why a translation reads as it does: for every token, who decided it and which examples spoke.

An explanation re-reads the finished translation: the decoder is forced along it once, and each state is
looked up again. The numbers are those the search saw, to floating-point tolerance.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

from kster.memory import Neighbours, Provenance
from kster.model import BaseModel
from kster.model.forcing import ForcedSentence, force_tokens
from kster.smoothing import Smoother, Smoothing
from kster.smoothing.example_distribution import log_example_prob_of
from kster.translation.predictor import Searchable


@dataclass(frozen=True, slots=True)
class Example:
    """One retrieved entry: a token somebody once wrote in a similar place."""

    segment: int
    source: str
    target: str
    position: int  # which token of the target it is, from 0
    token: str
    distance: float
    weight: float  # its normalised kernel weight
    memory: str  # the memory's directory


@dataclass(frozen=True, slots=True)
class TokenExplanation:
    """One output token, end of sentence included."""

    token: str
    probability: float  # under the method that translated
    base_probability: float
    example_probability: float
    mixing_weight: float  # λ
    bandwidth: float | None  # σ; None where no memory was asked
    examples: tuple[Example, ...]

    @property
    def memory_share(self) -> float:
        """How much of its probability came from the examples: λ p_e / ((1 − λ) p_m + λ p_e)."""
        examples = self.mixing_weight * self.example_probability
        total = (1.0 - self.mixing_weight) * self.base_probability + examples
        return examples / total if total > 0 else 0.0

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def explain(
    model: BaseModel,
    sources: list[list[int]],
    targets: list[list[int]],
    memory: Searchable | None,
    smoother: Smoother | None,
) -> list[list[TokenExplanation]]:
    """Explain tokenised translations (targets end with eos), one list of tokens each."""
    explained = []
    for forced in force_tokens(model, sources, targets):
        smoothed = (
            None if smoother is None or memory is None else smooth_forced(model, forced, memory, smoother)
        )
        if smoothed is None or memory is None:
            explained.append(_base_tokens(model, forced))
        else:
            explained.append(_smoothed_tokens(model, forced, memory, *smoothed))
    return explained


@torch.inference_mode()
def smooth_forced(
    model: BaseModel, forced: ForcedSentence, memory: Searchable, smoother: Smoother
) -> tuple[Neighbours, Smoothing, Tensor]:
    """Look up every state of a forced sentence; also returns log p of its tokens, (n,)."""
    device = model.device
    queries, gold = forced.keys.to(device), forced.tokens.to(device).long()
    neighbours = memory.search(queries, smoother.k)
    hidden, normaliser = forced.hidden.to(device), forced.log_normaliser.to(device)
    at_values = model.output_log_probs(hidden, neighbours.values, normaliser)  # (n, k)
    smoothing = smoother(queries, neighbours, at_values, forced.max_log_prob.to(device))
    example = log_example_prob_of(gold, smoothing.log_weights, neighbours.values)  # (n,) log p_e(gold)
    log_probs = torch.logaddexp(
        smoothing.log_base_weight + forced.log_probs.to(device), smoothing.log_mixing_weight + example
    )
    return neighbours, smoothing, log_probs


def _base_tokens(model: BaseModel, forced: ForcedSentence) -> list[TokenExplanation]:
    return [
        TokenExplanation(model.token_text(token), p, p, 0.0, 0.0, None, ())
        for token, p in zip(forced.tokens.tolist(), forced.log_probs.exp().tolist(), strict=True)
    ]


def _smoothed_tokens(
    model: BaseModel,
    forced: ForcedSentence,
    memory: Searchable,
    neighbours: Neighbours,
    smoothing: Smoothing,
    log_probs: Tensor,
) -> list[TokenExplanation]:
    gold = forced.tokens.to(neighbours.values)
    example = log_example_prob_of(gold, smoothing.log_weights, neighbours.values).exp().tolist()
    found = neighbours.ids >= 0  # (n, k)
    origins = iter(memory.provenance(neighbours.ids[found]))
    tokens = []
    for i, token in enumerate(forced.tokens.tolist()):
        examples = _examples(model, neighbours, smoothing, i, found, origins)
        tokens.append(
            TokenExplanation(
                token=model.token_text(token),
                probability=log_probs[i].exp().item(),
                base_probability=forced.log_probs[i].exp().item(),
                example_probability=example[i],
                mixing_weight=smoothing.mixing_weight[i].item(),
                bandwidth=smoothing.bandwidth[i].item(),
                examples=examples,
            )
        )
    return tokens


def _examples(
    model: BaseModel,
    neighbours: Neighbours,
    smoothing: Smoothing,
    row: int,
    found: Tensor,
    origins: Any,
) -> tuple[Example, ...]:
    """The examples of one row; `origins` yields the provenance of all found neighbours in order."""
    examples = []
    for j in found[row].nonzero()[:, 0].tolist():
        origin: Provenance = next(origins)
        examples.append(
            Example(
                segment=origin.segment.id,
                source=origin.segment.source,
                target=origin.segment.target,
                position=origin.position,
                token=model.token_text(int(neighbours.values[row, j])),
                distance=neighbours.distances[row, j].item(),
                weight=smoothing.log_weights[row, j].exp().item(),
                memory=origin.memory,
            )
        )
    return tuple(examples)
