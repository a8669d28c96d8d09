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


def log_example_probs(log_weights: Tensor, values: Tensor) -> Tensor:
    """log p_e(vⱼ) for every neighbour j: the weights of all neighbours with the same value, together.

    log_weights: (n, k), −inf where nothing was found; values: (n, k). Returns (n, k); neighbours with the
    same value get the same number. A slot where nothing was found gets p_e of the value it happens to
    hold, which is 0 (−inf) unless a real neighbour has that value too.
    """
    same_value = values.unsqueeze(-1) == values.unsqueeze(-2)  # (n, k, k)
    return log_sum_where(log_weights.unsqueeze(-2), same_value)


def log_example_prob_of(tokens: Tensor, log_weights: Tensor, values: Tensor) -> Tensor:
    """log p_e of one given token per row. tokens: (n,). Returns (n,), −inf where no neighbour has it."""
    return log_sum_where(log_weights, values == tokens.unsqueeze(-1))


def first_of_its_value(values: Tensor, found: Tensor) -> Tensor:
    """(n, k) bool: true for the first found neighbour of each distinct value in its row."""
    k = values.shape[-1]
    earlier = torch.ones(k, k, dtype=torch.bool, device=values.device).tril(-1)  # [j, i]: i before j
    same_value = values.unsqueeze(-1) == values.unsqueeze(-2)  # (n, k, k)
    seen_before = (same_value & found.unsqueeze(-2) & earlier).any(dim=-1)
    return found & ~seen_before
