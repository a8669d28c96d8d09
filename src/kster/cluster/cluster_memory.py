"""A memory whose segments lie on shards; translation and the server use it like one in a directory."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import replace
from pathlib import Path
from secrets import token_hex
from typing import Any, Self

from torch import Tensor

from kster.cluster.calls import SHARD, ask_about, ask_of_parts, change
from kster.cluster.catalogue_service import Parts
from kster.cluster.importing import Destination, import_over_shards
from kster.cluster.retrieval import Placed, most_similar, retriever
from kster.cluster.shard import SMOOTHER, write_smoother
from kster.cluster.wire import OWN, PART_SHIFT, Changed, Limits, Part, Prepared, Sentence
from kster.errors import KsterError
from kster.formats import Pair, Rejection
from kster.memory import (
    CompactReport,
    Event,
    ImportReport,
    KeyMaker,
    Match,
    Memory,
    MemoryInfo,
    MemorySize,
    Neighbours,
    Provenance,
    Resembling,
    SearchSettings,
    Segment,
)
from kster.memory.adding import Origin, approved, checked_drafts, require_flawless
from kster.memory.importing import CHUNK
from kster.memory.search.entries import entry_ids
from kster.memory.search.retriever import Batch, Searcher
from kster.memory.sources.matching import sorted_matches
from kster.memory.store.description import Description

LOOKED_SECONDS = 0.1  # for so long a memory that had entries is believed to have some
SPLIT_FROM = 100_000  # pairs of an import; more are divided among all shards


class ClusterMemory(Memory):
    """What is added through one replica is found by the next translation of any.

    Ids of segments and entries carry the number of the part. `directory` belongs to this process and holds a
    copy of the memory's own smoother.
    """

    def __init__(
        self, number: int, description: Description, model: KeyMaker, parts: Parts, kept_in: Path
    ) -> None:
        """number: of the memory in the catalogue. kept_in: a directory for smoothers."""
        self.number, self.description, self._model = number, description, model
        self.search_settings = SearchSettings()
        self.directory = kept_in / f"{number}-{description.fingerprint[:16]}"
        self.directory.mkdir(parents=True, exist_ok=True)
        self.split_from = SPLIT_FROM
        self._parts = parts
        self._smoother: object = ()
        self._had_entries = -LOOKED_SECONDS

    def allowing_loss(self) -> Self:
        """For one request; `lost` then names the shards that were left out."""
        other = copy(self)
        other.lost = []
        return other

    def close(self) -> None:
        """The shards stay."""

    @property
    def _store(self) -> Any:  # type: ignore[override]
        raise KsterError(
            "this cannot be done with a memory on a cluster; stop the cluster and use the directories of its "
            "shards"
        )

    _reader = _sources = _store

    @property
    def parts(self) -> list[Part]:
        return self._parts.of(self.number, self.fingerprint)

    # Translating ---------------------------------------------------------------------------------

    @property
    def entry_count(self) -> int:
        """Also brings the smoother up to date, since every translation asks this first."""
        parts = self.parts
        facts = ask_of_parts(parts, "facts", lost=self.lost)
        home = facts.get(parts[0]) if parts else None
        if home is not None and home.smoother != self._smoother:
            write_smoother(self.directory / SMOOTHER, ask_about(parts[0], "smoother"))
            self._smoother = home.smoother
        return sum(fact.entries for fact in facts.values())

    @property
    def is_empty(self) -> bool:
        """An import on a cluster makes all keys. Asked several times for each translation."""
        if self.lost is not None or time.monotonic() - self._had_entries > LOOKED_SECONDS:
            if self.entry_count == 0:
                return True
            self._had_entries = time.monotonic()
        return False

    @classmethod
    def retriever_of_all(
        cls, memories: Sequence[tuple[Self, int]], searcher: Searcher, batch: Batch
    ) -> Searcher:
        """The shortlists of a batch; searched by `kster.memory` as if they had come from the disk."""
        first = memories[0][0]
        placed = [Placed(memory.parts, base) for memory, base in memories]
        sentences = [Sentence(*one) for one in batch.sentences]
        limits = Limits(first.search_settings.shortlist, first.search_settings.shortlist_entries)
        return retriever(placed, sentences, limits, first.dimension, batch.device, first.lost)

    def search(self, queries: Tensor, k: int) -> Neighbours:
        raise KsterError("a memory on a cluster is searched by shortlists, a batch of sentences at a time")

    def provenance(self, ids: Tensor | Iterable[int]) -> list[Provenance]:
        wanted = entry_ids(ids)
        found: dict[int, Provenance] = {}
        for part in self.parts:
            own = wanted[wanted >> PART_SHIFT == part.number]
            if not len(own):
                continue
            origins = self._read(part, "provenance", (own & OWN).tolist())
            for entry, origin in zip(own.tolist(), origins, strict=True):
                segment = _abroad(part, origin.segment)
                found[entry] = replace(origin, segment=segment, memory=str(self.directory))
        if missing := [entry for entry in wanted.tolist() if entry not in found]:
            raise KsterError(f"memory {self.number}: no entry {missing[0]} (any more)")
        return [found[entry] for entry in wanted.tolist()]

    # Looking -------------------------------------------------------------------------------------

    def matches(self, source: str, n: int = 5, *, least: int = 1, context: str | None = None) -> list[Match]:
        found = [
            replace(match, segment=_abroad(part, match.segment), memory=str(self.directory))
            for part, own in self._each("matches", source, n, least=least, context=context)
            for match in own
        ]
        return sorted_matches(found, n)

    def similar_segments(self, sources: Sequence[str], m: int) -> list[list[Resembling]]:
        found = most_similar(self.parts, sources, m, self.lost)
        return [[Resembling(_abroad(*one), str(self.directory)) for one in own] for own in found]

    def tokens_of(self, segment_id: int) -> list[int]:
        tokens: list[int] = self._read(self._part_of(segment_id), "tokens_of", segment_id & OWN)
        return tokens

    def find_text(self, source: str | None = None, target: str | None = None) -> list[Segment]:
        return [
            _abroad(part, segment) for part, own in self._each("find_text", source, target) for segment in own
        ]

    def find_sources(self, sources: Iterable[str]) -> dict[str, list[Segment]]:
        found: dict[str, list[Segment]] = {source: [] for source in sources}
        for part, own in self._each("find_sources", list(found)):
            for source, segments in own.items():
                found[source] += [_abroad(part, segment) for segment in segments]
        return found

    def segment(self, id: int) -> Segment:
        part = self._part_of(id)
        return _abroad(part, self._read(part, "segment", id & OWN))

    def segments(
        self, limit: int | None = None, offset: int = 0, query: str | None = None, *, state: str = "live"
    ) -> list[Segment]:
        found: list[Segment] = []
        for part in self.parts:
            count = self._read(part, "segment_count", query, state=state)
            if offset >= count:
                offset -= count
                continue
            left = None if limit is None else limit - len(found)
            if left == 0:
                break
            page = self._read(part, "segments", left, offset, query, state=state)
            found += [_abroad(part, segment) for segment in page]
            offset = 0
        return found

    def segment_count(self, query: str | None = None, *, state: str = "live") -> int:
        return sum(count for _, count in self._each("segment_count", query, state=state))

    def history(self, id: int | None = None, *, limit: int = 100, offset: int = 0) -> list[Event]:
        if id is not None:
            part = self._part_of(id)
            return [_event_abroad(part, event) for event in self._read(part, "history", id & OWN)]
        found = [
            _event_abroad(part, event)
            for part, events in self._each("history", limit=limit + offset)
            for event in events
        ]
        found.sort(key=lambda event: event.time, reverse=True)
        return found[offset : offset + limit]

    def export(self, *, drafts: bool = False) -> Iterator[Pair]:
        """Live pairs alone; drafts and rejected ones are exported from the directories of the shards."""
        for part in self.parts:
            after = -1
            while True:
                page, after = self._read(part, "live_after", after)
                for segment in page:
                    yield Pair(segment.source, segment.target, segment.unit)
                if after < 0:
                    break

    def verify(self) -> list[str]:
        return [problem for _, problems in self._each("verify") for problem in problems]

    def size(self) -> MemorySize:
        every = [size for _, size in self._each("size")]
        names = ("entries", "segments", "without_keys")
        return MemorySize(**{name: sum(getattr(size, name) for size in every) for name in names})

    def info(self) -> MemoryInfo:
        (_, first), *others = self._each("info")
        every = [first, *(info for _, info in others)]
        sums = {
            name: sum(getattr(info, name) for info in every)
            for name in (
                *("segments", "drafts", "rejected", "superseded", "removed"),
                *("entries", "without_keys", "unusable", "bytes_on_disk"),
            )
        }
        return replace(first, directory=str(self.directory), **sums)

    # Changing ------------------------------------------------------------------------------------

    def add_many(self, pairs: Iterable[Pair], *, origin: str | None = None, **named: Any) -> list[Segment]:
        wanted = list(pairs)
        require_flawless(wanted)
        parts, known = self.parts, dict[tuple[str, str], Segment]()
        if len(parts) > 1:
            for pair in wanted:
                for segment in self.find_text(pair.source, pair.target):
                    known[pair.source, pair.target] = segment
        new = [pair for pair in wanted if (pair.source, pair.target) not in known]
        if new:
            added = self._change(parts[-1], "add_many", new, made_of=new, origin=origin, **named)
            known |= {(s.source, s.target): _abroad(parts[-1], s) for s in added}
        return [known[pair.source, pair.target] for pair in wanted]

    def replace(
        self, unit: str, source: str, target: str, *, origin: str | None = None, **named: Any
    ) -> Segment:
        pair = Pair(source, target, unit)
        require_flawless([pair])
        *older, newest = self.parts
        segment = self._change(
            newest, "replace", unit, source, target, made_of=[pair], origin=origin, **named
        )
        for part in older:
            if outdated := self._read(part, "with_unit", unit):
                self._change(part, "remove", outdated)
        return _abroad(newest, segment)

    def edit(
        self,
        id: int,
        source: str,
        target: str,
        *,
        origin: str | None = None,
        unit: str | None = None,
        **named: Any,
    ) -> Segment:
        pair = Pair(source, target, unit or self.segment(id).unit)
        require_flawless([pair])
        part = self._part_of(id)
        given = {"origin": origin, "unit": unit, **named}
        edited = self._change(part, "edit", id & OWN, source, target, made_of=[pair], **given)
        return _abroad(part, edited)

    def set_status(
        self, ids: int | Iterable[int], status: str, *, author: str | None = None, beside: Iterable[int] = ()
    ) -> list[Segment]:
        by_part = self._by_part(ids, "changed")
        others = set(beside)
        changed = {}
        for part, own in by_part.items():
            kept = [id & OWN for id in others if id >> PART_SHIFT == part.number]
            changed[part] = self._change(part, "set_status", own, status, author=author, beside=kept)
        return [_abroad(part, segment) for part, own in changed.items() for segment in own]

    def remove(self, ids: int | Iterable[int], *, author: str | None = None) -> int:
        by_part = self._by_part(ids, "removed")
        return sum(self._change(part, "remove", own, author=author) for part, own in by_part.items())

    def _by_part(self, ids: int | Iterable[int], done: str) -> dict[Part, list[int]]:
        """Segments and their parts. Raises KsterError, saying what was not done, where one is not there."""
        wanted = {ids} if isinstance(ids, int) else set(ids)
        by_part = {
            part: [id & OWN for id in wanted if id >> PART_SHIFT == part.number] for part in self.parts
        }
        unknown = wanted - {part.number << PART_SHIFT | id for part, own in by_part.items() for id in own}
        for part, own in by_part.items():
            missing = self._read(part, "missing", own) if own else []
            unknown |= {part.number << PART_SHIFT | id for id in missing}
        if unknown:
            named = ", ".join(map(str, sorted(unknown)[:10])) + (" …" if len(unknown) > 10 else "")
            raise KsterError(f"memory {self.number}: no segment {named}; nothing was {done}")
        return {part: own for part, own in by_part.items() if own}

    def remove_pair(self, source: str, target: str, *, author: str | None = None) -> int:
        removed = (self._change(part, "remove_pair", source, target, author=author) for part in self.parts)
        return sum(removed)

    def compact(self) -> CompactReport:
        reports = [self._change(part, "compact") for part in self.parts]
        numbers = ("segments_dropped", "entries_dropped", "bytes_freed")
        return CompactReport(*(sum(getattr(r, name) for r in reports if r is not None) for name in numbers))

    def import_pairs(
        self,
        pairs: Iterable[Pair | Rejection],
        origin: str | None = None,
        progress: Callable[[int], None] | None = None,
        *,
        at_once: int = CHUNK,
        author: str | None = None,
        approve_drafts: bool = False,
        **named: Any,
    ) -> ImportReport:
        if approve_drafts:
            pairs = map(approved, pairs)
        into = Destination(self.number, self.description, self.model, self._parts)
        return import_over_shards(into, pairs, Origin(origin, author), progress, self.split_from)

    # -----------------------------------------------------------------------------------------------

    def _part_of(self, id: int) -> Part:
        for part in self.parts:
            if part.number == id >> PART_SHIFT and id >= 0:
                return part
        raise KsterError(f"memory {self.number}: no segment {id}")

    def _each(self, method: str, *arguments: Any, **named: Any) -> list[tuple[Part, Any]]:
        """What every part says to the same question, in their order."""
        return list(ask_of_parts(self.parts, method, *arguments, lost=self.lost, **named).items())

    def _read(self, part: Part, method: str, *arguments: Any, **named: Any) -> Any:
        """What one part says. Raises Unreachable."""
        return ask_of_parts([part], method, *arguments, **named)[part]

    def _change(
        self, part: Part, method: str, *arguments: Any, made_of: Sequence[Pair] = (), **named: Any
    ) -> Any:
        """made_of: pairs whose keys are needed."""
        drafts = checked_drafts(self.model, list(made_of), Origin()) if made_of else {}
        prepared = [Prepared(*text, draft.keys, draft.values) for text, draft in drafts.items()]
        wanted = Changed(token_hex(16), part.directory, method, arguments, tuple(named.items()), prepared)
        return change(SHARD + part.shard, "change", wanted)


def _abroad(part: Part, segment: Segment) -> Segment:
    return replace(segment, id=part.number << PART_SHIFT | segment.id)


def _event_abroad(part: Part, event: Event) -> Event:
    other = None if event.other is None else part.number << PART_SHIFT | event.other
    return replace(event, segment=part.number << PART_SHIFT | event.segment, other=other)
