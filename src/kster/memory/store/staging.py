"""Where the keys of an import wait until all of them are made: beside the memory's files, in nobody's way.

Making keys takes a model minutes, and a memory lets one writer in at a time. So they are made into an area
of the import's own, `staging/…` in the memory's directory, and then written into the memory in one short
change. What an import that died has left there is deleted by the next writer.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from kster.memory.store.database import Database, NewSegment
from kster.memory.store.failures import for_people
from kster.memory.store.owned_directory import claim, sweep
from kster.memory.store.shards import Appender, EntryFiles, MappedEntries

STAGING = "staging"
LOCK = "lock"
UNTOUCHED = "nothing was changed"


@dataclass(frozen=True, slots=True, eq=False)
class Draft:
    """A segment that is not in the memory yet, with its keys."""

    new: NewSegment
    keys: npt.NDArray[np.float16]  # (n, d)
    values: npt.NDArray[np.int32]  # (n,)


class Staging:
    """Drafts on disk, in the order they were put there. For one thread, and gone with it."""

    def __init__(self, memory: Path, directory: Path, dimension: int, entries_per_shard: int) -> None:
        """memory: what errors are about; directory: one of the area's own."""
        self._memory = memory
        self._files = EntryFiles(directory / "entries", dimension, entries_per_shard)
        with for_people(memory, UNTOUCHED):
            self._files.create()
            self._appender = Appender(self._files, 0, durable=False)
            self._database = Database(directory, new=True)
            self._database.execute("PRAGMA synchronous = OFF")
            self._database.create()
            self._database.execute("BEGIN")  # and never committed: nobody else reads this

    def put(self, draft: Draft) -> None:
        with for_people(self._memory, UNTOUCHED):
            first, count = self._appender.count, len(draft.values)
            self._database.insert(draft.new, first, first, count, checksum=0, generation=0)
            self._appender.append(draft.keys, draft.values)

    def has(self, source: str, target: str) -> bool:
        with for_people(self._memory, UNTOUCHED):
            return bool(self._database.by_pair(source, target))

    def drafts(self) -> Iterator[Draft]:
        """All that were put here; nothing can be put here any more."""
        with for_people(self._memory, UNTOUCHED):
            self._appender.close()
            entries = MappedEntries(self._files, self._appender.count)
            for new, first, count in self._database.staged():
                yield Draft(new, entries.keys(first, first + count), entries.values[first : first + count])

    def close(self) -> None:
        self._database.close()
        self._appender.abandon()


@contextmanager
def staging_area(memory: Path, dimension: int, entries_per_shard: int) -> Iterator[Staging]:
    """An area in this memory's directory, deleted at the end."""
    with for_people(memory, UNTOUCHED):
        (memory / STAGING).mkdir(exist_ok=True)
        directory, lock = claim(memory / STAGING, "", LOCK)
    try:
        staging = Staging(memory, directory, dimension, entries_per_shard)
        try:
            yield staging
        finally:
            staging.close()
    finally:
        shutil.rmtree(directory, ignore_errors=True)
        lock.close()


def sweep_staging(memory: Path) -> None:
    """Delete the areas whose owners have died."""
    sweep(memory / STAGING, "", LOCK)
