"""What a search returns, and the exact ranking every kind of index ends with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(slots=True)
class Neighbours:
    """The k nearest entries of n queries, nearest first, on the queries' device.

    Of entries at the same distance the newest comes first: ids grow with time, and what was said last counts.
    """

    distances: Tensor  # (n, k) float32, L2 (not squared) or learned; inf where nothing was found
    values: Tensor  # (n, k) int64, the token that followed; 0 where nothing was found
    ids: Tensor  # (n, k) int64, entry ids; -1 where nothing was found
    keys: Tensor  # (n, k, d) float16; zeros where nothing was found
    similarity: Tensor | None = None
    """(n, k) float32: how alike the source sentences are, from 0 to 1; None where nobody said which sentences
    the queries belong to."""

    @classmethod
    def missing(cls, n: int, k: int, dimension: int, device: torch.device) -> Neighbours:
        """What an empty memory answers."""
        return cls(
            distances=torch.full((n, k), torch.inf, device=device),
            values=torch.zeros((n, k), dtype=torch.int64, device=device),
            ids=torch.full((n, k), -1, dtype=torch.int64, device=device),
            keys=torch.zeros((n, k, dimension), dtype=torch.float16, device=device),
        )

    def put(self, row: int, answer: Neighbours) -> None:
        """Replace the answer to one query."""
        self.distances[row], self.values[row] = answer.distances[0], answer.values[0]
        self.ids[row], self.keys[row] = answer.ids[0], answer.keys[0]
        if self.similarity is not None and answer.similarity is not None:
            self.similarity[row] = answer.similarity[0]

    @classmethod
    def stack(cls, parts: Sequence[Neighbours]) -> Neighbours:
        """Answers to several batches of queries as one."""
        if len(parts) == 1:
            return parts[0]
        return cls(
            torch.cat([part.distances for part in parts]),
            torch.cat([part.values for part in parts]),
            torch.cat([part.ids for part in parts]),
            torch.cat([part.keys for part in parts]),
            _joined(parts, 0),
        )

    @classmethod
    def merge(cls, parts: Sequence[Neighbours], k: int) -> Neighbours:
        """The k nearest of several answers to the same queries; no entry may be in two of them."""
        if len(parts) == 1:
            return parts[0]
        ids = torch.cat([part.ids for part in parts], 1)
        distances = torch.cat([part.distances for part in parts], 1)
        values = torch.cat([part.values for part in parts], 1)
        keys = torch.cat([part.keys for part in parts], 1)
        return cls(distances, values, ids, keys, _joined(parts, 1)).measured(distances, k)

    def measured(self, distances: Tensor, k: int) -> Neighbours:
        """The k nearest by these distances, (n, c)."""
        order = nearest_first(distances, self.ids)[:, :k]  # (n, k)
        return Neighbours(
            distances.gather(1, order),
            self.values.gather(1, order),
            self.ids.gather(1, order),
            take(self.keys, order),
            None if self.similarity is None else self.similarity.gather(1, order),
        )


def _joined(parts: Sequence[Neighbours], dimension: int) -> Tensor | None:
    """The similarities of several answers; unknown ones are 0, and None where all are unknown."""
    if all(part.similarity is None for part in parts):
        return None
    known = (part.similarity for part in parts)
    each = [torch.zeros_like(p.distances) if s is None else s for p, s in zip(parts, known, strict=True)]
    return torch.cat(each, dimension)


def rank(queries: Tensor, ids: Tensor, keys: Tensor, values: Tensor, k: int) -> Neighbours:
    """The k nearest of each query's candidates, by the distance computed directly from the stored keys.

    queries: (n, d); ids, values: (n, c), id -1 where there is no candidate; keys: (n, c, d).
    ‖q − k‖ is summed from differences: ‖q‖² − 2q·k + ‖k‖² loses all its digits near a distance of 0.
    A query that is not finite, as a model may give in float16, finds nothing.
    """
    squared = (queries.float()[:, None] - keys.float()).square().sum(-1)  # (n, c)
    found = (ids >= 0) & squared.isfinite()
    ids = ids.masked_fill(~found, -1)
    distances = squared.sqrt().masked_fill(~found, torch.inf)
    order = nearest_first(distances, ids)[:, :k]  # (n, min(c, k))
    found = found.gather(1, order)
    answer = Neighbours(
        distances=distances.gather(1, order),
        values=values.gather(1, order).long() * found,
        ids=ids.gather(1, order),
        keys=take(keys, order).half() * found[..., None],
    )
    return filled_up(answer, k)


def filled_up(answer: Neighbours, k: int) -> Neighbours:
    """With k places for each query, the further ones empty."""
    n, c = answer.ids.shape
    if c >= k:
        return answer
    nothing = Neighbours.missing(n, k - c, answer.keys.shape[2], answer.keys.device)
    return Neighbours(
        torch.cat([answer.distances, nothing.distances], 1),
        torch.cat([answer.values, nothing.values], 1),
        torch.cat([answer.ids, nothing.ids], 1),
        torch.cat([answer.keys, nothing.keys], 1),
    )


def nearest_first(distances: Tensor, ids: Tensor) -> Tensor:
    """(n, c) positions in the order of distance, of equal ones the largest id first, id -1 last."""
    by_id = ids.argsort(1, descending=True)
    by_distance = distances.gather(1, by_id).argsort(dim=1, stable=True)
    return by_id.gather(1, by_distance)


def take(keys: Tensor, order: Tensor) -> Tensor:
    """(n, k, d) from (n, c, d) by (n, k) positions."""
    return keys.gather(1, order[..., None].expand(-1, -1, keys.shape[2]))
