"""The rule for a context the memory holds exactly (not in the paper; off in its setting).

A person who adds a segment and translates the same source expects the added target. The paper's networks
cannot promise that: they never see a distance, retrieval dropout takes the exact matches out of their
training, and a wide learned kernel lets fifteen half-related neighbours outvote the one that is exact.

So let e = exp(−d₁² / (tolerance · ‖q‖²)), which is 1 at an exact match and 0 for every ordinary neighbour
(the square of a distance that rounding alone makes, between a key and the same context's query, is taken
off):

    log Kⱼ  ←  log Kⱼ − e · dⱼ² / (tolerance · ‖q‖²)     only exact neighbours keep a say
    λ       ←  λ + (1 − λ) · e · weight                  and they are believed

Without an exact match e is 0 and both lines change nothing.

A memory may hold one source with several targets. Then, where they part, contexts are equally exact and
the newest speaks: it is what the person said last. The others' kernels lose e · SUPERSEDED. Ids grow with
time within one memory; between memories searched together nothing is newer.

The weight must be close to 1. The added target competes with whole hypotheses, not tokens: leaving it once
costs log(1 − weight) and then follows the base model's own, possibly certain, path, while following it
costs up to −log(weight) per token. At 0.7 thirty surprising tokens cost 10.7 and leaving costs 1.2; at 0.98
they cost 0.6 against 3.9.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from kster.memory.group import SHIFT
from kster.smoothing.geometry import Geometry
from kster.smoothing.mixing_weight import LogShares, log_one_minus

SUPERSEDED = 30.0
"""What an outdated exact match loses: e⁻³⁰ of a share is nothing beside any base probability."""

ROUNDING = 1e-4
"""d² / ‖q‖² that rounding makes: in bfloat16 0.4 % of a key's length as a rule and 1.2 % at most. Of 13,420
keys of law text the nearest other context is 2.8 % away at the least, and 10 % for 99 in a hundred."""

NOTHING = 110.0
"""e to the power of minus this is 0 in float32."""

EQUALLY_EXACT = 0.1
"""Of the tolerance: how much farther than the nearest a neighbour may be to count as the same context."""


class ExactMatch(nn.Module):
    """Sharpens the kernel and raises the mixing weight where the nearest key equals the query."""

    def __init__(self, weight: float, tolerance: float) -> None:
        super().__init__()
        self.log_weight = math.log(weight)
        self.tolerance = tolerance

    def may_matter(self, nearest: Tensor, query_length: Tensor) -> bool:
        """Whether e is above 0 for any query; nearest: (n,) plain distances, query_length: (n,) ‖q‖.

        Looked at on a CPU only: on a GPU, looking would mean waiting.
        """
        if nearest.is_cuda or torch.is_grad_enabled():
            return True
        farthest = (ROUNDING + NOTHING * self.tolerance) ** 0.5
        return float((nearest / query_length).amin()) <= farthest

    def sharpen(self, log_kernels: Tensor, geometry: Geometry, superseded: Tensor) -> Tensor:
        """log_kernels: (n, k); superseded: (n, k) bool, from the method below. Returns (n, k)."""
        nearest = geometry.relative_nearest.unsqueeze(-1)  # (n, 1)
        exactness = (-_unrounded(nearest) / self.tolerance).exp()  # (n, 1) e
        excess = (geometry.relative - nearest) / self.tolerance  # (n, k)
        return log_kernels - exactness * (excess + SUPERSEDED * superseded)

    def superseded(self, geometry: Geometry, ids: Tensor, values: Tensor) -> Tensor:
        """Neighbours as exact as the nearest, when a newer one in the same memory says something else.

        ids, values: (n, k); ids of a `MemoryGroup` carry the memory's place. Returns (n, k) bool.
        """
        nearest = geometry.relative_nearest.unsqueeze(-1)  # (n, 1)
        farthest = nearest + EQUALLY_EXACT * self.tolerance + ROUNDING
        equal = geometry.relative <= farthest  # (n, k)
        if geometry.found is not None:
            equal &= geometry.found
        older, newer = ids.unsqueeze(-1), ids.unsqueeze(-2)  # (n, k, 1), (n, 1, k)
        replaced = (
            equal.unsqueeze(-2)
            & (newer > older)
            & (newer >> SHIFT == older >> SHIFT)
            & (values.unsqueeze(-1) != values.unsqueeze(-2))
        )  # (n, k, k)
        return equal & replaced.any(dim=-1)

    def raise_weight(self, shares: LogShares, geometry: Geometry) -> LogShares:
        """shares: (n,), or (…, 1) to raise several mixing weights at once."""
        nearest = _unrounded(geometry.relative_nearest)  # (n,)
        log_raise = self.log_weight - nearest / self.tolerance  # (n,) log(e · weight)
        return LogShares(
            examples=torch.logaddexp(shares.examples, shares.base + log_raise),
            base=shares.base + log_one_minus(log_raise),
        )


def _unrounded(relative: Tensor) -> Tensor:
    return (relative - ROUNDING).clamp_min(0.0)


def exact_match_rule(weight: float | None, tolerance: float) -> ExactMatch | None:
    """The rule as the settings ask for it; None if they give it no weight."""
    return None if weight is None else ExactMatch(weight, tolerance)
