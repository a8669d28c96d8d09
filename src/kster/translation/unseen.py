"""Text that a memory holds, translated as if the memory did not hold it: what a fit learns from that is true
of new text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

import torch
from torch import Tensor

from kster.memory import Entries, Match, Memory, MemoryGroup, Neighbours, Resembling
from kster.memory.search.retriever import Searcher
from kster.memory.segment import target_group
from kster.smoothing.smoother import Smoother

Like = TypeVar("Like", Match, Resembling)
HIDDEN_MATCHES = 8  # copies of a text that a memory may hold; more are found than are asked for by so many


class MemoryWithout(MemoryGroup):
    """A memory that does not find segments with the targets of some pairs, as matches or otherwise similar.

    Their entries are hidden by a `SmootherWithout`, which sees what is found at every step.
    """

    def __init__(self, memory: Memory, pairs: Iterable[tuple[str, str]]) -> None:
        super().__init__([memory])
        self.hidden = frozenset(target_group(target) for _, target in pairs)

    def entries_of(self, entries: Entries) -> Tensor:
        """The ids of the hidden entries."""
        return entries.ids[torch.isin(entries.target_groups, torch.tensor(sorted(self.hidden)))]

    def matches(self, source: str, n: int = 5, *, least: int = 1, context: str | None = None) -> list[Match]:
        found = super().matches(source, n + HIDDEN_MATCHES, least=least, context=context)
        return self._others(found)[:n]

    def similar_segments(self, sources: Sequence[str], m: int) -> list[list[Resembling]]:
        return [self._others(found) for found in super().similar_segments(sources, m)]

    def _others(self, found: Iterable[Like]) -> list[Like]:
        return [one for one in found if target_group(one.segment.target) not in self.hidden]


class SmootherWithout(Smoother):
    """A smoother for which some entries of the memory are hidden."""

    def __init__(self, smoother: Smoother, hidden: Tensor) -> None:
        super().__init__(smoother.settings)
        self.load_state_dict(smoother.state_dict())
        self.eval().to(hidden.device)
        self.hidden = hidden

    def neighbours(self, memory: Searcher, queries: Tensor) -> Neighbours:
        return super().neighbours(_SearcherWithout(memory, self.hidden), queries)


class _SearcherWithout:
    def __init__(self, memory: Searcher, hidden: Tensor) -> None:
        self.memory, self.hidden = memory, hidden

    def search(self, queries: Tensor, k: int) -> Neighbours:
        found = self.memory.search(queries, k)
        lost = torch.isin(found.ids, self.hidden)
        found.ids = found.ids.masked_fill(lost, -1)
        found.values = found.values.masked_fill(lost, 0)
        found.distances = found.distances.masked_fill(lost, torch.inf)
        return found
