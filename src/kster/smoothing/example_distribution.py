"""Equation 1: the example-based distribution p_e, at the values of the neighbours.

    p_e(y) = Σ_{j: vⱼ = y} wⱼ          wⱼ ∝ K(q, kⱼ; σ),  Σⱼ wⱼ = 1

p_e is 0 everywhere else, so a distribution over the whole vocabulary is never written down.
"""

from __future__ import annotations

import torch
from torch import Tensor


def log_sum_where(log_terms: Tensor, chosen: Tensor) -> Tensor:
    """log Σ exp(log_terms) over the last dimension, of the chosen terms only; −inf where none is.

    Unlike `torch.logsumexp` its gradient is 0, not NaN, where nothing (or only −inf) was chosen.
    """
    log_terms = torch.where(chosen, log_terms, -torch.inf)
    if not log_terms.requires_grad:
        return torch.logsumexp(log_terms, dim=-1)
    peak = log_terms.detach().amax(dim=-1, keepdim=True)
    peak = peak.masked_fill(peak == -torch.inf, 0.0)
    total = (log_terms - peak).exp().sum(dim=-1)
    empty = total == 0
    return (total.masked_fill(empty, 1.0).log() + peak.squeeze(-1)).masked_fill(empty, -torch.inf)


def log_example_probs(log_weights: Tensor, values: Tensor, same: Tensor | None = None) -> Tensor:
    """log p_e(vⱼ) for every neighbour j: the weights of all neighbours with the same value, together.

    log_weights: (n, k), −inf where nothing was found; values: (n, k); same: (n, k, k) `same_value` of them,
    where it is known. Returns (n, k); neighbours with the same value get the same number. A slot where
    nothing was found gets p_e of the value it happens to hold, which is 0 (−inf) unless a real neighbour has
    that value too.
    """
    same = same_value(values) if same is None else same  # (n, k, k)
    if log_weights.requires_grad:  # of 0 there is no logarithm that has one
        return log_sum_where(log_weights.unsqueeze(-2), same)
    return (same.to(log_weights.dtype) @ log_weights.exp().unsqueeze(-1)).squeeze(-1).log()


def log_example_prob_of(tokens: Tensor, log_weights: Tensor, values: Tensor) -> Tensor:
    """log p_e of one given token per row. tokens: (n,). Returns (n,), −inf where no neighbour has it."""
    return log_sum_where(log_weights, values == tokens.unsqueeze(-1))


def first_of_its_value(values: Tensor, found: Tensor | None = None, same: Tensor | None = None) -> Tensor:
    """(n, k) bool: true for the first found neighbour of each distinct value in its row.

    found: (n, k) bool, None for all; same: (n, k, k) `same_value` of these values, where it is known.
    """
    earlier = (same_value(values) if same is None else same).tril(-1)  # (n, k, k), [j, i]: i before j
    if found is None:
        return ~earlier.any(dim=-1)
    return found & ~(earlier & found.unsqueeze(-2)).any(dim=-1)


def same_value(values: Tensor) -> Tensor:
    """(n, k, k) bool: whether two neighbours have the same value."""
    return values.unsqueeze(-1) == values.unsqueeze(-2)
