"""A memory's files, open, and search among them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from kster.errors import KsterError
from kster.limits import LARGEST_SEARCH
from kster.memory.report import MemorySize
from kster.memory.search.block_index import BlockIndex
from kster.memory.search.entries import (
    Entries,
    all_entries,
    entry_ids,
    keys_of,
    places_of,
    segment_ids_of,
    target_groups_of,
)
from kster.memory.search.listing import device_shortlists
from kster.memory.search.neighbours import Neighbours
from kster.memory.search.reader import Reader
from kster.memory.search.retriever import Batch, Searcher
from kster.memory.search.settings import SearchSettings
from kster.memory.search.shortlists import View, make_retriever
from kster.memory.segment import Provenance
from kster.memory.sources import Similar, SourceIndex
from kster.memory.sources.scoring import Collection as Sources
from kster.memory.store.description import Description
from kster.memory.store.snapshot import Snapshot
from kster.memory.store.store import Store

ON_DEVICE = {"cuda"}  # where shortlists are searched among the keys that an index holds


class SearchedMemory:
    """A memory that is searched; any number of threads may, while others write."""

    lost: list[str] | None = None  # what was left out of a memory that lies in several places

    def __init__(
        self, directory: Path, description: Description, search: SearchSettings, lock_timeout: float
    ) -> None:
        self.directory = directory
        self._store = Store(directory, description, lock_timeout)
        self.description = self._store.description
        self.search_settings = search
        self._reader = Reader(self._store)
        self._sources = SourceIndex(self._store)

    def close(self) -> None:
        """Close all files; nothing can be asked of it afterwards."""
        self._reader.close()
        self._sources.close()
        self._store.close()

    def allowing_loss(self) -> Self:
        """For callers that can do without parts of it that do not answer.

        Returns:
            The same memory; its `lost` then names what was left out.
        """
        return self

    # Searching -----------------------------------------------------------------------------------

    def search(self, queries: Tensor, k: int) -> Neighbours:
        """The k nearest live entries of each query, in the memory as it is now.

        Args:
            queries: (n, d) float32, float16 or bfloat16, on any device.
            k: How many neighbours; fewer are found in a smaller memory.

        Returns:
            The neighbours, on the device of the queries.

        Raises:
            KsterError: If k is out of range, or the memory is damaged.
            ValueError: If the queries have another length than the keys.
        """
        if queries.dim() != 2 or queries.shape[1] != self.dimension:
            raise ValueError(f"queries are {tuple(queries.shape)}; this memory takes (n, {self.dimension})")
        if not isinstance(k, int) or not 1 <= k <= LARGEST_SEARCH:
            raise KsterError(f"k = {k!r}: the number of neighbours must be from 1 to {LARGEST_SEARCH:,}")
        return self._reader.search(queries.detach(), k)

    def index_on(self, device: torch.device) -> BlockIndex | None:
        """What `search` searches by.

        Args:
            device: Where the queries are.

        Returns:
            The same index until the memory changes; None while it has no entries.
        """
        return self._reader.index_on(device)

    def similar(self, source: str, m: int) -> Similar:
        """The m segments whose sources resemble this text best by BM25, or as many as share a term with it.

        Terms are words; pairs of characters in scripts that do not separate words.

        Args:
            source: A source text.
            m: How many segments at most.

        Returns:
            Segment ids with their scores, best first.
        """
        return self.sources().similar(source, m)

    def sources(self, snapshot: Snapshot | None = None) -> Sources:
        """The sources of all live segments.

        Args:
            snapshot: As of when; by default now.

        Returns:
            What finds those that resemble a text.
        """
        return self._sources.collection(snapshot or self._reader.snapshot())

    def view(self, base: int = 0, snapshot: Snapshot | None = None) -> View:
        """The memory at one moment, as `retriever` uses it.

        Args:
            base: Is added to the ids of its entries and segments, which tells the members of a group apart.
            snapshot: As of when; by default now.

        Returns:
            Its segments and their sources.
        """
        snapshot = snapshot or self._reader.snapshot()
        return View(snapshot, self.sources(snapshot), self._reader.codes, base)

    def retriever(self, batch: Batch) -> Searcher:
        """What searches while some sentences are translated.

        Args:
            batch: The sentences.

        Returns:
            What searches all entries, or the shortlist of each sentence, as the settings want it.
        """
        return self.retriever_of_all([(self, 0)], self, batch)

    @classmethod
    def retriever_of_all(
        cls, memories: Sequence[tuple[Self, int]], searcher: Searcher, batch: Batch
    ) -> Searcher:
        """As `retriever`, for several memories as one, by the settings of the first.

        Args:
            memories: Each with the base of its ids (see `view`).
            searcher: What searches all of their entries.
            batch: The sentences.

        Returns:
            What searches for these sentences.
        """
        settings, device = memories[0][0].search_settings, batch.device
        if device.type not in ON_DEVICE:
            views = [memory.view(base) for memory, base in memories]
            return make_retriever(searcher, views, batch, settings)
        indexes = [memory.index_on(device) for memory, _ in memories]
        views = [
            memory.view(base, None if index is None else index.snapshot)
            for (memory, base), index in zip(memories, indexes, strict=True)
        ]
        found = device_shortlists(views, indexes, batch, settings)
        return make_retriever(searcher, views, batch, settings) if found is None else found

    def provenance(self, ids: Tensor | Iterable[int]) -> list[Provenance]:
        """Where entries come from.

        Args:
            ids: Entry ids, as `search` gives them.

        Returns:
            For each entry its segment and its position there.

        Raises:
            KsterError: If an entry has left the memory.
        """
        wanted, snapshot = entry_ids(ids), self._reader.snapshot()
        segment_ids, positions = places_of(snapshot, wanted)
        with self._store.reading() as database:
            found = database.by_ids([i for i in segment_ids if i >= 0], state="all")
        for entry, segment in zip(wanted.tolist(), segment_ids, strict=True):
            if segment not in found:
                raise KsterError(f"{self.directory}: no entry {entry} (any more)")
        return [
            Provenance(found[segment], position, str(self.directory))
            for segment, position in zip(segment_ids, positions, strict=True)
        ]

    def segment_ids(self, ids: Tensor) -> Tensor:
        """Which segments entries belong to.

        Args:
            ids: (…) entry ids.

        Returns:
            (…) segment ids; -1 where there is no such entry.
        """
        return segment_ids_of(self._reader.snapshot(), ids)

    def target_groups(self, segment_ids: Tensor) -> Tensor:
        """Which segments have the same target text, case and white space aside.

        Args:
            segment_ids: (…) ids of segments.

        Returns:
            (…) numbers that are equal for equal texts.
        """
        return target_groups_of(self._reader.snapshot(), segment_ids)

    def entries(self) -> Entries:
        """Every live entry, as of now.

        Returns:
            Their ids, tokens and segments; keys are read when they are asked for.
        """
        return all_entries(self._reader.snapshot())

    def keys_of(self, ids: Tensor) -> Tensor:
        """The keys of entries.

        Args:
            ids: (…) entry ids.

        Returns:
            (…, d) float16, on the CPU; zeros where there is no such entry.
        """
        return keys_of(self._reader.snapshot(), ids)

    @property
    def dimension(self) -> int:
        """d, the length of a key."""
        return self.description.dimension

    @property
    def fingerprint(self) -> str:
        """What identifies the base model that made the keys."""
        return self.description.fingerprint

    @property
    def entry_count(self) -> int:
        """Live entries, one for each target token of the segments that have their keys."""
        return self._reader.snapshot().live_count

    @property
    def is_empty(self) -> bool:
        """Whether there is no segment, with keys or without."""
        return not self._reader.snapshot().live_segments.any()

    def ids_without_keys(self) -> npt.NDArray[np.int64]:
        """The segments whose keys have yet to be made.

        Returns:
            (n,) their ids.
        """
        snapshot = self._reader.snapshot()
        return snapshot.spans.segment_ids[snapshot.without_keys]

    def size(self) -> MemorySize:
        """How large the memory is; `info` says more, and takes longer.

        Returns:
            Its entries, segments, and segments without keys.
        """
        snapshot = self._reader.snapshot()
        return MemorySize(
            snapshot.live_count,
            int(snapshot.live_segments.sum()),
            int(snapshot.without_keys.sum()),
        )
