"""What can be read in a memory: segments, history, export, checks, facts."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from kster.errors import KsterError
from kster.formats import Pair, write_pairs
from kster.memory.checks import Finding, findings
from kster.memory.report import MemoryInfo, bytes_under, fit_status, since_fit
from kster.memory.searched import SearchedMemory
from kster.memory.segment import Segment
from kster.memory.sources import Match, Resembling
from kster.memory.sources.matching import CANDIDATES, best_matches
from kster.memory.store.backup import back_up
from kster.memory.store.database import STATES
from kster.memory.store.history import Event, events_of, latest_events
from kster.memory.store.verification import problems_of


class ReadableMemory(SearchedMemory):
    """A memory whose segments can be looked at, listed, exported and checked. Nothing here changes it."""

    def segment(self, id: int) -> Segment:
        """One segment, even if it teaches nothing: a draft, rejected, or superseded.

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
        """The live segments among these ids.

        Args:
            ids: Ids of segments; those of others are left out.

        Returns:
            The segments, in the order of the ids.
        """
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
            query: Text that occurs in source or target, ignoring case.
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
        """The target tokens that a segment's keys stand for.

        Args:
            segment_id: As `Segment.id` has it.

        Returns:
            The tokens, end of sentence included; none if no keys have been made yet, or the segment is gone.
        """
        snapshot = self._reader.snapshot()
        line = int(np.searchsorted(snapshot.spans.segment_ids, segment_id))
        if line == len(snapshot.spans) or snapshot.spans.segment_ids[line] != segment_id:
            return []
        first, count = int(snapshot.spans.first_rows[line]), int(snapshot.spans.counts[line])
        return snapshot.entries.values(first, first + count).tolist()

    def find_text(self, source: str | None = None, target: str | None = None) -> list[Segment]:
        """Live segments with exactly this text.

        Args:
            source: Their source; None for any.
            target: Their target; None for any.

        Returns:
            The segments, in the order they were added.
        """
        with self._store.reading_apart() as database:
            return database.by_text(source, target)

    def find_sources(self, sources: Iterable[str]) -> dict[str, list[Segment]]:
        """The live segments that have exactly one of these sources.

        Args:
            sources: Source texts.

        Returns:
            For each of them its segments, in the order they were added.
        """
        with self._store.reading_apart() as database:
            return {source: database.by_text(source, None) for source in sources}

    def matches(self, source: str, n: int = 5, *, least: int = 1, context: str | None = None) -> list[Match]:
        """The n segments whose sources need the fewest words changed to be this text, best first.

        Args:
            source: A source text.
            n: How many matches at most.
            least: The lowest percentage that counts as a match.
            context: Where the text stands.

        Returns:
            The matches, best first; 100 % means equal except for case and white space, 101 % also in context.

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

    def similar_segments(self, sources: Sequence[str], m: int) -> list[list[Resembling]]:
        """For each of these texts the m segments whose sources resemble it best by BM25.

        Args:
            sources: Source texts.
            m: How many segments at most.

        Returns:
            The segments of each text, in any order.
        """
        directory = str(self.directory)
        near = (self.segments_of(self.similar(source, m).segment_ids.tolist()) for source in sources)
        return [[Resembling(segment, directory) for segment in own] for own in near]

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
        """Read everything and compare it with its checksums.

        Returns:
            The problems found.
        """
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
            yield from findings(lambda: database.all_segments("live"), languages, kinds)

    def info(self) -> MemoryInfo:
        """Facts about the memory; `size` knows fewer, and takes less time.

        Returns:
            How large it is, which model it belongs to, and whether it is fitted.
        """
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
