"""The SQLite file: the source of truth about which segments a memory has and which entries are theirs."""

from __future__ import annotations

import logging
import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from kster.errors import DamagedMemory
from kster.memory.segment import Segment, pair_hash, target_group
from kster.memory.store.spans import Spans

FILE = "memory.sqlite"

BEGINNING = 32  # characters of a source that an index finds it by

# Made on opening, too: memories from before it have none.
BY_SOURCE = (
    f"CREATE INDEX IF NOT EXISTS live_by_source ON segments (substr(source, 1, {BEGINNING})) "
    "WHERE removed = 0"
)
SCHEMA = """
CREATE TABLE segments (
    id INTEGER PRIMARY KEY AUTOINCREMENT,  -- never used twice; grows with first_entry
    source TEXT NOT NULL,
    target TEXT NOT NULL,
    origin TEXT,
    unit TEXT,
    created TEXT NOT NULL,
    first_entry INTEGER NOT NULL,          -- id of its first entry; never used twice
    first_row INTEGER NOT NULL,            -- where that entry lies in the entry files
    entry_count INTEGER NOT NULL,
    checksum INTEGER NOT NULL,             -- crc32 of its keys' bytes followed by its values' bytes
    pair_hash INTEGER NOT NULL,
    target_group INTEGER NOT NULL,
    generation INTEGER NOT NULL,           -- of the commit that last changed this row
    removed INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX live_by_pair ON segments (pair_hash) WHERE removed = 0;
CREATE INDEX live_by_unit ON segments (unit) WHERE removed = 0 AND unit IS NOT NULL;
CREATE INDEX by_generation ON segments (generation);
CREATE TABLE state (
    generation INTEGER NOT NULL,           -- grows with every commit
    epoch INTEGER NOT NULL,                -- which set of entry files counts; grows with every compaction
    row_count INTEGER NOT NULL,            -- entries in those files, removed ones included
    next_entry INTEGER NOT NULL            -- the next entry's id
);
INSERT INTO state VALUES (0, 0, 0, 0);
"""
COLUMNS = "id, source, target, created, origin, unit"
LARGEST = (1 << 63) - 1  # number SQLite can hold
log = logging.getLogger(__name__)

PAGE = 1_000  # rows or ids a query; SQLite limits the parameters of a statement


@dataclass(frozen=True, slots=True)
class State:
    generation: int
    epoch: int
    row_count: int
    next_entry: int


@dataclass(frozen=True, slots=True)
class NewSegment:
    source: str
    target: str
    origin: str | None
    unit: str | None
    created: str


class Database:
    """One connection. Every method is one statement or a few; transactions are the caller's."""

    def __init__(self, directory: Path, *, new: bool = False) -> None:
        """Opens the file there is, unless a new one is asked for: an empty one in its place would look as if
        all segments were gone. One that may not be changed is opened for reading."""
        path = directory / FILE
        if not new and not path.exists():
            raise DamagedMemory(f"{directory}: damaged ({FILE} is missing); restore it from a backup")
        writable = new or (os.access(directory, os.W_OK) and os.access(path, os.W_OK))
        mode = "rwc" if new else "rw" if writable else "ro"
        self._wal = path.with_name(f"{FILE}-wal")
        self._path = path
        self._frozen: tuple[int, ...] | None = None
        if not writable and not self._wal.exists():
            # Without a log to read, SQLite would have to make one, unless it is told that nothing changes.
            mode, self._frozen = "ro&immutable=1", self._file_state()
        self.connection = sqlite3.connect(
            f"{path.absolute().as_uri()}?mode={mode}",
            uri=True,
            timeout=60,
            isolation_level=None,
            check_same_thread=False,
        )
        if writable:
            self.connection.execute("PRAGMA journal_mode = WAL")
            self.connection.execute("PRAGMA synchronous = FULL")
            if not new and not self._has_index("live_by_source"):
                self.connection.execute(BY_SOURCE)
        self.connection.create_function("contains", 2, _contains, deterministic=True)

    def create(self) -> None:
        self.connection.executescript(SCHEMA)
        self.connection.execute(BY_SOURCE)

    def _has_index(self, name: str) -> bool:
        """Also where there is no table to index: such a file is damaged, and whoever reads it will say so."""
        there = "SELECT name FROM sqlite_master WHERE name IN ('segments', ?)"
        return [row[0] for row in self.execute(there, (name,))] != ["segments"]

    def execute(self, statement: str, parameters: Sequence[object] = ()) -> sqlite3.Cursor:
        return self.connection.execute(statement, parameters)

    def close(self) -> None:
        self.connection.close()

    @property
    def outdated(self) -> bool:
        """Whether a file that was taken for unchanging has changed: others may write what we may not."""
        return self._frozen is not None and self._frozen != self._file_state()

    def _file_state(self) -> tuple[int, ...]:
        state = self._path.stat()
        return state.st_ino, state.st_size, state.st_mtime_ns, self._wal.exists()

    # Reading -------------------------------------------------------------------------------------

    def data_version(self) -> int:
        """Changes when any other connection has committed; costs microseconds. See also `outdated`."""
        return self.execute("PRAGMA data_version").fetchone()[0]

    def state(self) -> State:
        return State(*self.execute("SELECT generation, epoch, row_count, next_entry FROM state").fetchone())

    def spans(self, since: int = -1) -> Spans:
        """The segments that changed after generation `since`, in the order of their entries."""
        rows = self.execute(
            "SELECT id, first_entry, first_row, entry_count, checksum, target_group, pair_hash, removed "
            "FROM segments "
            "WHERE generation > ? ORDER BY id",
            (since,),
        ).fetchall()
        return Spans.of(rows)

    def sources(self, after: int, last: int) -> Iterator[tuple[int, int, str]]:
        """Id, pair hash and source of live segments, ids from `after` + 1 to `last`, in their order."""
        statement = "SELECT id, pair_hash, source FROM segments WHERE id > ? AND id <= ? AND removed = 0 "
        yield from self.execute(statement + "ORDER BY id", (after, last))

    def counts(self) -> tuple[int, int]:
        """(live, removed) segments."""
        live, total = self.execute("SELECT TOTAL(removed = 0), COUNT(*) FROM segments").fetchone()
        return int(live), total - int(live)

    def counts_around(self, id: int) -> tuple[int, int]:
        """Live segments up to this id, and after it."""
        statement = "SELECT COUNT(*) FILTER (WHERE id <= ?1), COUNT(*) FILTER (WHERE id > ?1) FROM segments "
        return self.execute(statement + "WHERE removed = 0", (max(-1, min(id, LARGEST)),)).fetchone()

    def count(self, query: str | None) -> int:
        where, parameters = _filter(query)
        return self.execute(f"SELECT COUNT(*) FROM segments WHERE {where}", parameters).fetchone()[0]

    def segments(self, limit: int | None, offset: int, query: str | None) -> list[Segment]:
        where, parameters = _filter(query)
        page = [*parameters, *(max(-1, min(n, LARGEST)) for n in (-1 if limit is None else limit, offset))]
        statement = f"SELECT {COLUMNS} FROM segments WHERE {where} ORDER BY id LIMIT ? OFFSET ?"
        return [Segment(*row) for row in self.execute(statement, page)]

    def live_segments(self) -> Iterator[Segment]:
        for row in self.execute(f"SELECT {COLUMNS} FROM segments WHERE removed = 0 ORDER BY id"):
            yield Segment(*row)

    def by_ids(self, ids: Iterable[int], *, live: bool = True) -> dict[int, Segment]:
        """The segments there are among these ids."""
        found: dict[int, Segment] = {}
        wanted = sorted(i for i in set(ids) if 0 <= i <= LARGEST)
        for first in range(0, len(wanted), PAGE):
            page = wanted[first : first + PAGE]
            marks = ",".join("?" * len(page))
            statement = f"SELECT {COLUMNS} FROM segments WHERE id IN ({marks})"
            for row in self.execute(statement + (" AND removed = 0" if live else ""), page):
                found[row[0]] = Segment(*row)
        return found

    def by_pair(self, source: str, target: str) -> list[Segment]:
        if not _is_unicode(source + target):
            return []
        statement = f"SELECT {COLUMNS} FROM segments WHERE pair_hash = ? AND removed = 0 ORDER BY id"
        found = [Segment(*row) for row in self.execute(statement, (pair_hash(source, target),))]
        return [segment for segment in found if (segment.source, segment.target) == (source, target)]

    def by_text(self, source: str | None, target: str | None) -> list[Segment]:
        if not _is_unicode((source or "") + (target or "")):
            return []
        conditions, values = ["removed = 0"], list[str]()
        if source is not None:  # +: or SQLite writes the text into the first condition and loses the index
            conditions += [f"substr(source, 1, {BEGINNING}) = substr(?, 1, {BEGINNING})", "+source = ?"]
            values += [source, source]
        if target is not None:
            conditions.append("target = ?")
            values.append(target)
        statement = f"SELECT {COLUMNS} FROM segments WHERE {' AND '.join(conditions)} ORDER BY id"
        return [Segment(*row) for row in self.execute(statement, values)]

    def altered(self) -> list[int]:
        """Ids of segments whose texts are not those their hashes were made of."""
        return [
            id
            for id, source, target, known, group in self.execute(
                "SELECT id, source, target, pair_hash, target_group FROM segments ORDER BY id"
            )
            if pair_hash(source, target) != known or target_group(target) != group
        ]

    def by_unit(self, unit: str) -> list[Segment]:
        statement = f"SELECT {COLUMNS} FROM segments WHERE unit = ? AND removed = 0 ORDER BY id"
        return [Segment(*row) for row in self.execute(statement, (unit,))]

    def staged(self) -> Iterator[tuple[NewSegment, int, int]]:
        """Each segment as it was given, its first row and its number of entries."""
        statement = (
            "SELECT source, target, origin, unit, created, first_row, entry_count FROM segments ORDER BY id"
        )
        for *texts, first, count in self.execute(statement):
            yield NewSegment(*texts), first, count

    # Writing, inside the caller's transaction ----------------------------------------------------

    def insert(
        self, new: NewSegment, first_entry: int, first_row: int, count: int, checksum: int, generation: int
    ) -> Segment:
        cursor = self.execute(
            "INSERT INTO segments (source, target, origin, unit, created, first_entry, first_row, "
            "entry_count, checksum, pair_hash, target_group, generation) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                *(new.source, new.target, new.origin, new.unit, new.created, first_entry, first_row, count),
                *(checksum, pair_hash(new.source, new.target), target_group(new.target), generation),
            ),
        )
        assert cursor.lastrowid is not None
        return Segment(cursor.lastrowid, new.source, new.target, new.created, new.origin, new.unit)

    def mark_removed(self, ids: Iterable[int], generation: int) -> None:
        self.connection.executemany(
            "UPDATE segments SET removed = 1, generation = ? WHERE id = ?", [(generation, i) for i in ids]
        )

    def drop_removed(self, first_rows: Iterable[tuple[int, int]], generation: int) -> None:
        """Forget removed segments; give the others the (first row, segment id) of the new files."""
        self.execute("DELETE FROM segments WHERE removed = 1")
        self.connection.executemany(
            "UPDATE segments SET first_row = ?, generation = ? WHERE id = ?",
            ((first, generation, i) for first, i in first_rows),
        )

    def shrink(self) -> None:
        """Give the space of deleted rows back: removed text leaves the disk, too. Outside a transaction."""
        try:
            self.execute("VACUUM")
            self.execute("PRAGMA busy_timeout = 1000")  # a long reader only puts off the tidying
            self.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        except sqlite3.OperationalError as error:  # it needs room itself; the change is made already
            log.warning(
                "%s: removed text stays on the disk until the next compaction (%s)", self._path, error
            )
        finally:
            self.execute("PRAGMA busy_timeout = 60000")

    def set_state(self, state: State) -> None:
        self.execute(
            "UPDATE state SET generation = ?, epoch = ?, row_count = ?, next_entry = ?",
            (state.generation, state.epoch, state.row_count, state.next_entry),
        )


def _filter(query: str | None) -> tuple[str, list[str]]:
    if not query:
        return "removed = 0", []
    if not _is_unicode(query):
        return "FALSE", []
    folded = query.casefold()
    return "removed = 0 AND (contains(source, ?) OR contains(target, ?))", [folded, folded]


def _contains(text: str, folded: str) -> bool:
    """SQLite's own LIKE folds the case of ASCII only."""
    return folded in text.casefold()


def _is_unicode(text: str) -> bool:
    """Whether text could be in a memory at all: lone surrogates cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
