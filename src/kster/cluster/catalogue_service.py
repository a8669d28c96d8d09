"""The catalogue: the server's SQLite file, behind one actor. It says which memory lies where."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from secrets import token_hex
from typing import Any

from kster.cluster.calls import CATALOGUE, Unreachable, ask, change
from kster.cluster.wire import MOST_PARTS, Part
from kster.errors import KsterError
from kster.server.database import ServerDatabase, sole_server

SCHEMA = """
CREATE TABLE IF NOT EXISTS parts (
    memory INTEGER NOT NULL,
    fingerprint TEXT NOT NULL,
    number INTEGER NOT NULL,       -- parts with larger ones are newer
    shard TEXT NOT NULL,
    directory TEXT NOT NULL,       -- in the shard's own, or absolute
    PRIMARY KEY (memory, fingerprint, number)
);
CREATE TABLE IF NOT EXISTS staged (
    directory TEXT NOT NULL,       -- of an import that is not committed yet
    shard TEXT NOT NULL,
    touched REAL NOT NULL,         -- when something was last put there
    PRIMARY KEY (directory, shard)
);
CREATE TABLE IF NOT EXISTS requests (
    id TEXT PRIMARY KEY,
    changed INTEGER NOT NULL,
    last INTEGER NOT NULL
);
"""
OWNER_SECONDS = 20.0  # to wait for one's predecessor to be gone
REMEMBERED = 10_000  # requests; those that are asked again come within minutes
ABANDONED_SECONDS = 3_600.0  # without a sign of life, after which an import is given up
ANSWERS_KEPT = 4_096  # of a replica, for the time that the catalogue is away
PARTS_SECONDS = 1.0  # a replica may know the parts of a memory for so long; commits wait until it has passed

Statement = tuple[str, Sequence[Any]]


class CatalogueService:
    """One connection to the file, and the lock that keeps other servers away from it."""

    def __init__(self, data: Path) -> None:
        self._owned = _owned(data)  # released when the process ends
        self._database = ServerDatabase(data)
        for statement in SCHEMA.split(";\n"):
            self._database.change(statement)
        self._changing = threading.Lock()

    def query(self, statement: str, parameters: Sequence[Any]) -> tuple[list[str], list[tuple[Any, ...]]]:
        with self._changing:  # one connection: half a commit would be seen
            rows = self._database.all(statement, parameters)
        return (list(rows[0].keys()) if rows else [], [tuple(row) for row in rows])

    def commit(self, request: str, statements: Sequence[Statement]) -> tuple[int, int]:
        """All of these statements or none, once; returns what the last one changed, and the row it added."""
        with self._changing:
            done = self._database.one("SELECT changed, last FROM requests WHERE id = ?", (request,))
            if done is not None:
                return done["changed"], done["last"]
            self._database.change("BEGIN IMMEDIATE")
            try:
                for statement, parameters in statements:
                    changed, last = self._database.change(statement, parameters)
                self._database.change("INSERT INTO requests VALUES (?, ?, ?)", (request, changed, last))
                self._database.change(
                    "DELETE FROM requests WHERE rowid <= (SELECT MAX(rowid) FROM requests) - ?", (REMEMBERED,)
                )
                self._database.change("COMMIT")
            except BaseException:
                self._database.change("ROLLBACK")
                raise
            return changed, last


def _owned(data: Path) -> AbstractContextManager[None]:
    """The lock of a data directory; an owner that died a moment ago may not have released it yet."""
    deadline = time.monotonic() + OWNER_SECONDS
    while True:
        lock = sole_server(data)
        try:
            lock.__enter__()
        except KsterError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)
        else:
            return lock


class Row:
    """As `sqlite3.Row`, which cannot travel."""

    def __init__(self, columns: Sequence[str], values: tuple[Any, ...]) -> None:
        self._columns, self._values = columns, values

    def __getitem__(self, key: int | str) -> Any:
        return self._values[self._columns.index(key) if isinstance(key, str) else key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._values)

    def keys(self) -> list[str]:
        return list(self._columns)


class RemoteDatabase(ServerDatabase):
    """The catalogue's file, asked through its actor.

    While the actor is away, questions get the answer that they had before: translations go on, changes do
    not.
    """

    def __init__(self) -> None:
        self._answers: OrderedDict[tuple[str, tuple[Any, ...]], list[Row]] = OrderedDict()
        self._keeping = threading.Lock()

    def all(self, statement: str, parameters: Sequence[Any] = ()) -> list[Any]:
        asked = (statement, tuple(parameters))
        try:
            columns, rows = ask(CATALOGUE, "query", *asked)
        except Unreachable:
            with self._keeping:
                if asked in self._answers:
                    return self._answers[asked]
            raise
        answer = [Row(columns, values) for values in rows]
        with self._keeping:
            self._answers[asked] = answer
            self._answers.move_to_end(asked)
            if len(self._answers) > ANSWERS_KEPT:
                self._answers.popitem(last=False)
        return answer

    def one(self, statement: str, parameters: Sequence[Any] = ()) -> Any:
        return next(iter(self.all(statement, parameters)), None)

    def change(self, statement: str, parameters: Sequence[Any] = ()) -> tuple[int, int]:
        return self.commit([(statement, parameters)])

    def commit(self, statements: Sequence[Statement]) -> tuple[int, int]:
        """All of them or none."""
        changed: tuple[int, int] = change(CATALOGUE, "commit", token_hex(16), statements)
        return changed

    def close(self) -> None:
        """The actor stays."""


class Parts:
    """Where the segments of memories lie; known for a moment, so that not every batch has to ask."""

    def __init__(self, database: RemoteDatabase) -> None:
        self._database = database
        self._known: dict[tuple[int, str], tuple[float, list[Part]]] = {}

    def of(self, memory: int, fingerprint: str) -> list[Part]:
        """In the order of their numbers; none for a memory that has no examples for this model."""
        known = self._known.get((memory, fingerprint))
        if known is not None and time.monotonic() - known[0] < PARTS_SECONDS:
            return known[1]
        asked = time.monotonic()
        rows = self._database.all(
            "SELECT number, shard, directory FROM parts WHERE memory = ? AND fingerprint = ? ORDER BY number",
            (memory, fingerprint),
        )
        parts = [Part(*row) for row in rows]
        if parts:  # a first part must be seen at once
            self._known[memory, fingerprint] = (asked, parts)
        return parts

    def add(self, memory: int, fingerprint: str, places: Sequence[tuple[str, str]]) -> None:
        """Make directories parts of a memory, all at once: (shard, directory) of each, the oldest first.

        Returns when no replica knows the memory without them any more.
        """
        count = self._database.one(
            "SELECT COUNT(*) AS n FROM parts WHERE memory = ? AND fingerprint = ?", (memory, fingerprint)
        )
        if count["n"] + len(places) > MOST_PARTS:
            raise KsterError(f"memory {memory} would have more than {MOST_PARTS} parts; nothing was added")
        insert = (
            "INSERT INTO parts SELECT ?1, ?2, COALESCE(MAX(number), -1) + 1, ?3, ?4 FROM parts "
            "WHERE memory = ?1 AND fingerprint = ?2"
        )
        statements: list[Statement] = [
            (insert, (memory, fingerprint, shard, directory)) for shard, directory in places
        ]
        statements += [("DELETE FROM staged WHERE directory = ?", (directory,)) for _, directory in places]
        self._database.commit(statements)
        self._known.pop((memory, fingerprint), None)
        time.sleep(PARTS_SECONDS)

    def add_first(self, memory: int, fingerprint: str, shard: str, directory: str) -> None:
        """The first part of a memory, unless another replica has just added it."""
        self._database.change(
            "INSERT OR IGNORE INTO parts VALUES (?, ?, 0, ?, ?)", (memory, fingerprint, shard, directory)
        )
        self._known.pop((memory, fingerprint), None)

    def remove(self, memory: int) -> list[Part]:
        """Forget all parts of a memory; returns them."""
        rows = self._database.all("SELECT number, shard, directory FROM parts WHERE memory = ?", (memory,))
        self._database.change("DELETE FROM parts WHERE memory = ?", (memory,))
        for key in [key for key in self._known if key[0] == memory]:
            del self._known[key]
        return [Part(*row) for row in rows]

    # Imports that are not committed yet -------------------------------------------------------------

    def touch_staged(self, places: Sequence[tuple[str, str]]) -> None:
        """Say that an import into these (shard, directory) goes on."""
        upsert = (
            "INSERT INTO staged VALUES (?, ?, ?) ON CONFLICT (directory, shard) DO UPDATE SET touched = ?"
        )
        now = time.time()
        self._database.commit([(upsert, (directory, shard, now, now)) for shard, directory in places])

    def forget_staged(self, directories: Sequence[str]) -> None:
        self._database.commit(
            [("DELETE FROM staged WHERE directory = ?", (directory,)) for directory in directories]
        )

    def directories_of(self, shard: str) -> list[str]:
        """All that a shard should have; imports that have long said nothing are forgotten first."""
        self._database.change("DELETE FROM staged WHERE touched < ?", (time.time() - ABANDONED_SECONDS,))
        statement = (
            "SELECT directory FROM parts WHERE shard = ?1 UNION SELECT directory FROM staged WHERE shard = ?1"
        )
        return [row["directory"] for row in self._database.all(statement, (shard,))]
