"""A memory directory of a shard, whose changes are made once however often they are requested.

Keys are made by the caller: a shard has no model. Every change carries the id of its request, which is
recorded in the transaction that makes the change. If a caller does not know whether a request arrived and
repeats it, it is answered but not carried out again.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from kster.cluster.wire import Changed, Facts, Prepared
from kster.errors import KsterError
from kster.formats import Pair
from kster.memory import Memory, SearchSettings, Segment
from kster.memory.store.change import Change, Draft
from kster.memory.store.database import Database
from kster.memory.store.description import Description
from kster.memory.store.history import supersede_older
from kster.memory.store.store import Store

SMOOTHER = "smoother"
LOCK_TIMEOUT = 120.0  # seconds a change waits for another writer
REMEMBERED = 10_000  # requests of a memory; those that are asked again come within minutes
EXPORTED = 1_000  # segments of one answer

CHANGES = {"add_many", "replace", "edit", "set_status", "remove", "remove_pair", "compact"}
REQUESTS = """CREATE TABLE IF NOT EXISTS requests (
    id TEXT PRIMARY KEY,
    added TEXT NOT NULL,    -- JSON: ids of the segments that it added
    removed TEXT NOT NULL   -- … and removed
)"""


@dataclass
class _Request:
    id: str | None = None  # None for what need not be done only once
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
        return [[] for _ in texts]  # the caller, who made the keys, has checked the length

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
                yield Draft(new, entries.keys(first, first + count), entries.values(first, first + count))

    # What a shard asks beside what a memory says ------------------------------------------------------

    def facts(self) -> Facts:
        files = sorted((self.directory / SMOOTHER).glob("[!.]*"))
        states = [(file.name, file.stat().st_mtime_ns, file.stat().st_size) for file in files]
        return Facts(self.entry_count, tuple(states))

    def known(self, texts: Sequence[tuple[str, str]]) -> set[tuple[str, str]]:
        """Those of these pairs that are here."""
        with self._store.reading_apart() as database:
            return {text for text in texts if database.by_pair(*text)}

    def with_unit(self, unit: str) -> list[int]:
        """Ids of the live segments with this unit id."""
        with self._store.reading() as database:
            return [segment.id for segment in database.by_unit(unit)]

    def missing(self, ids: Sequence[int]) -> list[int]:
        """Those of these ids that no segment has."""
        with self._store.reading() as database:
            return sorted(set(ids) - database.by_ids(ids, state="kept").keys())

    def live_after(self, after: int) -> tuple[list[Segment], int]:
        """Live segments with larger ids than this, some at a time, and where to go on; -1 at the end."""
        ids = self.view().snapshot.spans.segment_ids
        page = ids[np.searchsorted(ids, after, side="right") :][:EXPORTED].tolist()
        with self._store.reading() as database:
            found = database.by_ids(page)
        return [found[id] for id in page if id in found], page[-1] if page else -1

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
