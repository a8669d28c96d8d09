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
        any_found = found.any(dim=-1)
        nearest = distances.float().masked_fill(~found, torch.inf).amin(dim=-1, keepdim=True)  # (n, 1)
        nearest = nearest.masked_fill(~any_found.unsqueeze(-1), 0.0)
        distances = torch.where(found, distances.float(), nearest)
        query_length = torch.linalg.vector_norm(queries, dim=-1).clamp_min(1e-6)
        relative = (distances / query_length.unsqueeze(-1)).square()
        return cls(distances, found, any_found, query_length, relative, relative.amin(dim=-1))
