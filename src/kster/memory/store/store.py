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

from kster.errors import DamagedMemory, MemoryStoreError
from kster.files import new_directory, sync_directory
from kster.memory.store.change import Change
from kster.memory.store.database import Database, State
from kster.memory.store.description import Description
from kster.memory.store.entry_files import EntryFiles, MappedEntries
from kster.memory.store.failures import for_people, said
from kster.memory.store.key_formats import key_format
from kster.memory.store.locks import WriterLock
from kster.memory.store.migrations import FORMAT, VALUES_DIVIDED, require_known
from kster.memory.store.open_stores import open_stores, tick
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
        self.lock = WriterLock(directory / WRITER_LOCK, lock_timeout)
        self._reading = threading.Lock()
        self._reader: Database | None = None  # open while in use, and for a while longer
        self._readers_opened = 0
        self._closed = False
        self.last_used = 0
        self.when_released: Callable[[], None] = lambda: None  # called when idle files are closed
        with self.reading() as database:
            format = min(description.format, database.format())
            require_known(database.format(), directory)
            if format == FORMAT:
                database.state()  # fails here rather than later when the file is no database of ours
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
        next program of this version goes on. Entries are the same in every format; up to format 4 one file
        had the values of all.
        """
        try:
            with self.lock.held(UPGRADE_PATIENCE), for_people(self.directory, UNTOUCHED):
                self.description = replace(self.description, format=FORMAT)
                self.description.write(self.directory)
                with self.writer() as database:
                    with transaction(database, "BEGIN IMMEDIATE"):
                        database.migrate()
                        state = database.state()
                        if format < VALUES_DIVIDED:
                            self.files(state).divide_values(state.row_count)
                    self.sweep(state)
                    database.shrink(0)  # versions up to format 4 left removed text in unused pages
                for path in (self.directory / INDEX).glob("ivf-*"):  # an index that they had
                    path.unlink(missing_ok=True)
        except MemoryStoreError as error:
            raise type(error)(
                f"{self.directory}: has format {format}, and must be upgraded to format {FORMAT} first; "
                f"that failed: {error}"
            ) from error
        log.warning(
            "%s: upgraded to format %d (from %d); older versions of KSTER cannot read it any more",
            *(self.directory, FORMAT, format),
        )

    def files(self, state: State) -> EntryFiles:
        return entry_files(self.directory, self.description, state.directory)

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
            with transaction(reader, "BEGIN"):
                yield reader

    @contextmanager
    def reading_apart(self) -> Iterator[Database]:
        """A consistent look on a connection of its own, for as long as one likes."""
        with for_people(self.directory):
            database = Database(self.directory)
            try:
                with transaction(database, "BEGIN"):
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
        files = self.files(state)
        try:
            return MappedEntries(files, state.row_count, self.description.vocabulary_size, state.dropped)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise MemoryStoreError(f"{self.directory}: cannot be read ({said(error)})") from error
        except ValueError as error:  # shorter than recorded
            problems = "; ".join(files.problems(state.row_count, state.dropped))
            raise DamagedMemory(
                f"{self.directory}: damaged ({problems}); restore it from a backup"
            ) from error

    # Writing -------------------------------------------------------------------------------------

    @contextmanager
    def writing(self, patience: float = 0.0) -> Iterator[Change]:
        """A change to the memory: committed when the block ends, undone when it raises.

        Short, since other writers wait. patience: seconds to wait for them, if more than usual.
        """
        with self.lock.held(patience), for_people(self.directory, UNTOUCHED), self.writer() as database:
            change: Change | None = None
            try:
                with transaction(database, "BEGIN IMMEDIATE"):
                    state = database.state()
                    self.sweep(state)
                    change = Change(database, self.files(state), state)
                    yield change
                    change.finish()
            except BaseException:
                # An interrupt can arrive just after the commit: only the database knows.
                if change is not None and database.state() == state:
                    change.undo()
                raise

    def writer(self) -> closing[Database]:
        """A connection to write by, with the lock held; opened each time, so that an idle memory has none."""
        return closing(Database(self.directory))

    def sweep(self, state: State) -> None:
        """Delete what dead writers left: entry files that do not count any more, and unfinished imports."""
        sweep_staging(self.directory)
        for path in (self.directory / ENTRIES).iterdir():
            if path.name != str(state.directory):
                shutil.rmtree(path, ignore_errors=True)
        files = self.files(state)
        files.drop(state.dropped)
        files.old_values.unlink(missing_ok=True)


def _fill(directory: Path, description: Description) -> None:
    with closing(Database(directory, new=True)) as database, transaction(database, "BEGIN"):
        database.migrate()
    entry_files(directory, description, 0).create()
    description.write(directory)
    sync_directory(directory / ENTRIES)
    sync_directory(directory)


def entry_files(directory: Path, description: Description, name: int) -> EntryFiles:
    return EntryFiles(
        directory / ENTRIES / str(name),
        description.dimension,
        description.entries_per_shard,
        key_format(description.keys),
    )


@contextmanager
def transaction(database: Database, begin: str) -> Iterator[None]:
    database.execute(begin)
    try:
        yield
        database.execute("COMMIT")
    except BaseException:
        if database.connection.in_transaction:
            database.execute("ROLLBACK")
        raise
