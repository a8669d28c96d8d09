"""What can be asked of a memory: search, provenance, segments, export, facts. Nothing here changes it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from kster.errors import KsterError
from kster.formats import Pair, write_pairs
from kster.limits import LARGEST_SEARCH
from kster.memory.checks import Finding, findings
from kster.memory.report import MemoryInfo, MemorySize, bytes_under, fit_status, since_fit
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
from kster.memory.search.neighbours import Neighbours
from kster.memory.search.reader import Reader
from kster.memory.search.retriever import Searcher
from kster.memory.search.settings import SearchSettings
from kster.memory.search.shortlists import View, make_retriever
from kster.memory.segment import Provenance, Segment
from kster.memory.sources import Match, Similar, SourceIndex
from kster.memory.sources.matching import CANDIDATES, best_matches
from kster.memory.sources.scoring import Collection as Sources
from kster.memory.store.backup import back_up
from kster.memory.store.checking import problems_of
from kster.memory.store.database import STATES
from kster.memory.store.description import Description
from kster.memory.store.history import Event, events_of, latest_events
from kster.memory.store.snapshot import Snapshot
from kster.memory.store.store import Store


class ReadableMemory:
    """The half of a `Memory` that reads it; any number of threads may, while others write."""

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
        """The same memory for somebody who can do without a part of it that does not answer; see `lost`."""
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
        """What `search` uses for queries on this device: the same object until the memory changes."""
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
        """The sources of all live segments, as of now or of a snapshot."""
        return self._sources.collection(snapshot or self._reader.snapshot())

    def view(self, base: int = 0) -> View:
        """The memory as it is now, for `retriever`; base: see there."""
        snapshot = self._reader.snapshot()
        return View(snapshot, self.sources(snapshot), base)

    def retriever(
        self,
        texts: Sequence[str],
        device: torch.device,
        *,
        similarity: bool,
        words: Sequence[Sequence[str]] | None = None,
    ) -> Searcher:
        """What searches while these source texts are translated on a device, all entries or shortlists.

        similarity: whether neighbours shall say how much their sources resemble these; otherwise all entries
        are searched by the memory itself. words: of each text, 63 at most; neighbours
        then say which of them are in their sources, too.
        """
        return self.retriever_of_all([(self, 0)], self, texts, device, similarity=similarity, words=words)

    @classmethod
    def retriever_of_all(
        cls,
        memories: Sequence[tuple[Self, int]],
        searcher: Searcher,
        texts: Sequence[str],
        device: torch.device,
        *,
        similarity: bool,
        words: Sequence[Sequence[str]] | None = None,
    ) -> Searcher:
        """As `retriever`, for several memories as one, by the settings of the first.

        memories: with what the ids of each begin. searcher: what searches all of their entries.
        """
        settings = memories[0][0].search_settings
        views = [memory.view(base) for memory, base in memories]
        return make_retriever(searcher, views, texts, device, settings, similarity, words)

    def matches(self, source: str, n: int = 5, *, least: int = 1, context: str | None = None) -> list[Match]:
        """The n segments whose sources need the fewest words changed to be this text, best first.

        Args:
            source: A source text.
            n: How many matches at most.
            least: The lowest percentage that counts as a match.
            context: Where the text stands.

        Returns:
            The matches, best first; 100 % is equal but for case and white space, 101 % that in its context.

        Raises:
            KsterError: If n or least is out of range.
        """
        if n < 1 or not 0 <= least <= 100:
            raise KsterError(f"n = {n}, least = {least}; accepted: n from 1 on, least from 0 to 100")
        near = self.similar(source, max(CANDIDATES, 4 * n)).segment_ids.tolist()
        with self._store.reading() as database:
            found = database.by_ids(near)
        found |= {segment.id: segment for segment in self.find_text(source)}
        return best_matches(source, found.values(), n, least, str(self.directory), context)

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
        """(n,) the segments whose keys have yet to be made."""
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

    # Looking -------------------------------------------------------------------------------------

    def segment(self, id: int) -> Segment:
        """One segment, also one that teaches nothing: a draft, rejected, or superseded.

        Args:
            id: As `Segment.id` has it.

        Returns:
            The segment.

        Raises:
            KsterError: If no segment has this id.
        """
        with self._store.reading() as database:
            found = database.by_ids([id], state="kept")
        if id not in found:
            raise KsterError(f"{self.directory}: no segment {id}")
        return found[id]

    def segments_of(self, ids: Iterable[int]) -> list[Segment]:
        """The live segments among these ids, in the order of the ids."""
        wanted = list(ids)
        with self._store.reading() as database:
            found = database.by_ids(wanted)
        return [found[id] for id in wanted if id in found]

    def segments(
        self, limit: int | None = None, offset: int = 0, query: str | None = None, *, state: str = "live"
    ) -> list[Segment]:
        """Segments in the order they were added.

        Args:
            limit: How many at most; None for all.
            offset: How many to leave out first.
            query: Text that occurs in source or target, in upper or lower case.
            state: "live", "draft", "rejected", "superseded", or "kept" for all of them.

        Returns:
            The segments.
        """
        require_state(state)
        # Searches wait for `reading`: whatever may look at every segment has a connection of its own.
        whole = query or limit is None
        with self._store.reading_apart() if whole else self._store.reading() as database:
            return database.segments(limit, offset, query, state)

    def segment_count(self, query: str | None = None, *, state: str = "live") -> int:
        """How many segments there are.

        Args:
            query: Only those that `segments` would find with it.
            state: As of `segments`.

        Returns:
            Their number.
        """
        require_state(state)
        with self._store.reading_apart() if query else self._store.reading() as database:
            return database.count(query, state)

    def history(self, id: int | None = None, *, limit: int = 100, offset: int = 0) -> list[Event]:
        """What happened to a segment and its other versions, oldest first; or to all, newest first.

        Args:
            id: The segment; None for the whole memory.
            limit: How many events at most, of the whole memory.
            offset: How many to leave out first, of the whole memory.

        Returns:
            What happened.

        Raises:
            KsterError: If no segment has this id.
        """
        if id is None:
            with self._store.reading_apart() as database:
                return latest_events(database, limit, offset)
        segment = self.segment(id)
        with self._store.reading_apart() as database:
            return events_of(database, segment)

    def tokens_of(self, segment_id: int) -> list[int]:
        """The target tokens that a segment's keys stand for, end of sentence included.

        None where no keys have been made yet, or where it is gone.
        """
        snapshot = self._reader.snapshot()
        line = int(np.searchsorted(snapshot.spans.segment_ids, segment_id))
        if line == len(snapshot.spans) or snapshot.spans.segment_ids[line] != segment_id:
            return []
        first, count = int(snapshot.spans.first_rows[line]), int(snapshot.spans.counts[line])
        return snapshot.entries.values[first : first + count].tolist()

    def find_text(self, source: str | None = None, target: str | None = None) -> list[Segment]:
        """Live segments with exactly this text.

        Args:
            source: Their source, if it matters.
            target: Their target, if it matters.

        Returns:
            The segments, in the order they were added.
        """
        with self._store.reading_apart() as database:
            return database.by_text(source, target)

    def export(self, *, drafts: bool = False) -> Iterator[Pair]:
        """Every live pair, in the order added, as of the moment the first one is asked for.

        Args:
            drafts: Whether drafts and rejected pairs come as well.

        Returns:
            The pairs.
        """
        states = ("live", "draft", "rejected") if drafts else ("live",)
        with self._store.reading_apart() as database:
            for segment in database.all_segments(*states):
                yield Pair(
                    *(segment.source, segment.target, segment.unit, None),
                    *(segment.context, segment.status, segment.author),
                )

    def export_file(self, path: str | Path, *, format: str | None = None, drafts: bool = False) -> int:
        """Write every live pair to a file, which appears whole or not at all.

        Args:
            path: The file; .gz and .xz are compressed.
            format: tmx, xliff, xliff2, po, tsv, csv or moses; by default, what the file's name says.
            drafts: Whether drafts and rejected pairs are written, too; TMX, XLIFF and PO say what they are.

        Returns:
            How many pairs were written.

        Raises:
            KsterError: If the file cannot be written, or its format is unknown.
        """
        own = self.description
        pairs = self.export(drafts=drafts)
        return write_pairs(path, pairs, own.source_lang, own.target_lang, format=format)

    def back_up(self, file: str | Path) -> None:
        """Write the memory as it is now to one file, even while others change it; see `Memory.restore`.

        Args:
            file: Where to.

        Raises:
            KsterError: If the file cannot be written.
        """
        back_up(self._store, Path(file))

    def verify(self) -> list[str]:
        """Read everything and compare it with its checksums; returns the problems found."""
        return problems_of(self._store)

    def check(self, kinds: Collection[str] | None = None) -> Iterator[Finding]:
        """Segments that are probably wrong, in the order added, as of the moment the first one is asked for.

        Args:
            kinds: Of `kster.memory.checks.KINDS`; by default all.

        Returns:
            What was found.

        Raises:
            KsterError: If there is no such kind.
        """
        languages = self.description.source_lang, self.description.target_lang
        with self._store.reading_apart() as database:
            yield from findings(database.live_segments, languages, kinds)

    def info(self) -> MemoryInfo:
        """How large the memory is, which model it belongs to, and whether it is fitted."""
        description = self.description
        fitted, tuned, fit = fit_status(self.directory / "smoother")
        with self._store.reading_apart() as database:
            counts = database.counts()
            changes = since_fit(fit, database)
            without_keys, unusable = database.count_without_keys()
        return MemoryInfo(
            directory=str(self.directory),
            segments=counts["live"],
            drafts=counts["draft"],
            rejected=counts["rejected"],
            superseded=counts["superseded"],
            removed=counts["removed"],
            entries=self.entry_count,
            without_keys=without_keys,
            unusable=unusable,
            bytes_on_disk=bytes_under(self.directory),
            bytes_in_ram=self._reader.bytes_in_ram,
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


def require_state(state: str) -> None:
    """Raises KsterError for a state that segments cannot be listed by."""
    accepted = [name for name in STATES if name != "all"]
    if state not in accepted:
        raise KsterError(f"state is {state!r}; accepted: {', '.join(accepted)}")
