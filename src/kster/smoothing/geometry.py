"""How far the neighbours are, made safe for arithmetic and measured against the query's own length."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(slots=True)
class Geometry:
    """The distances of n queries to their k neighbours."""

    distances: Tensor  # (n, k) float32, finite: slots where nothing was found stand at the nearest distance
    nearest: Tensor  # (n,) the least of them, d₁; 0 where nothing was found
    found: Tensor | None  # (n, k) bool; None where everything was
    any_found: Tensor | None  # (n,) bool; None where everything was found
    query_length: Tensor  # (n,) ‖q‖, above 0

    @classmethod
    def of(cls, queries: Tensor, distances: Tensor, found: Tensor | None) -> Geometry:
        """queries: (n, d) float32; distances: (n, k), anything where not found; found: (n, k) bool."""
        return cls._of(torch.linalg.vector_norm(queries, dim=-1).clamp_min(1e-6), distances, found)

    @property
    def relative(self) -> Tensor:
        """(n, k) d² / ‖q‖², free of the scale of a model's states."""
        return (self.distances / self.query_length.unsqueeze(-1)).square()

    @property
    def relative_nearest(self) -> Tensor:
        """(n,) d₁² / ‖q‖²."""
        return (self.nearest / self.query_length).square()

    def by(self, distances: Tensor) -> Geometry:
        """Of the same queries and neighbours, by other distances, (n, k)."""
        return self._of(self.query_length, distances, self.found)

    @classmethod
    def _of(cls, query_length: Tensor, distances: Tensor, found: Tensor | None) -> Geometry:
        if found is None:
            distances = distances.float()
            return cls(distances, distances.amin(dim=-1), None, None, query_length)
        nearest = torch.where(found, distances.float(), torch.inf).amin(dim=-1)  # (n,)
        any_found = nearest.isfinite()
        nearest = torch.where(any_found, nearest, 0.0)
        distances = torch.where(found, distances.float(), nearest.unsqueeze(-1))
        return cls(distances, nearest, found, any_found, query_length)


def gaps(found: Tensor) -> Tensor | None:
    """What was found, (n, k) bool; None for everything, which spares masks. Only a CPU is asked, which need
    not be waited for."""
    if found.is_cuda or torch.is_grad_enabled() or not bool(found.all()):
        return found
    return None
