"""The server's own SQLite file in its data directory: keys, the memories' names and owners, jobs."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kster.errors import KsterError
from kster.files import try_lock

FILE = "server.sqlite"
LOCK = "server.lock"
SCHEMA = """
CREATE TABLE IF NOT EXISTS keys (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL,
    scope TEXT NOT NULL,
    hash TEXT NOT NULL UNIQUE,      -- of the key, which is nowhere else
    created TEXT NOT NULL,
    revoked TEXT
);
CREATE TABLE IF NOT EXISTS memories (
    id INTEGER PRIMARY KEY AUTOINCREMENT,  -- never used twice
    name TEXT NOT NULL,
    description TEXT,
    external_id TEXT,
    created TEXT NOT NULL,
    owner INTEGER,                  -- the key that made it; NULL: nobody's in particular
    directory TEXT UNIQUE,          -- of a memory named on the command line; NULL: in the data directory
    automatic INTEGER NOT NULL DEFAULT 1  -- whether it serves its owner's requests that name no memory
);
CREATE TABLE IF NOT EXISTS term_bases (
    id INTEGER PRIMARY KEY AUTOINCREMENT,  -- never used twice
    name TEXT NOT NULL,
    pair TEXT NOT NULL,             -- en-de
    created TEXT NOT NULL,
    owner INTEGER,                  -- the key that made it
    automatic INTEGER NOT NULL      -- whether it serves its owner's requests that name none
);
CREATE TABLE IF NOT EXISTS jobs (
    id TEXT PRIMARY KEY,
    kind TEXT NOT NULL,
    memory INTEGER NOT NULL,
    owner INTEGER,
    state TEXT NOT NULL,
    request TEXT NOT NULL,          -- JSON: enough to run it again after a restart
    result TEXT,                    -- JSON
    error TEXT,
    created TEXT NOT NULL,
    finished TEXT,
    attempts INTEGER NOT NULL DEFAULT 0  -- how often it was begun by a server that then died
);
"""


class ServerDatabase:
    """One connection, used by one thread at a time; other processes (`kster keys`) have their own."""

    def __init__(self, data: Path) -> None:
        try:
            make_private(data)
            self._connection = sqlite3.connect(
                data / FILE, timeout=30, isolation_level=None, check_same_thread=False
            )
            self._connection.row_factory = sqlite3.Row
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute("PRAGMA synchronous = FULL")
            self._connection.executescript(SCHEMA)
            if "attempts" not in {row["name"] for row in self._connection.execute("PRAGMA table_info(jobs)")}:
                self._connection.execute("ALTER TABLE jobs ADD COLUMN attempts INTEGER NOT NULL DEFAULT 0")
        except (OSError, sqlite3.Error) as error:
            raise KsterError(f"{data}: cannot be used as the server's data directory ({error})") from error
        self._lock = threading.Lock()

    def all(self, statement: str, parameters: Sequence[Any] = ()) -> list[sqlite3.Row]:
        with self._lock:
            return self._connection.execute(statement, parameters).fetchall()

    def one(self, statement: str, parameters: Sequence[Any] = ()) -> sqlite3.Row | None:
        with self._lock:
            return self._connection.execute(statement, parameters).fetchone()

    def change(self, statement: str, parameters: Sequence[Any] = ()) -> tuple[int, int]:
        """One committed statement; returns (rows changed, id of the last row inserted)."""
        with self._lock:
            cursor = self._connection.execute(statement, parameters)
            return cursor.rowcount, cursor.lastrowid or 0

    def close(self) -> None:
        with self._lock:
            self._connection.close()


@contextmanager
def sole_server(data: Path) -> Iterator[None]:
    """Keep other servers off this data directory: both would run the same jobs.

    The operating system releases the lock when the server dies, however it dies. Raises KsterError.
    """
    try:
        make_private(data)
        file = open(data / LOCK, "a")  # noqa: SIM115  (closed below)
    except OSError as error:
        raise KsterError(f"{data}: cannot be used as the server's data directory ({error})") from error
    with file:
        try:
            ours = try_lock(file)
        except OSError as error:  # not every file system has locks
            raise KsterError(f"{data}: cannot be locked for one server alone ({error})") from error
        if not ours:
            raise KsterError(
                f"{data}: another server is using this data directory; stop that one, or give this one "
                "a directory of its own with --data DIR"
            )
        yield  # closing the file releases the lock


def make_private(data: Path) -> None:
    """Let only its owner read the data directory, even an older one: it holds texts and hashes of keys."""
    data.mkdir(parents=True, exist_ok=True, mode=0o700)
    (data / FILE).touch(mode=0o600)
    for path, mode in [(data, 0o700), *((file, 0o600) for file in data.glob(f"{FILE}*"))]:
        if path.stat().st_mode & 0o077:
            path.chmod(mode)


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
