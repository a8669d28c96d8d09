"""What can be asked of a memory: search, provenance, segments, export, facts. Nothing here changes it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import torch
from torch import Tensor

from kster.errors import KsterError
from kster.formats import Pair, write_pairs
from kster.limits import LARGEST_SEARCH
from kster.memory.entries import (
    Entries,
    all_entries,
    entry_ids,
    keys_of,
    places_of,
    segment_ids_of,
    target_groups_of,
)
from kster.memory.index import Index
from kster.memory.neighbours import Neighbours
from kster.memory.reader import Reader
from kster.memory.report import MemoryInfo, bytes_under, fit_status, since_fit
from kster.memory.retriever import Searcher
from kster.memory.segment import Provenance, Segment
from kster.memory.settings import SearchSettings
from kster.memory.shortlists import View, make_retriever
from kster.memory.sources import Match, Similar, SourceIndex
from kster.memory.sources.matching import CANDIDATES, best_matches
from kster.memory.sources.scoring import Collection
from kster.memory.store.backup import back_up
from kster.memory.store.checking import problems_of
from kster.memory.store.description import Description
from kster.memory.store.snapshot import Snapshot
from kster.memory.store.store import Store


class ReadableMemory:
    """The half of a `Memory` that reads it; any number of threads may, while others write."""

    def __init__(
        self, directory: Path, description: Description, search: SearchSettings, lock_timeout: float
    ) -> None:
        self.directory = directory
        self.description = description
        self._store = Store(directory, description, lock_timeout)
        self.search_settings = search
        self._reader = Reader(self._store, search)
        self._sources = SourceIndex(self._store)

    def close(self) -> None:
        self._reader.close()
        self._sources.close()
        self._store.close()

    # Searching -----------------------------------------------------------------------------------

    def search(self, queries: Tensor, k: int) -> Neighbours:
        """The k nearest live entries of each query, in the memory as it is now.

        queries: (n, d) float32, float16 or bfloat16, on any device; the answer is on the same.
        """
        if queries.dim() != 2 or queries.shape[1] != self.dimension:
            raise ValueError(f"queries are {tuple(queries.shape)}; this memory takes (n, {self.dimension})")
        if not isinstance(k, int) or not 1 <= k <= LARGEST_SEARCH:
            raise KsterError(f"k = {k!r}: the number of neighbours must be from 1 to {LARGEST_SEARCH:,}")
        return self._reader.search(queries.detach(), k)

    def index_on(self, device: torch.device) -> Index | None:
        """What `search` uses for queries on this device: the same object until the memory changes."""
        return self._reader.index_on(device)

    def build_index(self) -> None:
        """Make searches on the CPU as fast as they get, now; without this, they begin to do so on their own.

        Above `SearchSettings.exact_limit` entries that means inverted lists, which take a while to make.
        Until they are there searches are exact, and slower; afterwards they are approximate.
        """
        self._reader.build_index()

    def similar(self, source: str, m: int) -> Similar:
        """The m segments whose sources resemble this text best by BM25, or as many as share a term with it.

        Terms are words; pairs of characters in scripts that do not separate words.
        """
        return self.sources().similar(source, m)

    def sources(self, snapshot: Snapshot | None = None) -> Collection:
        """The sources of all live segments, as of now or of a snapshot."""
        return self._sources.collection(snapshot or self._reader.snapshot())

    def view(self, base: int = 0) -> View:
        """The memory as it is now, for `retriever`; base: see there."""
        snapshot = self._reader.snapshot()
        return View(snapshot, self.sources(snapshot), base)

    def retriever(self, texts: Sequence[str], device: torch.device, *, similarity: bool) -> Searcher:
        """What searches while these source texts are translated on a device, all entries or shortlists.

        similarity: whether neighbours shall say how much their sources resemble these; otherwise all entries
        are searched by the memory itself.
        """
        return make_retriever(self, [self.view()], texts, device, self.search_settings, similarity)

    def matches(self, source: str, n: int = 5, *, least: int = 1) -> list[Match]:
        """The n segments whose sources need the fewest words changed to be this text, best first.

        least: the lowest percentage that counts as a match.
        """
        if n < 1 or not 0 <= least <= 100:
            raise KsterError(f"n = {n}, least = {least}; accepted: n from 1 on, least from 0 to 100")
        near = self.similar(source, max(CANDIDATES, 4 * n)).segment_ids.tolist()
        with self._store.reading() as database:
            found = database.by_ids(near)
        found |= {segment.id: segment for segment in self.find_text(source)}
        return best_matches(source, found.values(), n, least, str(self.directory))

    def provenance(self, ids: Tensor | Iterable[int]) -> list[Provenance]:
        """Where each of these entries comes from. Raises KsterError for one that has left the memory."""
        wanted, snapshot = entry_ids(ids), self._reader.snapshot()
        segment_ids, positions = places_of(snapshot, wanted)
        with self._store.reading() as database:
            found = database.by_ids([i for i in segment_ids if i >= 0], live=False)
        for entry, segment in zip(wanted.tolist(), segment_ids, strict=True):
            if segment not in found:
                raise KsterError(f"{self.directory}: no entry {entry} (any more)")
        return [
            Provenance(found[segment], position, str(self.directory))
            for segment, position in zip(segment_ids, positions, strict=True)
        ]

    def segment_ids(self, ids: Tensor) -> Tensor:
        """(…) segment ids of (…) entry ids; -1 where there is no such entry."""
        return segment_ids_of(self._reader.snapshot(), ids)

    def target_groups(self, segment_ids: Tensor) -> Tensor:
        """(…) numbers that are equal for segments with the same target text, case and whitespace aside."""
        return target_groups_of(self._reader.snapshot(), segment_ids)

    def entries(self) -> Entries:
        """Every live entry, as of now."""
        return all_entries(self._reader.snapshot())

    def keys_of(self, ids: Tensor) -> Tensor:
        """(…, d) float16 keys of (…) entry ids, on the CPU; zeros where there is no such entry."""
        return keys_of(self._reader.snapshot(), ids)

    @property
    def dimension(self) -> int:
        return self.description.dimension

    @property
    def fingerprint(self) -> str:
        return self.description.fingerprint

    @property
    def entry_count(self) -> int:
        """Live entries, one for each target token."""
        return self._reader.snapshot().live_count

    # Looking -------------------------------------------------------------------------------------

    def segment(self, id: int) -> Segment:
        with self._store.reading() as database:
            found = database.by_ids([id])
        if id not in found:
            raise KsterError(f"{self.directory}: no segment {id}")
        return found[id]

    def segments(self, limit: int | None = None, offset: int = 0, query: str | None = None) -> list[Segment]:
        """Live segments in the order they were added; query: text that occurs in either side, in any case."""
        # Searches wait for `reading`: whatever may look at every segment has a connection of its own.
        whole = query or limit is None
        with self._store.reading_apart() if whole else self._store.reading() as database:
            return database.segments(limit, offset, query)

    def segment_count(self, query: str | None = None) -> int:
        with self._store.reading_apart() if query else self._store.reading() as database:
            return database.count(query)

    def find_text(self, source: str | None = None, target: str | None = None) -> list[Segment]:
        """Live segments with exactly this source, this target, or both."""
        with self._store.reading_apart() as database:
            return database.by_text(source, target)

    def export(self) -> Iterator[Pair]:
        """Every live pair, in the order added, as of the moment the first one is asked for."""
        with self._store.reading_apart() as database:
            for segment in database.live_segments():
                yield Pair(segment.source, segment.target, segment.unit)

    def export_file(self, path: str | Path, *, format: str | None = None) -> int:
        """Write every live pair to a file, which appears whole or not at all; returns how many.

        format: tmx, xliff, xliff2, po, tsv, csv or moses, unless the file's name says it.
        """
        own = self.description
        return write_pairs(path, self.export(), own.source_lang, own.target_lang, format=format)

    def back_up(self, file: str | Path) -> None:
        """Write the memory as it is now to one file, even while others change it; see `Memory.restore`."""
        back_up(self._store, Path(file))

    def verify(self) -> list[str]:
        """Read everything and compare it with its checksums; returns the problems found."""
        return problems_of(self._store)

    def info(self) -> MemoryInfo:
        description = self.description
        fitted, tuned, fit = fit_status(self.directory / "smoother")
        with self._store.reading_apart() as database:
            live, removed = database.counts()
            changes = since_fit(fit, database)
        return MemoryInfo(
            directory=str(self.directory),
            segments=live,
            removed=removed,
            entries=self.entry_count,
            bytes_on_disk=bytes_under(self.directory),
            bytes_in_ram=self._reader.bytes_in_ram,
            index=self._reader.index_kind(torch.device("cpu")),
            model=description.model,
            fingerprint=description.fingerprint,
            dimension=description.dimension,
            source_lang=description.source_lang,
            target_lang=description.target_lang,
            created=description.created,
            fitted=fitted,
            tuned=tuned,
            fit=fit,
            since_fit=changes,
        )
