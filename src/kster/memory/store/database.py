"""The SQLite file: the source of truth about which segments a memory has and which entries are theirs."""

from __future__ import annotations

import logging
import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from operator import attrgetter
from pathlib import Path
from typing import Any

from kster.errors import DamagedMemory
from kster.memory.segment import Segment, pair_hash, target_group
from kster.memory.store.migrations import BEGINNING, FORMAT, MIGRATIONS
from kster.memory.store.spans import NO_KEYS_POSSIBLE, NO_KEYS_YET, Spans

FILE = "memory.sqlite"

# Of a `Segment`, in its order.
COLUMNS = "id, source, target, created, origin, unit, status, author, changed, context, superseded_by"
LIVE, REMOVED, KEPT = 0, 1, 2  # values of `removed`; see `migrations`
LARGEST = (1 << 63) - 1  # number SQLite can hold
log = logging.getLogger(__name__)

PAGE = 1_000  # rows or ids a query; SQLite limits the parameters of a statement


@dataclass(frozen=True, slots=True)
class State:
    generation: int  # grows with every commit
    epoch: int  # grows with every compaction
    row_count: int  # in the files, dropped ones included
    next_entry: int
    directory: int  # the name of that of the files
    dropped: frozenset[int]  # numbers of files that compactions have dropped


@dataclass(frozen=True, slots=True)
class NewSegment:
    source: str
    target: str
    origin: str | None
    unit: str | None
    created: str
    status: str = "approved"
    author: str | None = None
    context: str | None = None
    removed: int = LIVE

    @property
    def pair_hash(self) -> int:
        return pair_hash(self.source, self.target)

    @property
    def target_group(self) -> int:
        return target_group(self.target)


TEXTS = ", ".join(field.name for field in fields(NewSegment))
INSERT = (
    f"INSERT INTO segments ({TEXTS}, pair_hash, target_group, first_entry, first_row, entry_count, checksum, "
    f"generation) VALUES ({', '.join('?' * (len(fields(NewSegment)) + 7))})"
)
texts_of = attrgetter(*(field.name for field in fields(NewSegment)))  # `astuple`, which would copy them
WITHOUT_KEYS = "first_row < 0 AND removed = 0"  # as the index `without_keys` says it


class Database:
    """One connection. Every method is one statement or a few; transactions are the caller's."""

    def __init__(self, directory: Path, *, new: bool = False) -> None:
        """Opens the existing file, unless a new one is asked for: an empty one in its place would look as if
        all segments were gone. A file that may not be changed is opened for reading."""
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
            self.connection.execute("PRAGMA secure_delete = ON")  # removed text leaves the disk, too
        self.connection.create_function("contains", 2, _contains, deterministic=True)

    def format(self) -> int:
        """Of the tables: 0 when there are none yet."""
        version = self.execute("PRAGMA user_version").fetchone()[0]
        return (
            version
            or self.execute("SELECT COUNT(*) FROM sqlite_master WHERE name = 'segments'").fetchone()[0]
        )

    def migrate(self) -> None:
        """Bring the tables to this program's format from any older one; inside the caller's transaction."""
        for statements in MIGRATIONS[self.format() :]:
            for statement in statements:
                self.execute(statement)
        self.execute(f"PRAGMA user_version = {FORMAT}")

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
        columns = "generation, epoch, row_count, next_entry, directory"
        numbers: tuple[int, int, int, int, int]
        numbers = self.execute(f"SELECT {columns} FROM state").fetchone()
        return State(*numbers, frozenset(file for (file,) in self.execute("SELECT file FROM dropped_files")))

    def spans(self, since: int = -1) -> Spans:
        """The segments that changed after generation `since`, in the order of their entries."""
        # SQLite would read the whole table, which has that order, even for a few changes.
        changed = "INDEXED BY by_generation WHERE generation > ? ORDER BY +id"
        rows = self.execute(
            "SELECT id, first_entry, first_row, entry_count, checksum, target_group, pair_hash, removed "
            f"FROM segments {changed if since >= 0 else 'WHERE generation > ? ORDER BY id'}",
            (since,),
        )
        return Spans.of(rows)

    def mark(self) -> str | None:
        """Of the file that has the table of segments, see `saved_spans`."""
        if not self.execute("SELECT 1 FROM sqlite_master WHERE name = 'saved_spans'").fetchone():
            return None
        return self.execute("SELECT MAX(mark) FROM saved_spans").fetchone()[0]

    def sources(self, after: int, last: int) -> Iterator[tuple[int, int, str]]:
        """Id, pair hash and source of segments from `after` + 1 to `last` that are or may become live."""
        statement = "SELECT id, pair_hash, source FROM segments WHERE id > ? AND id <= ? AND removed <> 1 "
        yield from self.execute(statement + "ORDER BY id", (after, last))

    def counts(self) -> dict[str, int]:
        """How many segments are live, draft, rejected, superseded, and removed."""
        statement = (
            "SELECT CASE removed WHEN 0 THEN 'live' WHEN 1 THEN 'removed' ELSE "
            "iif(superseded_by IS NULL, status, 'superseded') END, COUNT(*) FROM segments GROUP BY 1"
        )
        found = dict.fromkeys(("live", "draft", "rejected", "superseded", "removed"), 0)
        return found | dict(self.execute(statement).fetchall())

    def newest(self) -> int:
        """The id of the segment that was added last; 0 when there is none."""
        return self.execute("SELECT COALESCE(MAX(id), 0) FROM segments").fetchone()[0]

    def counts_around(self, id: int) -> tuple[int, int]:
        """Live segments up to this id, and after it."""
        statement = "SELECT COUNT(*) FILTER (WHERE id <= ?1), COUNT(*) FILTER (WHERE id > ?1) FROM segments "
        return self.execute(statement + "WHERE removed = 0", (max(-1, min(id, LARGEST)),)).fetchone()

    def count(self, query: str | None, state: str = "live") -> int:
        where, parameters = _filter(query, state)
        return self.execute(f"SELECT COUNT(*) FROM segments WHERE {where}", parameters).fetchone()[0]

    def segments(
        self, limit: int | None, offset: int, query: str | None, state: str = "live"
    ) -> list[Segment]:
        where, parameters = _filter(query, state)
        page = [*parameters, *(max(-1, min(n, LARGEST)) for n in (-1 if limit is None else limit, offset))]
        statement = f"SELECT {COLUMNS} FROM segments WHERE {where} ORDER BY id LIMIT ? OFFSET ?"
        return [Segment(*row) for row in self.execute(statement, page)]

    def all_segments(self, *states: str) -> Iterator[Segment]:
        where = " OR ".join(f"({STATES[state]})" for state in states)
        for row in self.execute(f"SELECT {COLUMNS} FROM segments WHERE {where} ORDER BY id"):
            yield Segment(*row)

    def by_ids(self, ids: Iterable[int], *, state: str = "live") -> dict[int, Segment]:
        """The segments there are among these ids. state: one of STATES."""
        wanted = sorted(i for i in set(ids) if 0 <= i <= LARGEST)
        statement = f"SELECT {COLUMNS} FROM segments WHERE {STATES[state]} AND id IN "
        return {row[0]: Segment(*row) for row in rows_among(self.connection, statement, wanted)}

    def by_pair(self, source: str, target: str) -> list[Segment]:
        """Those with these texts, live ones first, then those that are kept."""
        if not _is_unicode(source + target):
            return []
        found = []
        for state in (LIVE, KEPT):  # each has an index of its own
            same = f"pair_hash = ? AND removed = {state}"
            statement = f"SELECT {COLUMNS} FROM segments WHERE {same} ORDER BY id"
            found += [Segment(*row) for row in self.execute(statement, (pair_hash(source, target),))]
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
        """Ids of segments whose texts do not have the hashes that are recorded."""
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

    def with_keys(self) -> Iterator[tuple[NewSegment, int, int]]:
        """Each segment that has keys, as it was given; its first row and its number of entries."""
        statement = f"SELECT {TEXTS}, first_row, entry_count FROM segments WHERE first_row >= 0 ORDER BY id"
        for *texts, first, count in self.execute(statement):
            yield NewSegment(*texts), first, count

    def known(self, texts: Sequence[tuple[str, str]]) -> set[tuple[str, str]]:
        """Which of these (source, target) pairs segments have, live or kept."""
        live = known_among(self.connection, "segments", f"removed = {LIVE}", texts)
        return live | known_among(self.connection, "segments", f"removed = {KEPT}", texts)

    def drafts_among(self, texts: Iterable[tuple[str, str]]) -> list[int]:
        """Ids of the drafts with these sources and targets."""
        return [
            segment.id
            for text in texts
            for segment in self.by_pair(*text)
            if segment.status == "draft" and segment.superseded_by is None
        ]

    def count_without_keys(self) -> tuple[int, int]:
        """How many live segments still need keys, and of how many none can be made."""
        statement = f"SELECT first_row, COUNT(*) FROM segments WHERE {WITHOUT_KEYS} GROUP BY first_row"
        counts = dict(self.execute(statement).fetchall())
        return counts.get(NO_KEYS_YET, 0), counts.get(NO_KEYS_POSSIBLE, 0)

    def without_keys(self, limit: int) -> list[int]:
        """The newest segments whose keys have yet to be made."""
        statement = f"SELECT id FROM segments WHERE {WITHOUT_KEYS} AND first_row = ? ORDER BY id DESC LIMIT ?"
        return [id for (id,) in self.execute(statement, (NO_KEYS_YET, limit))]

    def texts_without_keys(self, ids: Sequence[int]) -> dict[int, tuple[str, str]]:
        """Source and target of the segments among these whose keys have yet to be made."""
        of_those = f"removed = 0 AND first_row = {NO_KEYS_YET} AND id IN "
        rows = rows_among(self.connection, f"SELECT id, source, target FROM segments WHERE {of_those}", ids)
        return {id: (source, target) for id, source, target in rows}

    # Writing, inside the caller's transaction ----------------------------------------------------

    def insert(
        self, new: NewSegment, first_entry: int, first_row: int, count: int, checksum: int, generation: int
    ) -> Segment:
        hashes = new.pair_hash, new.target_group
        numbers = first_entry, first_row, count, checksum, generation
        cursor = self.execute(INSERT, (*texts_of(new), *hashes, *numbers))
        assert cursor.lastrowid is not None
        return Segment(
            *(cursor.lastrowid, new.source, new.target, new.created, new.origin, new.unit),
            *(new.status, new.author, None, new.context),
        )

    def insert_texts(
        self, rows: Iterable[tuple[object, ...]], first_entry: int, room: int, generation: int
    ) -> int:
        """Segments whose keys are made later; returns how many.

        rows: of each the fields of `NewSegment`, the pair hash and the target group; room: entry ids kept.
        """
        given = (
            (*row, first_entry + number * room, NO_KEYS_YET, 0, 0, generation)
            for number, row in enumerate(rows)
        )
        return self.connection.executemany(INSERT, given).rowcount

    def set_keys(self, rows: Iterable[tuple[int, int, int, int]], generation: int) -> None:
        """rows: first row, count of entries, checksum and id of each segment."""
        statement = (
            "UPDATE segments SET first_row = ?, entry_count = ?, checksum = ?, generation = ? WHERE id = ?"
        )
        self.connection.executemany(statement, ((*row[:3], generation, row[3]) for row in rows))

    def set_key_problem(self, id: int, reason: str, generation: int) -> None:
        statement = "UPDATE segments SET first_row = ?, key_problem = ?, generation = ? WHERE id = ?"
        self.execute(statement, (NO_KEYS_POSSIBLE, reason, generation, id))

    def mark_removed(self, ids: Iterable[int], generation: int) -> None:
        self.connection.executemany(
            "UPDATE segments SET removed = 1, generation = ? WHERE id = ?", [(generation, i) for i in ids]
        )

    def forget(self, ids: Iterable[int]) -> None:
        """Delete segments; nothing is left of their texts, see `__init__`."""
        self.connection.executemany("DELETE FROM segments WHERE id = ?", [(id,) for id in ids])

    def move(self, first_rows: Iterable[tuple[int, int]], generation: int) -> None:
        """first_rows: of each segment whose entries lie elsewhere now, its (first row, id)."""
        self.connection.executemany(
            "UPDATE segments SET first_row = ?, generation = ? WHERE id = ?",
            ((first, generation, i) for first, i in first_rows),
        )

    def drop_files(self, numbers: Iterable[int]) -> None:
        self.connection.executemany("INSERT INTO dropped_files VALUES (?)", [(n,) for n in numbers])

    def shrink(self, worth: float) -> None:
        """Give the space of deleted rows back if it is at least this share of all; outside a transaction."""
        free, pages = (
            self.execute(f"PRAGMA {name}").fetchone()[0] for name in ("freelist_count", "page_count")
        )
        try:
            if free >= worth * pages:
                self.execute("VACUUM")
            self.execute("PRAGMA busy_timeout = 1000")  # a long reader only puts off the tidying
            self.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        except sqlite3.OperationalError as error:  # it needs room itself; the change is made already
            log.warning(
                "%s: the file does not get smaller before the next compaction (%s)", self._path, error
            )
        finally:
            self.execute("PRAGMA busy_timeout = 60000")

    def set_mark(self, mark: str) -> None:
        """The one that counts from now on. The table is made when a memory is large enough to need it."""
        self.execute("CREATE TABLE IF NOT EXISTS saved_spans (mark TEXT NOT NULL)")
        self.execute("DELETE FROM saved_spans")
        self.execute("INSERT INTO saved_spans VALUES (?)", (mark,))

    def set_state(self, state: State) -> None:
        self.execute(
            "UPDATE state SET generation = ?, epoch = ?, row_count = ?, next_entry = ?",
            (state.generation, state.epoch, state.row_count, state.next_entry),
        )


def known_among(
    connection: sqlite3.Connection, table: str, condition: str, texts: Sequence[tuple[str, str]]
) -> set[tuple[str, str]]:
    """Which of these (source, target) pairs a table has, found by their hashes."""
    hashes = list({pair_hash(*text) for text in texts})
    statement = f"SELECT source, target FROM {table} WHERE {condition} AND pair_hash IN "
    return set(rows_among(connection, statement, hashes)) & set(texts)


def rows_among(connection: sqlite3.Connection, statement: str, wanted: Sequence[int]) -> Iterator[Any]:
    """The rows of a statement that ends in IN, asked for a page of numbers at a time."""
    for first in range(0, len(wanted), PAGE):
        page = wanted[first : first + PAGE]
        yield from connection.execute(f"{statement}({','.join('?' * len(page))})", page)


# Conditions on segments that people choose among.
STATES = {
    "live": "removed = 0",
    "draft": "removed = 2 AND status = 'draft' AND superseded_by IS NULL",
    "rejected": "removed = 2 AND status = 'rejected' AND superseded_by IS NULL",
    "superseded": "removed = 2 AND superseded_by IS NOT NULL",
    "kept": "removed <> 1",  # all of the above
    "all": "TRUE",
}


def _filter(query: str | None, state: str) -> tuple[str, list[str]]:
    where = STATES[state]
    if not query:
        return where, []
    if not _is_unicode(query):
        return "FALSE", []
    folded = query.casefold()
    return f"{where} AND (contains(source, ?) OR contains(target, ?))", [folded, folded]


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
