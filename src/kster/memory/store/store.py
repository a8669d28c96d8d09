"""Database and entry files as one: either a change is wholly there, or it never happened.

A writer appends keys and values, makes them durable, and then commits the SQLite transaction that
mentions them. Whatever a writer leaves behind when it dies before that commit is not mentioned
anywhere, hence not there.
"""

from __future__ import annotations

import logging
import shutil
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np

from kster.errors import DamagedMemory, MemoryStoreError
from kster.files import new_directory, sync_directory
from kster.memory.store.change import Change
from kster.memory.store.database import REMOVED, Database, State
from kster.memory.store.description import Description
from kster.memory.store.entry_files import Appender, EntryFiles, MappedEntries, checksum_of
from kster.memory.store.failures import for_people, said
from kster.memory.store.key_formats import key_format
from kster.memory.store.locks import WriterLock
from kster.memory.store.migrations import FORMAT, require_known
from kster.memory.store.open_stores import open_stores, tick
from kster.memory.store.spans import Spans
from kster.memory.store.staging import sweep_staging

ENTRIES = "entries"
INDEX = "index"
WRITER_LOCK = "writer.lock"
UNTOUCHED = "nothing was changed"
UPGRADE_PATIENCE = 600.0  # seconds to wait for another program that upgrades the memory

log = logging.getLogger(__name__)


class Store:
    """A memory's files."""

    def __init__(self, directory: Path, description: Description, lock_timeout: float = 30.0) -> None:
        self.directory = directory
        self.description = description
        self._lock = WriterLock(directory / WRITER_LOCK, lock_timeout)
        self._reading = threading.Lock()
        self._reader: Database | None = None  # open while in use, and for a while longer
        self._readers_opened = 0
        self._closed = False
        self.last_used = 0
        self.when_released: Callable[[], None] = lambda: None  # called when idle files are closed
        with self.reading() as database:
            database.state()  # fails here rather than later when the file is no database of ours
            format = min(description.format, database.format())
            require_known(database.format(), directory)
        if format < FORMAT:
            self._upgrade(format)

    @classmethod
    def create(cls, directory: Path, description: Description) -> None:
        """Make an empty memory; a crash leaves nothing half-made."""
        try:
            with new_directory(directory.resolve()) as making:
                _fill(making, description)
        except (OSError, sqlite3.Error) as error:
            raise MemoryStoreError(f"{directory}: cannot be created ({said(error, new=True)})") from error

    def _upgrade(self, format: int) -> None:
        """Give an older memory the tables of this program, in one transaction.

        memory.json is changed first: if this dies at any moment, older programs refuse the memory, and the
        next program of this version goes on. Entries are the same in every format.
        """
        try:
            with self._lock.held(UPGRADE_PATIENCE), for_people(self.directory, UNTOUCHED):
                self.description = replace(self.description, format=FORMAT)
                self.description.write(self.directory)
                with self._writer() as database, _transaction(database, "BEGIN IMMEDIATE"):
                    database.migrate()
        except MemoryStoreError as error:
            raise type(error)(
                f"{self.directory}: has format {format}, and must be upgraded to format {FORMAT} first; "
                f"that failed: {error}"
            ) from error
        log.warning(
            "%s: upgraded to format %d (from %d); older versions of KSTER cannot read it any more",
            *(self.directory, FORMAT, format),
        )

    def files(self, epoch: int) -> EntryFiles:
        return entry_files(self.directory, self.description, epoch)

    def close(self) -> None:
        with self._reading:
            self._closed = True
            self._close_reader()

    def release(self) -> bool:
        """Close the files of a store that is idle; they are opened again when it is used."""
        if not self._reading.acquire(blocking=False):
            return False
        try:
            self._close_reader()
        finally:
            self._reading.release()
        self.when_released()
        return True

    def _close_reader(self) -> None:
        if self._reader is not None:
            self._reader.close()
            self._reader = None
            open_stores.closed(self)

    # Reading -------------------------------------------------------------------------------------

    @contextmanager
    def reading(self) -> Iterator[Database]:
        """One consistent look at the database; short, since other readers of this process wait."""
        with self._reading, for_people(self.directory):
            reader = self._open_reader()
            with _transaction(reader, "BEGIN"):
                yield reader

    @contextmanager
    def reading_apart(self) -> Iterator[Database]:
        """A consistent look on a connection of its own, for as long as one likes."""
        with for_people(self.directory):
            database = Database(self.directory)
            try:
                with _transaction(database, "BEGIN"):
                    yield database
            finally:
                database.close()

    def data_version(self) -> int:
        """Changes after every commit, by whichever thread or process."""
        with self._reading, for_people(self.directory):
            version = self._open_reader().data_version()
            return self._readers_opened << 40 | version

    def _open_reader(self) -> Database:
        """With `_reading` held."""
        if self._closed:
            raise sqlite3.ProgrammingError("Cannot operate on a closed database.")
        self.last_used = tick()
        if self._reader is not None and not self._reader.outdated:
            return self._reader
        self._close_reader()
        self._reader = Database(self.directory)
        self._readers_opened += 1
        open_stores.opened(self)
        return self._reader

    def map_entries(self, state: State) -> MappedEntries:
        """Raises FileNotFoundError when a compaction has replaced the files since `state` was read."""
        files = self.files(state.epoch)
        try:
            return MappedEntries(files, state.row_count, self.description.vocabulary_size)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise MemoryStoreError(f"{self.directory}: cannot be read ({said(error)})") from error
        except ValueError as error:  # shorter than recorded
            problems = "; ".join(files.problems(state.row_count))
            raise DamagedMemory(
                f"{self.directory}: damaged ({problems}); restore it from a backup"
            ) from error

    # Writing -------------------------------------------------------------------------------------

    @contextmanager
    def writing(self, patience: float = 0.0) -> Iterator[Change]:
        """A change to the memory: committed when the block ends, undone when it raises.

        Short, since other writers wait. patience: seconds to wait for them, if more than usual.
        """
        with self._lock.held(patience), for_people(self.directory, UNTOUCHED), self._writer() as database:
            change: Change | None = None
            try:
                with _transaction(database, "BEGIN IMMEDIATE"):
                    state = database.state()
                    self._sweep(state.epoch)
                    change = Change(database, self.files(state.epoch), state)
                    yield change
                    change.finish()
            except BaseException:
                # An interrupt can arrive just after the commit: only the database knows.
                if change is not None and database.state() == state:
                    change.undo()
                raise

    def compact(self) -> tuple[int, int]:
        """Leave removed entries out of the files; returns the (segments, entries) dropped.

        Files before the first of them stay what they are, under a second name; only later ones are copied.
        """
        with self._lock.held(), for_people(self.directory, UNTOUCHED), self._writer() as database:
            with _transaction(database, "BEGIN IMMEDIATE"):
                state = database.state()
                self._sweep(state.epoch)
                spans = database.spans()
                live = spans.where(spans.removed != REMOVED)
                if len(live) == len(spans):
                    return 0, 0
                count, firsts = self._copy(state, live, self.files(state.epoch + 1))
                sync_directory(self.directory / ENTRIES)
                database.drop_removed(firsts, state.generation + 1)
                database.set_state(State(state.generation + 1, state.epoch + 1, count, state.next_entry))
            self._sweep(state.epoch + 1)
            for path in (self.directory / INDEX).glob("ivf-*"):  # an index that versions up to 0.2 had
                path.unlink(missing_ok=True)
            database.shrink()
            return len(spans) - len(live), state.row_count - count

    def _writer(self) -> closing[Database]:
        """A connection to write by, with the lock held; opened each time, so that an idle memory has none."""
        return closing(Database(self.directory))

    def _copy(self, state: State, live: Spans, files: EntryFiles) -> tuple[int, list[tuple[int, int]]]:
        """Put live entries into new files, in the order of their rows.

        Returns their number and (first row, segment) of those that are at another place now.
        """
        old, live = self.map_entries(state), live.where(live.first_rows >= 0)
        live = live.where(live.lines_by_row)
        kept = files.create_from(self.files(state.epoch), old.values, _rows_without_gap(live))
        appender, firsts = Appender(files, kept), []
        try:
            live = live.where(live.first_rows + live.counts > kept)
            columns = (live.segment_ids, live.first_rows, live.counts, live.checksums)
            for segment, first, count, checksum in zip(*(c.tolist() for c in columns), strict=True):
                keys, values = old.keys(first, first + count), old.values[first : first + count]
                if checksum_of(keys, values) != checksum:
                    raise MemoryStoreError(
                        f"{self.directory}: segment {segment} is damaged on disk; nothing was changed. "
                        "Remove it, add it again if it is needed, and compact once more"
                    )
                there = max(0, kept - first)  # entries of the first segment that lie in files that are kept
                if appender.count - there != first:
                    firsts.append((appender.count - there, segment))
                appender.append(keys[there:], values[there:])
            appender.sync()
            appender.close()
        except BaseException:
            appender.undo()
            raise
        return appender.count, firsts

    def _sweep(self, epoch: int) -> None:
        """Delete what dead writers left: entry files of other epochs, and unfinished imports."""
        sweep_staging(self.directory)
        for path in (self.directory / ENTRIES).iterdir():
            if path.name != str(epoch):
                shutil.rmtree(path, ignore_errors=True)


def _fill(directory: Path, description: Description) -> None:
    with closing(Database(directory, new=True)) as database, _transaction(database, "BEGIN"):
        database.migrate()
    entry_files(directory, description, epoch=0).create()
    description.write(directory)
    sync_directory(directory / ENTRIES)
    sync_directory(directory)


def entry_files(directory: Path, description: Description, epoch: int) -> EntryFiles:
    return EntryFiles(
        directory / ENTRIES / str(epoch),
        description.dimension,
        description.entries_per_shard,
        key_format(description.keys),
    )


def _rows_without_gap(spans: Spans) -> int:
    """How many rows from the first on all belong to these segments, which are in the order of their rows."""
    before = np.cumsum(spans.counts) - spans.counts
    moved = np.flatnonzero(spans.first_rows != before)
    return int(before[moved[0]] if len(moved) else spans.counts.sum())


@contextmanager
def _transaction(database: Database, begin: str) -> Iterator[None]:
    database.execute(begin)
    try:
        yield
        database.execute("COMMIT")
    except BaseException:
        if database.connection.in_transaction:
            database.execute("ROLLBACK")
        raise
