"""A shard: the memory directories on one disk, and what is asked of them. It knows nothing of Ray.

Keys are made by whoever asks: a shard has no model. Every change carries the id of its request, which is
written down in the transaction that makes the change: a request that comes again, since nobody knows whether
the first call got through, is answered and not done again.
"""

from __future__ import annotations

import json
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import BufferedWriter
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from kster.cluster.wire import (
    OWN,
    Best,
    Changed,
    Chosen,
    Facts,
    Ints,
    Limits,
    Prepared,
    SegmentEntries,
    Sentence,
    best_of,
    wanted_of,
)
from kster.errors import KsterError
from kster.files import try_lock, write_atomically
from kster.formats import Pair
from kster.memory import Memory, SearchSettings, Segment
from kster.memory.report import bytes_under
from kster.memory.search.entries import entry_ids
from kster.memory.search.shortlists import View, entries_of
from kster.memory.sources.scoring import Frequencies
from kster.memory.store.change import Change, Draft
from kster.memory.store.database import Database
from kster.memory.store.description import Description
from kster.memory.store.history import supersede_older
from kster.memory.store.store import Store

OWNER = "owner.lock"
SMOOTHER = "smoother"
LOCK_TIMEOUT = 120.0  # seconds a change waits for another writer
REMEMBERED = 10_000  # requests of a memory; those that are asked again come within minutes
NEW_SECONDS = 3_600.0  # a directory that is about to be named in the catalogue is not swept
EXPORTED = 1_000  # segments of one answer

EVERYTHING = Limits(1 << 62, 1 << 62)

READS = {
    *("history", "segment", "segments", "segment_count", "find_text"),
    *("matches", "similar_segments", "info", "size", "verify", "similar"),
}
CHANGES = {"add_many", "replace", "edit", "set_status", "remove", "remove_pair", "compact"}
REQUESTS = """CREATE TABLE IF NOT EXISTS requests (
    id TEXT PRIMARY KEY,
    added TEXT NOT NULL,    -- JSON: ids of the segments that it added
    removed TEXT NOT NULL   -- … and removed
)"""


@dataclass
class _Request:
    id: str | None = None  # None where nothing is asked for once
    prepared: dict[tuple[str, str], Prepared] = field(default_factory=dict)


class _PreparedKeys:
    """A `KeyMaker` whose keys were made elsewhere."""

    max_length = 0

    def __init__(self, description: Description, prepared: dict[tuple[str, str], Prepared]) -> None:
        self.name, self.fingerprint = description.model, description.fingerprint
        self.dimension, self.vocabulary_size = description.dimension, description.vocabulary_size
        self.source_lang, self.target_lang = description.source_lang, description.target_lang
        self._prepared = prepared

    def tokenise_source(self, texts: Sequence[str]) -> list[list[int]]:
        return [[] for _ in texts]  # whoever made the keys has seen to the length

    tokenise_target = tokenise_source

    def make_keys(self, pairs: Sequence[tuple[str, str]]) -> Iterator[_Forced]:
        for pair in pairs:
            if pair not in self._prepared:
                raise KsterError("the keys of a pair were not sent with it; nothing was added")
            prepared = self._prepared[pair]
            yield _Forced(torch.from_numpy(prepared.keys), torch.from_numpy(prepared.values))


@dataclass(frozen=True, slots=True)
class _Forced:
    keys: Tensor  # (n, d) float16
    tokens: Tensor  # (n,) int32


class _OnceStore(Store):
    """Writes the request of the calling thread down with what it changes."""

    request: Callable[[], _Request]

    @contextmanager
    def writing(self, patience: float = 0.0) -> Iterator[Change]:
        id = self.request().id
        with super().writing(patience) as change:
            added, removed = list[int](), list[int]()
            _note(change, added, removed)
            yield change
            if id is not None:
                database = change.database
                database.execute(REQUESTS)
                database.execute(
                    "INSERT INTO requests VALUES (?, ?, ?)", (id, json.dumps(added), json.dumps(removed))
                )
                database.execute(
                    "DELETE FROM requests WHERE rowid <= (SELECT MAX(rowid) FROM requests) - ?", (REMEMBERED,)
                )

    def done(self, id: str) -> tuple[list[int], list[int]] | None:
        """The segments that a request added and removed; None if it was not done."""
        with self.reading() as database:
            if not database.execute("SELECT 1 FROM sqlite_master WHERE name = 'requests'").fetchone():
                return None
            row = database.execute("SELECT added, removed FROM requests WHERE id = ?", (id,)).fetchone()
            return (json.loads(row[0]), json.loads(row[1])) if row else None


def _note(change: Change, added: list[int], removed: list[int]) -> None:
    """Have a change write down what it does."""
    add, remove = change.add, change.remove

    def noted_add(draft: Draft) -> Segment:
        segment = add(draft)
        added.append(segment.id)
        return segment

    def noted_remove(ids: Any) -> None:
        wanted = list(ids)
        remove(wanted)
        removed.extend(wanted)

    change.add, change.remove = noted_add, noted_remove  # type: ignore[method-assign]


class OwnedMemory(Memory):
    """A memory directory of a shard."""

    def __init__(self, directory: Path) -> None:
        description = Description.read(directory)
        super().__init__(directory, description, None, SearchSettings(mode="shortlist"), LOCK_TIMEOUT)
        self._readers_store = self._store
        self._request = threading.local()
        once = _OnceStore(directory, description, LOCK_TIMEOUT)
        once.request = self._current
        self._store = once
        self._once = once

    def close(self) -> None:
        super().close()
        self._readers_store.close()

    def _current(self) -> _Request:
        return getattr(self._request, "now", None) or _Request()

    @property
    def model(self) -> Any:
        return _PreparedKeys(self.description, self._current().prepared)

    def change(self, wanted: Changed) -> Any:
        if wanted.method not in CHANGES:
            raise KsterError(f"no change {wanted.method!r}; accepted: {', '.join(sorted(CHANGES))}")
        prepared = {(one.source, one.target): one for one in wanted.prepared}
        with self._asked(_Request(wanted.request, prepared)):
            if (done := self._once.done(wanted.request)) is not None:
                return self._answer_again(wanted, *done)
            return getattr(self, wanted.method)(*wanted.arguments, **dict(wanted.named))

    def take_over(self, request: str, other: OwnedMemory) -> tuple[int, int]:
        """Add the segments of another memory as one change; returns how many, and how many were here."""
        drafts = list(other.drafts())
        with self._asked(_Request(request)):
            if (done := self._once.done(request)) is not None:
                return len(done[0]), len(drafts) - len(done[0])
            added = 0
            with self._store.writing() as change:
                newest = change.database.newest()
                for draft in drafts:
                    if not change.database.by_pair(draft.new.source, draft.new.target):
                        change.add(draft)
                        added += 1
                supersede_older(change, newest, drafts[0].new.author if drafts else None)
        return added, len(drafts) - added

    def add_drafts(self, request: str, drafts: Sequence[Draft]) -> int:
        """Add what is not here yet; returns how many."""
        with self._asked(_Request(request)):
            if (done := self._once.done(request)) is not None:
                return len(done[0])
            with self._store.writing() as change:
                new = [d for d in drafts if not change.database.by_pair(d.new.source, d.new.target)]
                for draft in new:
                    change.add(draft)
                return len(new)

    def drafts(self) -> Iterator[Draft]:
        """All segments, removed ones too; for a memory that only an import knows of, which removes none."""
        with self._store.reading_apart() as database:
            entries = self._store.map_entries(database.state())
            for new, first, count in database.with_keys():
                yield Draft(new, entries.keys(first, first + count), entries.values[first : first + count])

    @contextmanager
    def _asked(self, request: _Request) -> Iterator[None]:
        self._request.now = request
        try:
            yield
        finally:
            self._request.now = None

    def _answer_again(self, wanted: Changed, added: list[int], removed: list[int]) -> Any:
        if wanted.method in ("remove", "remove_pair"):
            return len(removed)
        if wanted.method == "compact":
            return None
        if wanted.method == "set_status":
            with self._store.reading() as database:
                return list(database.by_ids(wanted.arguments[0], state="kept").values())
        pairs = wanted.arguments[0] if wanted.method == "add_many" else [Pair(*wanted.arguments[1:3])]
        with self._store.reading() as database:
            own = {(s.source, s.target): s for s in database.by_ids(added, state="all").values()}
            found = [_segment(database, own, pair) for pair in pairs]
        return found if wanted.method == "add_many" else found[0]


def _segment(database: Database, own: dict[tuple[str, str], Segment], pair: Pair) -> Segment:
    there = own.get((pair.source, pair.target)) or next(
        iter(database.by_pair(pair.source, pair.target)), None
    )
    if there is None:
        raise KsterError("what was added has been removed and compacted away meanwhile")
    return there


class Shard:
    """The owner of a directory of memories; no second one can be made as long as it lives."""

    def __init__(self, name: str, root: Path, patience: float = 0.0) -> None:
        """patience: seconds to wait for an owner that has just died to be gone."""
        self.name, self.root, self._patience = name, root, patience
        root.mkdir(parents=True, exist_ok=True)
        self._locks: list[BufferedWriter] = []
        self._own(root)
        self._memories: dict[str, OwnedMemory] = {}
        self._opening = threading.Lock()

    def _own(self, directory: Path) -> None:
        lock = open(directory / OWNER, "ab")  # noqa: SIM115  (held as long as the shard lives)
        deadline = time.monotonic() + self._patience
        while not (ours := try_lock(lock)) and time.monotonic() < deadline:
            time.sleep(0.2)
        if not ours:
            lock.close()
            raise KsterError(
                f"{directory}: another process owns this shard's directory; stop that one first; nothing was "
                "opened"
            )
        self._locks.append(lock)

    def close(self) -> None:
        for memory in self._memories.values():
            memory.close()
        for lock in self._locks:
            lock.close()

    def _path(self, directory: str) -> Path:
        return self.root / directory  # an absolute one stays as it is

    def _memory(self, directory: str) -> OwnedMemory:
        memory = self._memories.get(directory)
        if memory is not None:
            return memory
        with self._opening:
            if directory not in self._memories:
                if Path(directory).is_absolute():
                    self._own(Path(directory))
                self._memories[directory] = OwnedMemory(self._path(directory))
            return self._memories[directory]

    # Asking --------------------------------------------------------------------------------------

    def has(self, directory: str) -> bool:
        """Whether there is such a memory where this shard is."""
        return (self._path(directory) / "memory.json").is_file()

    def place(self, directory: str) -> str:
        return str(self._path(directory).resolve())

    def describe(self, directory: str) -> Description:
        return self._memory(directory).description

    def size(self) -> dict[str, int]:
        """For people: memories, entries and bytes of the shard's own directory."""
        own = [path.name for path in self.root.iterdir() if path.is_dir()]
        entries = sum(self._memory(directory).entry_count for directory in own if self.has(directory))
        return {"directories": len(own), "entries": entries, "bytes": bytes_under(self.root)}

    def facts(self, directories: Sequence[str]) -> list[Facts]:
        return [self._facts(self._memory(directory)) for directory in directories]

    @staticmethod
    def _facts(memory: OwnedMemory) -> Facts:
        files = sorted((memory.directory / SMOOTHER).glob("*"))
        states = [(file.name, file.stat().st_mtime_ns, file.stat().st_size) for file in files]
        return Facts(memory.entry_count, tuple(state for state in states if not state[0].startswith(".")))

    def read(self, directory: str, method: str, *arguments: Any, **named: Any) -> Any:
        """What a method of `kster.memory.Memory` that changes nothing says."""
        if method not in READS:
            raise KsterError(f"no question {method!r}; accepted: {', '.join(sorted(READS))}")
        return getattr(self._memory(directory), method)(*arguments, **named)

    def read_each(
        self, directories: Sequence[str], method: str, arguments: Sequence[Any], named: dict[str, Any]
    ) -> list[Any]:
        return [self.read(directory, method, *arguments, **named) for directory in directories]

    def provenance(self, directory: str, ids: Ints) -> list[Any]:
        return self._memory(directory).provenance(entry_ids(ids.tolist()))

    def known(self, directories: Sequence[str], texts: Sequence[tuple[str, str]]) -> set[tuple[str, str]]:
        """Those of these pairs that one of the memories has."""
        found = set[tuple[str, str]]()
        for directory in directories:
            with self._memory(directory)._store.reading_apart() as database:
                found |= {text for text in texts if text not in found and database.by_pair(*text)}
        return found

    def with_unit(self, directory: str, unit: str) -> list[int]:
        """Ids of the live segments with this unit id."""
        with self._memory(directory)._store.reading() as database:
            return [segment.id for segment in database.by_unit(unit)]

    def missing(self, directory: str, ids: Sequence[int]) -> list[int]:
        """Those of these ids that no segment has."""
        with self._memory(directory)._store.reading() as database:
            return sorted(set(ids) - database.by_ids(ids, state="kept").keys())

    def export(self, directory: str, after: int) -> tuple[list[Segment], int]:
        """Live segments with larger ids than this, some at a time, and where to go on; -1 at the end."""
        memory = self._memory(directory)
        ids = memory.view().snapshot.spans.segment_ids
        page = ids[np.searchsorted(ids, after, side="right") :][:EXPORTED].tolist()
        with memory._store.reading() as database:
            found = database.by_ids(page)
        return [found[id] for id in page if id in found], page[-1] if page else -1

    def smoother(self, directory: str) -> dict[str, bytes]:
        """The files of a memory's own smoother."""
        folder = self._path(directory) / SMOOTHER
        files = [file for file in folder.glob("*") if file.is_file() and not file.name.startswith(".")]
        return {file.name: file.read_bytes() for file in files}

    # Searching -----------------------------------------------------------------------------------

    def frequencies(
        self, memories: Sequence[Sequence[str]], texts: Sequence[str]
    ) -> tuple[int, list[list[Frequencies]]]:
        """How many entries all these memories have here, each given as its directories; and for each of them
        and each text how common its terms are."""
        views = [[self._memory(directory).view() for directory in own] for own in memories]
        entries = sum(view.snapshot.live_count for own in views for view in own)
        return entries, [
            [sum_of([view.sources.frequencies(text) for view in own]) for text in texts] for own in views
        ]

    def best(
        self,
        memories: Sequence[tuple[Sequence[str], Sequence[Frequencies] | None]],
        sentences: Sequence[Sentence],
        most: int | None,
    ) -> list[Best]:
        """For each sentence the best segments of each directory, or all of them.

        memories: the directories of each here and, where it has others elsewhere, how common each text's
        terms are in all of them. most: segments of a directory; None for all.
        """
        asked = [(self._memory(directory).view(), known) for own, known in memories for directory in own]
        answer = []
        for number, sentence in enumerate(sentences):
            found = [
                _best(view, sentence, most, None if known is None else known[number]) for view, known in asked
            ]
            places = np.repeat(np.arange(len(found), dtype=np.int32), [len(ids) for ids, *_ in found])
            answer.append(Best(places, *(np.concatenate(column) for column in zip(*found, strict=True))))
        return answer

    def best_with_entries(
        self,
        memories: Sequence[tuple[Sequence[str], Sequence[Frequencies] | None]],
        sentences: Sequence[Sentence],
        limits: Limits,
        bases: Ints,
    ) -> tuple[list[Chosen], list[SegmentEntries]]:
        """For each sentence its segments, and for each directory the entries of those among them.

        For memories that are all here: one call instead of three. bases: see `best_of`.
        """
        directories = [directory for own, _ in memories for directory in own]
        everything = sum(self._memory(one).entry_count for one in directories) <= limits.entries
        texts = [sentence.text for sentence in sentences]
        known = [(own, self.frequencies([own], texts)[1][0] if len(own) > 1 else None) for own, _ in memories]
        found = self.best(known, sentences, None if everything else limits.segments)
        chosen = [best_of([one], [bases], EVERYTHING if everything else limits) for one in found]
        in_order = [directories[i] for i in np.argsort(bases)]
        return chosen, self.entries(list(zip(in_order, wanted_of(chosen, len(in_order)), strict=True)))

    def entries(self, wanted: Sequence[tuple[str, Ints]]) -> list[SegmentEntries]:
        """Of these segments, as far as they have not been removed. wanted: directories and growing ids."""
        return [self._entries(self._memory(directory), ids) for directory, ids in wanted]

    @staticmethod
    def _entries(memory: OwnedMemory, ids: Ints) -> SegmentEntries:
        view = memory.view()
        spans, live = view.snapshot.spans, view.snapshot.live_segments
        lines = np.searchsorted(spans.segment_ids, ids)
        lines = lines[lines < len(spans)]
        lines = lines[np.isin(spans.segment_ids[lines], ids) & live[lines]]
        found = entries_of(view, lines, np.zeros(len(lines), np.float32))
        if len(found.ids) and int(found.ids.max()) > OWN:
            raise KsterError(
                f"{memory.directory}: its entries have larger numbers than a cluster can tell apart"
            )
        firsts = np.concatenate([[0], np.cumsum(spans.counts[lines])]).astype(np.int64)
        return SegmentEntries(
            spans.segment_ids[lines], firsts, found.keys.numpy(), found.values.numpy(), found.ids.numpy()
        )

    # Changing ------------------------------------------------------------------------------------

    def create(self, directory: str, description: Description) -> None:
        """Make an empty memory, unless it is there."""
        with self._opening:
            if not self.has(directory):
                Store.create(self._path(directory), description)

    def change(self, wanted: Changed) -> Any:
        return self._memory(wanted.directory).change(wanted)

    def add_drafts(self, request: str, directory: str, drafts: Sequence[Draft]) -> int:
        return self._memory(directory).add_drafts(request, drafts)

    def take_over(self, request: str, directory: str, other: str) -> tuple[int, int]:
        """Add what another of the shard's directories holds, in one change."""
        return self._memory(directory).take_over(request, self._memory(other))

    def put_smoother(self, directory: str, files: dict[str, bytes]) -> None:
        """The file that names the others last: at any moment there is one complete smoother."""
        write_smoother(self._path(directory) / SMOOTHER, files)

    def delete(self, directories: Sequence[str]) -> None:
        """For good. Directories that lie elsewhere are only let go of."""
        for directory in directories:
            with self._opening:
                memory = self._memories.pop(directory, None)
                if memory is not None:
                    memory.close()
                if not Path(directory).is_absolute():
                    shutil.rmtree(self._path(directory), ignore_errors=True)

    def sweep(self, known: Sequence[str]) -> list[str]:
        """Delete memories that the catalogue does not know (any more); returns their directories."""
        kept, begun = set(known), time.time() - NEW_SECONDS
        unknown = [
            path.name
            for path in self.root.iterdir()
            if path.is_dir() and path.name not in kept and path.stat().st_mtime < begun
        ]
        self.delete(unknown)
        return unknown


def _best(
    view: View, sentence: Sentence, most: int | None, known: Frequencies | None
) -> tuple[Ints, Any, Ints, Ints]:
    """Ids, similarity, entries and words of a directory's segments; ids growing."""
    spans = view.snapshot.spans
    if most is None:
        lines = np.flatnonzero(view.snapshot.live_segments)
        relative = view.sources.relative_scores(sentence.text, known)[lines]
    else:
        found = view.sources.similar(sentence.text, most, known)
        growing = np.argsort(found.segment_ids)
        lines = np.searchsorted(spans.segment_ids, found.segment_ids[growing])
        relative = found.relative[growing]
    words = view.having_words(sentence.words, lines)
    return spans.segment_ids[lines], relative, spans.counts[lines], words


def sum_of(frequencies: Sequence[Frequencies]) -> Frequencies:
    first, *others = frequencies
    return sum(others, first)


def write_smoother(folder: Path, files: dict[str, bytes]) -> None:
    """Put the files of a smoother into a folder, those that name others after these."""
    folder.mkdir(exist_ok=True, parents=True)
    for name in sorted(files, key=lambda name: name.endswith(".json")):
        write_atomically(folder / name, files[name])
    for old in folder.iterdir():
        if old.name not in files and not old.name.startswith("."):
            old.unlink(missing_ok=True)
