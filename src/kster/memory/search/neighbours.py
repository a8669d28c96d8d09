"""What a search returns, and the exact ranking that every search ends with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

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
    """(n, k) float32: how alike the source sentences are, from 0 to 1; None where nobody said which sentences
    the queries belong to."""
    words: Tensor | None = None
    """(n, k) int64: bit i says that word i of that sentence is in the neighbour's source, too. Below 0,
    unless a later segment has the same source: then that one is what was said last."""
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
        self.distances[row], self.values[row] = answer.distances[0], answer.values[0]
        self.ids[row], self.keys[row] = answer.ids[0], answer.keys[0]
        if self.similarity is not None and answer.similarity is not None:
            self.similarity[row] = answer.similarity[0]
        if self.words is not None and answer.words is not None:
            self.words[row] = answer.words[0]

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
            _joined_words(parts, 0),
            rare=torch.cat(rare)
            if (rare := [part.rare for part in parts if part.rare is not None])
            else None,
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
        both = cls(distances, values, ids, keys, _joined(parts, 1), _joined_words(parts, 1))
        return both._chosen(nearest_first(distances, ids)[:, :k])

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


def _joined(parts: Sequence[Neighbours], dimension: int) -> Tensor | None:
    """The similarities of several answers; unknown ones are 0, and None where all are unknown."""
    if all(part.similarity is None for part in parts):
        return None
    known = (part.similarity for part in parts)
    each = [torch.zeros_like(p.distances) if s is None else s for p, s in zip(parts, known, strict=True)]
    return torch.cat(each, dimension)


def _joined_words(parts: Sequence[Neighbours], dimension: int) -> Tensor | None:
    """The words of several answers; where they are unknown, none is missing."""
    if all(part.words is None for part in parts):
        return None
    known = (part.words for part in parts)
    each = [torch.full_like(p.ids, ALL_WORDS) if w is None else w for p, w in zip(parts, known, strict=True)]
    return torch.cat(each, dimension)


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
    distances = _distances(queries.float(), stored, rows)  # (n, c)
    lost = (ids < 0) | ~distances.isfinite()
    distances.masked_fill_(lost, torch.inf)
    ids = ids.masked_fill(lost, -1)
    order = nearest_first(distances, ids)[:, :k]  # (n, min(c, k))
    distances = distances.gather(1, order)
    keys = stored.index_select(0, rows.gather(1, order).flatten()).half().view(*order.shape, -1)
    found = distances.isfinite()
    if stored.is_cuda or not bool(found.all()):  # on a GPU looking would be waiting
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


def _distances(queries: Tensor, stored: Tensor, rows: Tensor) -> Tensor:
    """(n, c) ‖q − k‖. On a CPU a few queries at a time, so that what is between stays in its caches."""
    at_once = COMPARED if stored.device.type == "cpu" else max(1, len(rows))
    parts = []
    for own, some in zip(queries.split(at_once), rows.split(at_once), strict=True):
        differences = stored.index_select(0, some.flatten()).float().view(*some.shape, -1)  # (m, c, d)
        differences.sub_(own[:, None])
        parts.append(torch.linalg.vector_norm(differences, dim=-1))
    return torch.cat(parts) if len(parts) > 1 else parts[0]


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
        None if answer.similarity is None else pad(answer.similarity, (0, k - c)),
        None if answer.words is None else pad(answer.words, (0, k - c), value=ALL_WORDS),
    )


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
