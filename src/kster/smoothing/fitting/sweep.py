"""kNN-MT for every k, bandwidth and mixing weight of a grid, in one pass over a cache."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from kster.smoothing.exact_match import ExactMatch
from kster.smoothing.example_distribution import log_example_prob_of
from kster.smoothing.fitting.cache import FitCache
from kster.smoothing.fitting.dropout import first_k
from kster.smoothing.geometry import Geometry
from kster.smoothing.kernels import Kernel, log_kernel, normalise
from kster.smoothing.mixing_weight import LogShares
from kster.smoothing.settings import SmootherSettings

DEFAULT_K = (4, 8, 16, 32)
DEFAULT_WEIGHTS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
SPREAD_MULTIPLES = (1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0, 2.0, 4.0, 8.0)
TOKENS_AT_ONCE = 8192


@dataclass(frozen=True, slots=True)
class Grid:
    """What to try: every combination of the three."""

    ks: tuple[int, ...]
    bandwidths: tuple[float, ...]
    mixing_weights: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Trial:
    """One combination and its negative log-likelihood per token."""

    k: int
    bandwidth: float
    mixing_weight: float
    nll: float

    def settings(self, kernel: Kernel, exact_match: float | None) -> SmootherSettings:
        """The kNN-MT smoother of this combination."""
        return SmootherSettings(
            kernel=kernel,
            k=self.k,
            learn_bandwidth=False,
            learn_weight=False,
            bandwidth=self.bandwidth,
            mixing_weight=self.mixing_weight,
            exact_match=exact_match,
        )


def default_grid(cache: FitCache, seen: Tensor, kernel: Kernel, ks: Sequence[int] = DEFAULT_K) -> Grid:
    """A grid whose bandwidths suit the model: multiples of how much farther the last neighbour is.

    With a bandwidth of the spread d_k² − d₁² (Laplacian: d_k − d₁) the last neighbour weighs 1/e of the
    first. Decoder states of different models differ in length by orders of magnitude: no fixed list would do.
    seen: (n, K) bool, the neighbours that may be used.
    """
    ks = tuple(sorted({min(k, cache.ids.shape[1]) for k in ks}))
    columns, found = first_k(seen, ks[-1])
    distances = cache.distances.gather(-1, columns)
    scaled = distances.square() if kernel == "gaussian" else distances
    first = scaled.masked_fill(~found, torch.inf).amin(dim=-1)
    last = scaled.masked_fill(~found, -torch.inf).amax(dim=-1)
    spread = (last - first)[found.sum(dim=-1) > 1]
    spread = spread[spread > 0]
    typical = float(spread.median()) if len(spread) else 1.0
    bandwidths = tuple(float(f"{typical * multiple:.3g}") for multiple in SPREAD_MULTIPLES)
    return Grid(ks, bandwidths, DEFAULT_WEIGHTS)


@torch.no_grad()
def sweep(
    cache: FitCache,
    seen: Tensor,
    grid: Grid,
    kernel: Kernel,
    exact_match: ExactMatch | None = None,
    device: torch.device | None = None,
) -> list[Trial]:
    """Every trial of the grid. seen: (n, K) bool, the neighbours that may be used."""
    device = device or torch.device("cpu")
    totals = torch.zeros(len(grid.ks), len(grid.bandwidths), len(grid.mixing_weights), dtype=torch.float64)
    weights = torch.tensor(grid.mixing_weights, dtype=torch.float64).unsqueeze(-1)  # (λ, 1)
    shares = LogShares(weights.log().float().to(device), torch.log1p(-weights).float().to(device))
    for rows in torch.arange(len(cache)).split(TOKENS_AT_ONCE):
        part = cache.take(rows, device)
        for i, k in enumerate(grid.ks):
            columns, found = first_k(seen[rows].to(device), k)
            geometry = Geometry.of(part.queries.float(), part.distances.gather(-1, columns), found)
            values = part.values.gather(-1, columns).long()
            raised = shares if exact_match is None else exact_match.raise_weight(shares, geometry)  # (λ, n)
            if exact_match is not None:
                superseded = exact_match.superseded(geometry, part.ids.gather(-1, columns).long(), values)
            for j, bandwidth in enumerate(grid.bandwidths):
                bandwidths = torch.full_like(geometry.query_length, bandwidth)  # (n,)
                logs = log_kernel(kernel, geometry.distances, bandwidths)  # (n, k)
                if exact_match is not None:
                    logs = exact_match.sharpen(logs, geometry, superseded)
                example = log_example_prob_of(part.gold, normalise(logs, found), values)  # (n,)
                mixed = torch.logaddexp(raised.base + part.log_probs, raised.examples + example)  # (λ, n)
                mixed = torch.where(found.any(dim=-1), mixed, part.log_probs)
                totals[i, j] += mixed.double().sum(dim=-1).cpu()
    nll = (-totals / len(cache)).tolist()
    return [
        Trial(k, bandwidth, weight, nll[i][j][m])
        for i, k in enumerate(grid.ks)
        for j, bandwidth in enumerate(grid.bandwidths)
        for m, weight in enumerate(grid.mixing_weights)
    ]


def best_of(trials: Sequence[Trial]) -> Trial:
    """The most likely; among equals the first, which has the smallest k."""
    return min(trials, key=lambda trial: trial.nll)
