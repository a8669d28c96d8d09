"""What may be done to a memory inside `Store.writing`: entries are appended, rows of the database changed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from kster.memory.segment import Segment
from kster.memory.store.database import Database, NewSegment, State
from kster.memory.store.entry_files import Appender, EntryFiles, checksum_of

ENTRY_ROOM = 1 << 12
"""Ids kept for the entries of a segment whose keys are made later: no model reads more tokens."""


@dataclass(frozen=True, slots=True, eq=False)
class Draft:
    """A segment that is not in the memory yet, with its keys."""

    new: NewSegment
    keys: npt.NDArray[np.float16]  # (n, d)
    values: npt.NDArray[np.int32]  # (n,)


class Change:
    """Made by `Store.writing`, which also finishes or undoes it."""

    def __init__(self, database: Database, files: EntryFiles, state: State) -> None:
        self.database = database
        self._files = files
        self._state = state
        self.generation = state.generation + 1
        self._next_entry = state.next_entry
        self._appender: Appender | None = None
        self.has_changed = False

    def add(self, draft: Draft) -> Segment:
        first_row, stored = self._append(draft.keys, draft.values)
        checksum = checksum_of(stored, draft.values)
        first_entry, count = self._next_entry, len(draft.values)
        self._next_entry += count
        return self.database.insert(draft.new, first_entry, first_row, count, checksum, self.generation)

    def add_texts(self, rows: Iterable[tuple[object, ...]]) -> int:
        """Segments whose keys are made later; see `Database.insert_texts`."""
        count = self.database.insert_texts(rows, self._next_entry, ENTRY_ROOM, self.generation)
        self._next_entry += count * ENTRY_ROOM
        self.has_changed |= count > 0
        return count

    def give_keys(self, made: Sequence[tuple[int, npt.NDArray[np.float16], npt.NDArray[np.int32]]]) -> None:
        """For segments that have none yet: their ids, keys (n, d) and values (n,)."""
        if not made:
            return
        ids, keys, values = zip(*made, strict=True)
        counts = [len(own) for own in values]
        first_row, stored = self._append(np.concatenate(keys), np.concatenate(values))
        ends = np.cumsum(counts).tolist()
        checksums = [
            checksum_of(stored[end - count : end], own)
            for end, count, own in zip(ends, counts, values, strict=True)
        ]
        firsts = [first_row + end - count for end, count in zip(ends, counts, strict=True)]
        self.database.set_keys(zip(firsts, counts, checksums, ids, strict=True), self.generation)

    def refuse_keys(self, id: int, reason: str) -> None:
        """Note that the model can make no keys of a segment, and why."""
        self.database.set_key_problem(id, reason, self.generation)
        self.has_changed = True

    def _append(
        self, keys: npt.NDArray[np.float16], values: npt.NDArray[np.int32]
    ) -> tuple[int, npt.NDArray[np.float16]]:
        """The first row, and the keys as they are read again."""
        if self._appender is None:
            self._appender = Appender(self._files, self._state.row_count)
        keys = self._files.as_stored(keys)
        first_row = self._appender.append(keys, values)
        self.has_changed = True
        return first_row, keys

    def remove(self, ids: Iterable[int]) -> None:
        self.database.mark_removed(ids, self.generation)
        self.has_changed = True

    def finish(self) -> None:
        """Make entries durable; the database's commit follows."""
        if not self.has_changed:
            return
        rows = self._state.row_count
        if self._appender is not None:
            self._appender.sync()
            rows = self._appender.count
        self.database.set_state(
            replace(self._state, generation=self.generation, row_count=rows, next_entry=self._next_entry)
        )

    def undo(self) -> None:
        if self._appender is not None:
            self._appender.undo()
