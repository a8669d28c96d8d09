"""Several memories searched as one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from kster.errors import KsterError
from kster.memory.memory import Memory
from kster.memory.search.entries import entry_ids
from kster.memory.search.neighbours import Neighbours
from kster.memory.search.retriever import Batch, Searcher
from kster.memory.segment import Provenance, Segment
from kster.memory.sources import Match, Resembling, Similar
from kster.memory.sources.matching import sorted_matches

SHIFT = 40  # an id of the group = the memory's place in the group << 40 | its id there
OWN = (1 << SHIFT) - 1


class MemoryGroup:
    """Memories of one model, as one. Ids of entries and segments carry the memory's place in the group.

    Of entries at the same distance those of the memory named last come first, as the newest do within one:
    where there are more than k exact matches, the memory named last decides.
    The segments themselves keep the ids they have at home; `Provenance.memory` says where that is.
    """

    def __init__(self, memories: Sequence[Memory]) -> None:
        """Join memories.

        Args:
            memories: At least one, all of the same model.

        Raises:
            KsterError: If there is none, one is named twice, or their models differ.
        """
        if not memories:
            raise KsterError("a group needs at least one memory")
        first = memories[0]
        _require_distinct([memory.directory for memory in memories])
        for other in memories[1:]:
            if other.fingerprint != first.fingerprint:
                raise KsterError(
                    f"{first.directory} and {other.directory} were made with different models "
                    f"({first.description.model}, fingerprint {first.fingerprint}, and "
                    f"{other.description.model}, fingerprint {other.fingerprint}); only memories of one "
                    "model can be searched together"
                )
        self.memories: Sequence[Memory] = list(memories)

    @property
    def model(self) -> Any:
        """The base model that made all of them."""
        return self.memories[0].model

    @property
    def fingerprint(self) -> str:
        """What identifies that model."""
        return self.memories[0].fingerprint

    @property
    def dimension(self) -> int:
        """d, the length of a key."""
        return self.memories[0].dimension

    @property
    def entry_count(self) -> int:
        """How many entries can be found, in all memories together."""
        return sum(memory.entry_count for memory in self.memories)

    @property
    def is_empty(self) -> bool:
        """Whether none of them has a segment."""
        return all(memory.is_empty for memory in self.memories)

    def search(self, queries: Tensor, k: int) -> Neighbours:
        """As `Memory.search`, in the entries of all memories."""
        answers = [memory.search(queries, k) for memory in self.memories]
        for place, answer in enumerate(answers):
            answer.ids = _in_group(answer.ids, place)
        return Neighbours.merge(answers, k)

    def retriever(self, batch: Batch) -> Searcher:
        """As `Memory.retriever`, by the settings of the first memory."""
        members = [(memory, place << SHIFT) for place, memory in enumerate(self.memories)]
        return type(self.memories[0]).retriever_of_all(members, self, batch)

    def similar(self, source: str, m: int) -> Similar:
        """As `Memory.similar`, by relative BM25, with ids of segments within the group."""
        found = [memory.similar(source, m) for memory in self.memories]
        ids = np.concatenate([answer.segment_ids | place << SHIFT for place, answer in enumerate(found)])
        scores, relative = (
            np.concatenate(column)
            for column in zip(*((one.scores, one.relative) for one in found), strict=True)
        )
        order = np.lexsort((-ids, -relative))[:m]
        return Similar(ids[order], scores[order], relative[order])

    def matches(self, source: str, n: int = 5, *, least: int = 1, context: str | None = None) -> list[Match]:
        """As `Memory.matches`; `Match.memory` says which memory a segment is of."""
        found = [
            match
            for memory in self.memories
            for match in memory.matches(source, n, least=least, context=context)
        ]
        return sorted_matches(reversed(found), n)

    def similar_segments(self, sources: Sequence[str], m: int) -> list[list[Resembling]]:
        """As `Memory.similar_segments`, m of each memory."""
        found = [memory.similar_segments(sources, m) for memory in self.memories]
        return [[one for own in of_one for one in own] for of_one in zip(*reversed(found), strict=True)]

    def provenance(self, ids: Tensor | Iterable[int]) -> list[Provenance]:
        """As `Memory.provenance`; `Provenance.memory` says which memory an entry is of."""
        wanted = entry_ids(ids)
        if len(wanted) and not 0 <= int(wanted.min()) <= int(wanted.max()) < len(self.memories) << SHIFT:
            raise KsterError("no such entry in this group of memories")
        found: dict[int, Provenance] = {}
        for place, memory in enumerate(self.memories):
            own = wanted[wanted >> SHIFT == place]
            found |= zip(own.tolist(), memory.provenance(own & OWN), strict=True)
        return [found[entry] for entry in wanted.tolist()]

    def segment(self, id: int) -> Segment:
        """As `Memory.segment`; id: as `segment_ids` gives it."""
        if not 0 <= id < len(self.memories) << SHIFT:
            raise KsterError(f"no segment {id} in this group of memories")
        return self.memories[id >> SHIFT].segment(id & OWN)

    def segment_ids(self, ids: Tensor) -> Tensor:
        """As `Memory.segment_ids`, with ids within the group; -1 where an id is -1."""
        return self._each(ids, lambda memory, own: memory.segment_ids(own), ids_out=True)

    def target_groups(self, segment_ids: Tensor) -> Tensor:
        """As `Memory.target_groups`; equal texts in different memories are equal here, too."""
        return self._each(segment_ids, lambda memory, own: memory.target_groups(own), ids_out=False)

    def _each(self, ids: Tensor, ask: Callable[[Memory, Tensor], Tensor], ids_out: bool) -> Tensor:
        """Ask every memory about its own ids; -1 stays -1."""
        answer = torch.full_like(ids, -1)
        for place, memory in enumerate(self.memories):
            here = ids >> SHIFT == place  # -1 >> 40 is -1: nobody's
            own = ask(memory, ids[here] & OWN)
            answer[here] = _in_group(own, place) if ids_out else own
        return answer

    def close(self) -> None:
        """Close all of the memories."""
        for memory in self.memories:
            memory.close()

    def __enter__(self) -> MemoryGroup:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _require_distinct(directories: Iterable[Path]) -> None:
    """A memory that is named twice would fill the neighbours with copies of its entries."""
    known: dict[Path, Path] = {}  # by where they really are
    for directory in directories:
        real = directory.resolve()
        if real in known:
            raise KsterError(f"{known[real]} and {directory} are the same memory; name each memory once")
        known[real] = directory


def _in_group(ids: Tensor, place: int) -> Tensor:
    return torch.where(ids < 0, ids, ids | (place << SHIFT))
