"""Where the texts of an import wait until the last one is read: beside the memory's files, in nobody's way.

Reading a file takes a while, and a memory lets one writer in at a time. So its pairs are read into an area of
the import's own, `staging/…` in the memory's directory, and then written into the memory in one short change.
What an import that died has left there is deleted by the next writer.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path

from kster.memory.store.database import NewSegment, known_among, texts_of
from kster.memory.store.failures import for_people
from kster.memory.store.locks import own_new_directory, sweep

STAGING = "staging"
LOCK = "lock"
UNTOUCHED = "nothing was changed"

COLUMNS = [*(field.name for field in fields(NewSegment)), "pair_hash", "target_group"]


@dataclass(frozen=True, slots=True)
class Staged:
    """A text that waits."""

    number: int  # of its pair in the import, from 1
    line: int | None  # of its pair in the file
    new: NewSegment


class Staging:
    """Texts on disk, in the order they were put there. For one thread, and gone with it."""

    def __init__(self, memory: Path, directory: Path) -> None:
        """memory: named in errors; directory: one of the area's own."""
        self._memory = memory
        self.count = 0
        self.characters = 0  # of the targets
        with for_people(memory, UNTOUCHED):
            self._connection = sqlite3.connect(directory / "texts.sqlite", isolation_level=None)
            self._connection.execute("PRAGMA journal_mode = OFF")
            self._connection.execute("PRAGMA synchronous = OFF")
            columns = f"number INTEGER PRIMARY KEY, line, {', '.join(COLUMNS)}"
            self._connection.execute(f"CREATE TABLE texts ({columns})")
            self._connection.execute("CREATE INDEX by_pair ON texts (pair_hash)")
            self._connection.execute("BEGIN")  # and never committed: nobody else reads this

    def put(self, texts: Sequence[Staged]) -> None:
        rows = [
            (one.number, one.line, *texts_of(one.new), one.new.pair_hash, one.new.target_group)
            for one in texts
        ]
        marks = ", ".join("?" * (len(COLUMNS) + 2))
        with for_people(self._memory, UNTOUCHED):
            self._connection.executemany(f"INSERT INTO texts VALUES ({marks})", rows)
        self.count += len(rows)
        self.characters += sum(len(text.new.target) for text in texts)

    def known(self, texts: Sequence[tuple[str, str]]) -> set[tuple[str, str]]:
        """Those of these (source, target) pairs that are here already."""
        with for_people(self._memory, UNTOUCHED):
            return known_among(self._connection, "texts", "TRUE", texts)

    def all(self) -> Iterator[Staged]:
        statement = f"SELECT number, line, {', '.join(COLUMNS[:-2])} FROM texts ORDER BY number"
        with for_people(self._memory, UNTOUCHED):
            for number, line, *texts in self._connection.execute(statement):
                yield Staged(number, line, NewSegment(*texts))

    def rows(self) -> Iterator[tuple[object, ...]]:
        """The same as the database takes them."""
        with for_people(self._memory, UNTOUCHED):
            yield from self._connection.execute(f"SELECT {', '.join(COLUMNS)} FROM texts ORDER BY number")

    def close(self) -> None:
        self._connection.close()


@contextmanager
def staging_area(memory: Path) -> Iterator[Staging]:
    """An area in this memory's directory, deleted at the end."""
    with for_people(memory, UNTOUCHED):
        (memory / STAGING).mkdir(exist_ok=True)
        directory, lock = own_new_directory(memory / STAGING, LOCK)
    try:
        staging = Staging(memory, directory)
        try:
            yield staging
        finally:
            staging.close()
    finally:
        shutil.rmtree(directory, ignore_errors=True)
        lock.close()


def sweep_staging(memory: Path) -> None:
    """Delete the areas whose owners have died."""
    sweep(memory / STAGING, LOCK)
