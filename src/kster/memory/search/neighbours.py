"""What a search returns, and the exact ranking that every search ends with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

ALL_WORDS = -1  # every bit
COMPARED = 16  # queries compared with their candidates at a time on a CPU: what a processor keeps close


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
    """(n, k) float32: how alike the source sentences are, from 0 to 1; None if it is not known which
    sentences the queries belong to."""
    words: Tensor | None = None
    """(n, k) int64: bit i says that word i of that sentence is in the neighbour's source, too. Negative,
    unless a later segment has the same source and thus overrides this one."""
    plain: Tensor | None = None
    """(n, k) L2 where distances are learned, inf where nothing was found; None where distances are L2."""
    rare: Tensor | None = None
    """(n,) int64: bit i says that the i-th word of that sentence is in few sources of the memory."""

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
        for name in FILLERS:
            mine, other = getattr(self, name), getattr(answer, name)
            if mine is not None and other is not None:
                mine[row] = other[0]

    def clear(self, there: Tensor) -> None:
        """Empty the places where no neighbour is; there: (n, k) bool."""
        self.values, self.ids = self.values * there, self.ids.masked_fill(~there, -1)
        self.keys = self.keys.masked_fill(~there[..., None], 0.0)
        self.distances = self.distances.masked_fill(~there, torch.inf)
        if self.similarity is not None:
            self.similarity = self.similarity * there
        if self.plain is not None:
            self.plain = self.plain.masked_fill(~there, torch.inf)

    @classmethod
    def stack(cls, parts: Sequence[Neighbours]) -> Neighbours:
        """Answers to several batches of queries as one."""
        return parts[0] if len(parts) == 1 else _joined(parts, 0)

    @classmethod
    def merge(cls, parts: Sequence[Neighbours], k: int) -> Neighbours:
        """The k nearest of several answers to the same queries; no entry may be in two of them."""
        if len(parts) == 1:
            return parts[0]
        both = _joined(parts, 1)
        return both._chosen(nearest_first(both.distances, both.ids)[:, :k])

    def measured(self, distances: Tensor, k: int) -> Neighbours:
        """The k nearest by other distances, (n, c)."""
        order = nearest_first(distances, self.ids)[:, :k]  # (n, k)
        chosen = self._chosen(order)
        chosen.plain, chosen.distances = chosen.distances, distances.gather(1, order)
        return chosen

    def _chosen(self, order: Tensor) -> Neighbours:
        """order: (n, k) positions."""
        return Neighbours(
            self.distances.gather(1, order),
            self.values.gather(1, order),
            self.ids.gather(1, order),
            take(self.keys, order),
            None if self.similarity is None else self.similarity.gather(1, order),
            None if self.words is None else self.words.gather(1, order),
            rare=self.rare,
        )


# What is known of each of (n, k) neighbours, and what stands for it where nothing was found or is known.
FILLERS = {
    "distances": torch.inf,
    "values": 0,
    "ids": -1,
    "keys": 0.0,
    "similarity": 0.0,
    "words": ALL_WORDS,
    "plain": torch.inf,
}


def _joined(parts: Sequence[Neighbours], dimension: int) -> Neighbours:
    """Several answers one after the other: of other queries (0), or to the same queries (1)."""
    joined = {}
    for name, filler in FILLERS.items():
        said = [getattr(part, name) for part in parts]
        example = next((tensor for tensor in said if tensor is not None), None)
        if example is not None:
            joined[name] = torch.cat(
                [
                    example.new_full(part.ids.shape, filler) if tensor is None else tensor
                    for part, tensor in zip(parts, said, strict=True)
                ],
                dimension,
            )
    rare = [part.rare for part in parts if part.rare is not None]
    return Neighbours(**joined, rare=torch.cat(rare) if rare and dimension == 0 else next(iter(rare), None))


def rank(
    queries: Tensor,
    ids: Tensor,
    stored: Tensor,
    rows: Tensor,
    values: Tensor,
    k: int,
    similarity: Tensor | None = None,
    words: Tensor | None = None,
) -> Neighbours:
    """The k nearest of each query's candidates, by the distance computed directly from the stored keys.

    queries: (n, d); ids, rows, values, similarity, words: (n, c), id -1 for no candidate; stored: (r, d), the
    keys; a candidate's is in the row that it names.
    ‖q − k‖ is summed from differences: ‖q‖² − 2q·k + ‖k‖² loses all its digits near a distance of 0.
    A query that is not finite, as a model may give in float16, finds nothing.
    """
    distances = distances_of(queries.float(), stored, rows)  # (n, c)
    lost = (ids < 0) | ~distances.isfinite()
    distances.masked_fill_(lost, torch.inf)
    ids = ids.masked_fill(lost, -1)
    order = nearest_first(distances, ids)[:, :k]  # (n, min(c, k))
    distances = distances.gather(1, order)
    keys = stored.index_select(0, rows.gather(1, order).flatten()).half().view(*order.shape, -1)
    found = distances.isfinite()
    if stored.is_cuda or not bool(found.all()):  # on a GPU, looking would mean waiting
        keys = keys * found[..., None]
    answer = Neighbours(
        distances=distances,
        values=values.gather(1, order).long() * found,
        ids=ids.gather(1, order),
        keys=keys,
        similarity=None if similarity is None else similarity.gather(1, order) * found,
        words=None if words is None else words.gather(1, order),
    )
    return filled_up(answer, k)


def distances_of(queries: Tensor, keys: Tensor, rows: Tensor | None = None) -> Tensor:
    """(n, c) ‖q − k‖, of keys (n, c, d), or of rows (n, c) of keys (r, d). queries: (n, d) float32.

    On a CPU a few queries at a time, so that intermediate results stay in its caches.
    """
    if keys.device.type == "cpu" and len(queries) > COMPARED:
        parts = zip(queries.split(COMPARED), (keys if rows is None else rows).split(COMPARED), strict=True)
        return torch.cat(
            [
                distances_of(own, some) if rows is None else distances_of(own, keys, some)
                for own, some in parts
            ]
        )
    if rows is not None:
        keys = keys.index_select(0, rows.flatten()).view(*rows.shape, -1)
    return torch.linalg.vector_norm(keys.float().sub_(queries[:, None]), dim=-1)


def filled_up(answer: Neighbours, k: int) -> Neighbours:
    """Filled up with empty places to k for each query."""
    n, c = answer.ids.shape
    if c >= k:
        return answer
    nothing = Neighbours.missing(n, k - c, answer.keys.shape[2], answer.keys.device)
    return _joined([answer, nothing], 1)


def nearest_first(distances: Tensor, ids: Tensor) -> Tensor:
    """(n, c) positions in the order of distance, of equal ones the largest id first, id -1 last."""
    by_id = ids.argsort(1, descending=True)
    by_distance = distances.gather(1, by_id).argsort(dim=1, stable=True)
    return by_id.gather(1, by_distance)


def take(keys: Tensor, order: Tensor) -> Tensor:
    """(n, k, d) from (n, c, d) by (n, k) positions. On a CPU `gather` takes ten times as long."""
    n, c, d = keys.shape
    rows = order + torch.arange(0, n * c, c, device=order.device)[:, None]
    return keys.reshape(-1, d).index_select(0, rows.flatten()).view(n, -1, d)
