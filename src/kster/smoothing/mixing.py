"""Equations 2–3: the base model's distribution smoothed by the examples'.

p(y) = λ p_e(y) + (1 − λ) p_m(y)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from kster.smoothing.example_distribution import first_of_its_value, log_example_probs
from kster.smoothing.smoother import Smoothing

if TYPE_CHECKING:
    from kster.memory import Neighbours


@torch.no_grad()
def mix(
    base_log_probs: Tensor, neighbours: Neighbours, smoothing: Smoothing, *, out: Tensor | None = None
) -> Tensor:
    """log p over the vocabulary.

    base_log_probs: (n, V) log p_m, in float32, float16 or bfloat16; neighbours and smoothing for the same n
    queries. Returns (n, V) in the same type, in `out` if given (which may be base_log_probs itself).

    The vocabulary is passed over once, to add log(1 − λ); examples touch only their k values. Nothing here
    waits for the device, so it can be part of a CUDA graph. A row without neighbours equals its base row.
    """
    values = neighbours.values  # (n, k)
    mixed_at_values = mix_at_values(base_log_probs.gather(-1, values), values, smoothing)  # (n, k)
    mixed = torch.add(
        base_log_probs, smoothing.log_base_weight.unsqueeze(-1).to(base_log_probs.dtype), out=out
    )
    # Neighbours with the same value write the same number, so their order does not matter.
    return mixed.scatter_(-1, values, mixed_at_values.to(mixed.dtype))


def mix_at_values(base_log_probs_at_values: Tensor, values: Tensor, smoothing: Smoothing) -> Tensor:
    """log p of the neighbours' values only.

    base_log_probs_at_values: (n, k) log p_m(vⱼ); values: (n, k). Returns (n, k) float32.
    """
    example = smoothing.log_example_probs  # (n, k) log p_e(vⱼ)
    if example is None:
        example = log_example_probs(smoothing.log_weights, values)
    return torch.logaddexp(
        smoothing.log_base_weight.unsqueeze(-1) + base_log_probs_at_values.float(),
        smoothing.log_mixing_weight.unsqueeze(-1) + example,
    )


def mix_candidates(
    tokens: Tensor,
    base_log_probs: Tensor,
    base_log_probs_at_values: Tensor,
    values: Tensor,
    smoothing: Smoothing,
) -> tuple[Tensor, Tensor]:
    """log p of some tokens and of the neighbours' values, without the rest of the vocabulary.

    tokens, base_log_probs: (n, c), distinct tokens and log p_m of them. base_log_probs_at_values, values:
    (n, k), as in `mix_at_values`. Returns tokens and log p, (n, c + k) each; where a token stands again, its
    log p is −∞.
    """
    mixed_at_values = mix_at_values(base_log_probs_at_values, values, smoothing)  # (n, k)
    mixed = base_log_probs + smoothing.log_base_weight.unsqueeze(-1)  # (n, c)
    is_value = (tokens.unsqueeze(-1) == values.unsqueeze(-2)).any(-1)  # (n, c)
    first = smoothing.first_of_its_value  # (n, k)
    again = ~(first_of_its_value(values) if first is None else first)
    log_probs = torch.cat(
        [mixed.masked_fill(is_value, -torch.inf), mixed_at_values.masked_fill(again, -torch.inf)], dim=-1
    )
    return torch.cat([tokens, values], dim=-1), log_probs
