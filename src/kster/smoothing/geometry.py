"""How far the neighbours are, made safe for arithmetic and measured against the query's own length."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(slots=True)
class Geometry:
    """The distances of n queries to their k neighbours."""

    distances: Tensor  # (n, k) float32, finite: slots where nothing was found stand at the nearest distance
    found: Tensor  # (n, k) bool
    any_found: Tensor  # (n,) bool
    query_length: Tensor  # (n,) ‖q‖, above 0
    relative: Tensor  # (n, k) d² / ‖q‖², free of the scale of a model's states
    relative_nearest: Tensor  # (n,) d₁² / ‖q‖²

    @classmethod
    def of(cls, queries: Tensor, distances: Tensor, found: Tensor) -> Geometry:
        """queries: (n, d) float32; distances: (n, k), anything where not found; found: (n, k) bool."""
        return cls._of(torch.linalg.vector_norm(queries, dim=-1).clamp_min(1e-6), distances, found)

    def by(self, distances: Tensor) -> Geometry:
        """Of the same queries and neighbours, by other distances, (n, k)."""
        return self._of(self.query_length, distances, self.found)

    @classmethod
    def _of(cls, query_length: Tensor, distances: Tensor, found: Tensor) -> Geometry:
        nearest = torch.where(found, distances.float(), torch.inf).amin(dim=-1)  # (n,)
        any_found = nearest.isfinite()
        nearest = torch.where(any_found, nearest, 0.0)
        distances = torch.where(found, distances.float(), nearest.unsqueeze(-1))
        relative = (distances / query_length.unsqueeze(-1)).square()
        return cls(distances, found, any_found, query_length, relative, (nearest / query_length).square())
