"""How far apart two states are, learned (not in the paper):

    d(q, k)²  =  c² ‖q − k‖²  +  ‖W (q − k)‖²

In a plain distance every direction counts the same, whether or not it tells what comes next in the text that
a memory is made of. W stretches those that do. The index goes on searching by the plain distance; of the
candidates it finds, the nearest by this one are used.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

NUMBERS_AT_ONCE = {"cpu": 1 << 25, "cuda": 1 << 28}  # of the candidates' keys: 128 MiB, 1 GiB, several times
NOT_ZERO = 1e-9  # of squared distances: at 0 a root has no slope
START = 0.5  # the share of W in a squared distance, to begin with


def candidates(k: int, metric: int) -> int:
    """How many neighbours to fetch, so that the k nearest by a metric (its rows; 0: none) are among them."""
    return 2 * k if metric else k


def tokens_at_once(k: int, dimension: int, device: torch.device) -> int:
    """How many tokens' candidates a fit may measure together."""
    numbers = NUMBERS_AT_ONCE.get(device.type, NUMBERS_AT_ONCE["cpu"])
    return max(1, numbers // (candidates(k, metric=1) * dimension))


class Metric(nn.Module):
    """c and W, (rank, d). Starts as the plain distance, see `begin`."""

    def __init__(self, dimension: int, rank: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(()))  # c
        self.weight = nn.Parameter(torch.zeros(rank, dimension))  # W

    @torch.no_grad()
    def begin(self, differences: Tensor) -> None:
        """Let W have a say without changing much: the directions in which q and k differ most.

        differences: (n, d) float32, q − k of neighbours; without any it stays the plain distance.
        """
        differences = differences[differences.isfinite().all(-1)]
        if len(differences) == 0:
            return
        _, directions = torch.linalg.eigh(differences.T @ differences)  # ascending
        weight = directions.T[-len(self.weight) :]
        plain, ours = differences.square().sum(), (differences @ weight.T).square().sum()
        self.weight.copy_(weight * (START * plain / ours.clamp_min(1e-6)).sqrt())
        self.scale.fill_((1.0 - START) ** 0.5)

    def forward(self, queries: Tensor, keys: Tensor) -> Tensor:
        """(n, c) distances. queries: (n, d); keys: (n, c, d).

        The difference is taken before it is projected: what is equal stays equal.
        """
        differences = queries.float().unsqueeze(1) - keys.float()  # (n, c, d)
        plain = differences.square().sum(-1)  # (n, c)
        squared = self.scale.square() * plain + (differences @ self.weight.T).square().sum(-1)
        return squared.clamp_min(NOT_ZERO).sqrt()
