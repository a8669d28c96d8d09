"""The kernels K(q, k; σ) of section 3.2, and the normalised weights they give to the neighbours.

    Gaussian   K = exp(−‖q − k‖² / σ)
    Laplacian  K = exp(−‖q − k‖  / σ)

Everything is in log space: at the distances of real decoder states (‖q − k‖² of several hundred) the
kernels themselves underflow, their logarithms never do.
"""

from __future__ import annotations

from typing import Literal, get_args

import torch
from torch import Tensor

Kernel = Literal["gaussian", "laplacian"]
KERNELS: tuple[Kernel, ...] = get_args(Kernel)

INITIAL_BANDWIDTH: dict[Kernel, float] = {"gaussian": 100.0, "laplacian": 10.0}
"""Where a learned bandwidth starts, as in the authors' release: b₁ = ln 100 or ln 10."""


def log_kernel(kernel: Kernel, distances: Tensor, bandwidth: Tensor) -> Tensor:
    """log K up to a constant per row: 0 for the nearest neighbour, negative for the others.

    distances: (n, k) finite L2 distances; bandwidth: (n,) σ > 0. Returns (n, k).

    A constant per row cancels when the weights are normalised (equation 1). Taking the nearest distance
    away before the division keeps the result finite for distances of 10⁶ and any bandwidth, and exact
    for far neighbours that differ little from each other.
    """
    nearest = distances.amin(dim=-1, keepdim=True)  # (n, 1)
    closeness = nearest - distances  # (n, k)
    if kernel == "gaussian":
        closeness = closeness * (distances + nearest)  # d₁² − d², without the cancellation
    return closeness / bandwidth.unsqueeze(-1)


def normalise(log_kernels: Tensor, found: Tensor | None) -> Tensor:
    """log wⱼ with wⱼ ∝ K and Σⱼ wⱼ = 1 over the neighbours that were found; −inf for the others.

    log_kernels: (n, k) finite; found: (n, k) bool, None for all. Returns (n, k) float32. Rows where nothing
    was found are −inf throughout, and their gradient is 0, not NaN.
    """
    if found is None:
        return torch.log_softmax(log_kernels, dim=-1)
    nothing = ~found.any(dim=-1, keepdim=True)  # (n, 1)
    masked = log_kernels.masked_fill(~(found | nothing), -torch.inf)
    return torch.log_softmax(masked, dim=-1).masked_fill(~found, -torch.inf)
