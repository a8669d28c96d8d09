"""Equation 8: the loss −log p(gold), from k numbers per token instead of a distribution over the vocabulary.

With label smoothing ε the target is (1 − ε) · gold + ε · uniform, and the loss

    −(1 − ε) log p(gold) − (ε / V) Σ_v log p(v)

Away from the neighbours' values log p(v) = log(1 − λ) + log p_m(v), so the sum needs only the mean of
log p_m over the vocabulary and a correction at the distinct values: equal to the dense sum, not an estimate.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from kster.smoothing.example_distribution import first_of_its_value, log_example_prob_of
from kster.smoothing.mixing import mix_at_values
from kster.smoothing.smoother import Smoothing


@dataclass(slots=True)
class BasePrediction:
    """What the frozen base model said about n tokens, as far as the loss needs it."""

    gold: Tensor  # (n,) int64: the gold token
    log_probs: Tensor  # (n,) float32: log p_m(gold)
    log_probs_at_values: Tensor  # (n, k) float32: log p_m of the neighbours' values
    mean_log_prob: Tensor  # (n,) float32: mean over the vocabulary of log p_m
    max_log_prob: Tensor  # (n,) float32: log p_m of the most probable token


def gold_log_probs(base: BasePrediction, values: Tensor, smoothing: Smoothing) -> Tensor:
    """log p(gold). values: (n, k) the neighbours' values. Returns (n,)."""
    example = log_example_prob_of(base.gold, smoothing.log_weights, values)  # (n,) log p_e(gold)
    return torch.logaddexp(smoothing.log_base_weight + base.log_probs, smoothing.log_mixing_weight + example)


def mean_log_probs(
    base: BasePrediction, values: Tensor, found: Tensor, smoothing: Smoothing, vocabulary_size: int
) -> Tensor:
    """(1/V) Σ_v log p(v). values: (n, k); found: (n, k) bool. Returns (n,)."""
    share = smoothing.log_base_weight.unsqueeze(-1)  # (n, 1) log(1 − λ)
    gain = mix_at_values(base.log_probs_at_values, values, smoothing) - (share + base.log_probs_at_values)
    correction = torch.where(first_of_its_value(values, found), gain, 0.0).sum(dim=-1)  # (n,)
    return smoothing.log_base_weight + base.mean_log_prob + correction / vocabulary_size


def token_losses(
    base: BasePrediction,
    values: Tensor,
    found: Tensor,
    smoothing: Smoothing,
    *,
    label_smoothing: float = 0.0,
    vocabulary_size: int = 0,
) -> Tensor:
    """The loss of each token, (n,). `vocabulary_size` is needed only with label smoothing."""
    loss = -gold_log_probs(base, values, smoothing)
    if label_smoothing == 0.0:
        return loss
    uniform = -mean_log_probs(base, values, found, smoothing, vocabulary_size)
    return (1.0 - label_smoothing) * loss + label_smoothing * uniform
