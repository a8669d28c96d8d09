"""The rule for a context the memory holds exactly (not in the paper; off in its setting).

A person who adds a segment and translates the same source expects the added target. The paper's networks
cannot promise that: they never see a distance, retrieval dropout takes the exact matches out of their
training, and a wide learned kernel lets fifteen half-related neighbours outvote the one that is exact.

So let e = exp(−d₁² / (tolerance · ‖q‖²)), which is 1 at an exact match and 0 for every ordinary neighbour:

    log Kⱼ  ←  log Kⱼ − e · dⱼ² / (tolerance · ‖q‖²)     only exact neighbours keep a say
    λ       ←  λ + (1 − λ) · e · weight                  and they are believed

Without an exact match e is 0 and both lines change nothing.

The weight must be close to 1. The added target competes with whole hypotheses, not tokens: leaving it once
costs log(1 − weight) and then follows the base model's own, possibly certain, path, while following it
costs up to −log(weight) per token. At 0.7 thirty surprising tokens cost 10.7 and leaving costs 1.2; at 0.98
they cost 0.6 against 3.9.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from kster.smoothing.geometry import Geometry
from kster.smoothing.mixing_weight import LogShares


class ExactMatch(nn.Module):
    """Sharpens the kernel and raises the mixing weight where the nearest key equals the query."""

    def __init__(self, weight: float, tolerance: float) -> None:
        super().__init__()
        self.log_weight = math.log(weight)
        self.tolerance = tolerance

    def sharpen(self, log_kernels: Tensor, geometry: Geometry) -> Tensor:
        """log_kernels: (n, k). Returns (n, k)."""
        nearest = geometry.relative_nearest.unsqueeze(-1)  # (n, 1)
        exactness = (-nearest / self.tolerance).exp()  # (n, 1) e
        return log_kernels - exactness * (geometry.relative - nearest) / self.tolerance

    def raise_weight(self, shares: LogShares, geometry: Geometry) -> LogShares:
        """shares: (n,), or (…, 1) to raise several mixing weights at once."""
        log_raise = self.log_weight - geometry.relative_nearest / self.tolerance  # (n,) log(e · weight)
        return LogShares(
            examples=torch.logaddexp(shares.examples, shares.base + log_raise),
            base=shares.base + torch.log1p(-log_raise.exp()),
        )


def exact_match_rule(weight: float | None, tolerance: float) -> ExactMatch | None:
    """The rule as the settings ask for it: none without a weight."""
    return None if weight is None else ExactMatch(weight, tolerance)
