"""Equation 4: the bandwidth σ of the kernel, learned per query or fixed.

σ = exp(W₁ [q; k̄] + b₁)          k̄ the mean of the retrieved keys
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

LOG_BANDWIDTH_RANGE = (-20.0, 20.0)
"""σ stays within e^±20 (2·10⁻⁹ … 5·10⁸), far outside any useful value, so that it never becomes 0 or inf."""


class LearnedBandwidth(nn.Module):
    """σ from the query and the mean key. W₁ starts at 0, so the first σ is exp(b₁) for every query."""

    def __init__(self, dimension: int, initial: float, evidence_size: int = 0) -> None:
        super().__init__()
        self.affine = nn.Linear(2 * dimension + evidence_size, 1)  # W₁, b₁
        nn.init.zeros_(self.affine.weight)
        nn.init.constant_(self.affine.bias, math.log(initial))

    def forward(
        self, queries: Tensor | None, mean_keys: Tensor | None, evidence: Tensor | None = None
    ) -> Tensor:
        """queries, mean_keys: (n, d), or None with a dimension of 0; evidence: (n, evidence_size).

        Returns σ, (n,).
        """
        parts = [part for part in (queries, mean_keys, evidence) if part is not None]
        log_bandwidth = self.affine(torch.cat(parts, dim=-1)).squeeze(-1)  # (n,)
        return log_bandwidth.clamp(*LOG_BANDWIDTH_RANGE).exp()


class FixedBandwidth(nn.Module):
    """One σ for every query: kNN-MT's temperature.

    When `relative`, σ is given in units of the query's own length, ‖q‖² for the Gaussian kernel and ‖q‖
    for the Laplacian, so that one number suits models whose decoder states differ in scale.
    """

    def __init__(self, bandwidth: float, *, relative: bool, power: int) -> None:
        super().__init__()
        self.bandwidth = bandwidth
        self.relative = relative
        self.power = power  # 2: squared distances (Gaussian), 1: distances (Laplacian)

    def forward(self, queries: Tensor) -> Tensor:
        """queries: (n, d). Returns σ, (n,)."""
        if not self.relative:
            return queries.new_full(queries.shape[:1], self.bandwidth)
        length = torch.linalg.vector_norm(queries, dim=-1)  # (n,)
        return (self.bandwidth * length.pow(self.power)).clamp_min(math.exp(LOG_BANDWIDTH_RANGE[0]))
