"""A memory as one file, and back: one consistent state, even if others write meanwhile.

The database is copied first. Entries are only ever appended, and are on the disk before the database mentions
them, so whatever the copy mentions can be copied after it; if a compaction has dropped files meanwhile,
all is done again.
"""

from __future__ import annotations

import sqlite3
import tarfile
import tempfile
from contextlib import closing
from pathlib import Path
from typing import BinaryIO

from kster.errors import DamagedMemory, MemoryStoreError
from kster.files import new_directory, replacing
from kster.memory.store import database as sqlite
from kster.memory.store import description
from kster.memory.store.failures import for_people
from kster.memory.store.store import ENTRIES, Store
from kster.memory.store.verification import problems_of

KEPT = "smoother"  # a directory of a memory that is neither its entries nor derived
ATTEMPTS = 10  # compactions that may come in between


def back_up(store: Store, file: Path) -> None:
    """Write a memory's present state to a file, which appears whole or not at all."""
    with for_people(store.directory, f"{file} was not written"):
        for attempt in range(1, ATTEMPTS + 1):
            try:
                with replacing(file) as out:
                    _write(store, out)
                return
            except FileNotFoundError:
                if attempt == ATTEMPTS or not file.parent.is_dir():
                    raise


def _write(store: Store, out: BinaryIO) -> None:
    with tempfile.TemporaryDirectory() as scratch, tarfile.open(fileobj=out, mode="w") as archive:
        copy = Path(scratch) / sqlite.FILE
        with store.reading_apart() as database, closing(sqlite3.connect(copy)) as target:
            database.connection.backup(target)
        with closing(sqlite.Database(Path(scratch))) as copied:
            state = copied.state()
        for path, size in store.files(state).expected(state.row_count, state.dropped):
            with path.open("rb") as entries:
                name = f"{ENTRIES}/{state.directory}/{path.name}"
                member = tarfile.TarInfo(name)
                member.size, member.mode = size, 0o644
                archive.addfile(member, entries)
        archive.add(copy, sqlite.FILE)
        archive.add(store.directory / description.FILE, description.FILE)
        if (kept := store.directory / KEPT).is_dir():
            archive.add(kept, KEPT)


def restore(file: Path, directory: Path) -> None:
    """Restore a memory from a backup; refuses a directory that is not empty, and a damaged file."""
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise MemoryStoreError(
            f"{directory}: exists and is not empty; a backup is restored to a new directory"
        )
    try:
        with new_directory(directory.resolve()) as making:
            with tarfile.open(file) as archive:
                archive.extractall(making, filter="data")
            with closing(Store(making, description.Description.read(making))) as store:
                problems = problems_of(store)
            if problems:
                raise DamagedMemory(f"{file}: damaged ({'; '.join(problems[:3])}); nothing was restored")
    except (OSError, tarfile.TarError) as error:
        raise MemoryStoreError(f"{file}: cannot be restored to {directory} ({error})") from error
