"""Keys and values on disk, appended and never changed.

The files of one epoch lie in one directory: keys-00000.f16, keys-00001.f16, … (.i8 for keys of 8 bits,
`key_formats.py`) with a fixed number of entries each, and values.i32. Only the database says how many entries
count: bytes beyond that are left over from a writer that died, are never read, and are cut off by the next
writer.
"""

from __future__ import annotations

import math
import os
import zlib
from contextlib import suppress
from io import BufferedRandom
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from kster.errors import DamagedMemory
from kster.files import sync, sync_directory
from kster.memory.store.key_formats import FORMATS, KeyFormat

VALUE = np.dtype("<i4")
TORCH_TYPES = {np.dtype("<f2"): torch.float16, np.dtype(np.uint8): torch.uint8, VALUE: torch.int32}


def checksum_of(keys: npt.NDArray[np.float16], values: npt.NDArray[np.int32]) -> int:
    """crc32 of the values and of the keys as they are read, in float16."""
    keys, values = np.ascontiguousarray(keys, "<f2"), np.ascontiguousarray(values, "<i4")
    return zlib.crc32(values.data, zlib.crc32(keys.data))


class EntryFiles:
    """The key shards and the values of one epoch."""

    def __init__(
        self, directory: Path, dimension: int, entries_per_shard: int, keys: KeyFormat = FORMATS["float16"]
    ) -> None:
        self.directory = directory
        self.dimension = dimension
        self.entries_per_shard = entries_per_shard
        self.keys = keys
        self.key_type, self.key_width = keys.row(dimension)
        self.key_bytes = self.key_type.itemsize * self.key_width

    def as_stored(self, keys: npt.NDArray[np.float16]) -> npt.NDArray[np.float16]:
        """What these keys are when they are read again."""
        return self.keys.decoded(self.keys.encoded(keys))

    def shard(self, number: int) -> Path:
        return self.directory / f"keys-{number:05d}.{self.keys.suffix}"

    @property
    def values(self) -> Path:
        return self.directory / "values.i32"

    def create(self) -> None:
        self.directory.mkdir(parents=True)
        self.values.touch()
        self.shard(0).touch()
        sync_directory(self.directory)

    def create_from(self, older: EntryFiles, values: npt.NDArray[np.int32], rows: int) -> int:
        """Create the files with the beginning of older ones: full files of keys within so many rows.

        Returns how many rows there are now. The files are the same ones under a second name, not copies; on a
        file system that has no such names there are none.
        """
        self.create()
        linked = 0
        with suppress(OSError):
            while (linked + 1) * self.entries_per_shard <= rows:
                self.shard(linked).unlink(missing_ok=True)
                os.link(older.shard(linked), self.shard(linked))
                linked += 1
        kept = linked * self.entries_per_shard
        self.values.write_bytes(np.ascontiguousarray(values[:kept], VALUE).tobytes())
        return kept

    def expected(self, entries: int) -> list[tuple[Path, int]]:
        """The files of this many entries, and how many bytes of each they take."""
        expected = [(self.values, entries * VALUE.itemsize)]
        for number, first in enumerate(range(0, entries, self.entries_per_shard)):
            count = min(self.entries_per_shard, entries - first)
            expected.append((self.shard(number), count * self.key_bytes))
        return expected

    def problems(self, entries: int) -> list[str]:
        """Files that are missing or too short for this many entries."""
        found = []
        for path, size in self.expected(entries):
            actual = path.stat().st_size if path.exists() else None
            if actual is None:
                found.append(f"{path.name} is missing")
            elif actual < size:
                found.append(f"{path.name} has {actual} bytes, {size} are recorded")
        return found


class MappedEntries:
    """The first `count` entries, memory-mapped. Stays readable after the files are deleted."""

    def __init__(self, files: EntryFiles, count: int, vocabulary_size: int | None = None) -> None:
        """Raises FileNotFoundError when a compaction has meanwhile replaced the files.

        vocabulary_size: what values must be smaller than; None if they are not checked.
        """
        self.count = count
        self._vocabulary_size = vocabulary_size
        self._file = files.values
        self._per_shard = files.entries_per_shard
        self.values: npt.NDArray[np.int32] = _map(files.values, VALUE, (count,))  # (count,)
        self.dimension = files.dimension
        self._format = files.keys
        self._type, self._width = files.key_type, files.key_width
        self._shards: list[npt.NDArray[Any]] = []  # of rows
        for number, first in enumerate(range(0, count, self._per_shard)):
            shape = (min(self._per_shard, count - first), self._width)
            self._shards.append(_map(files.shard(number), self._type, shape))

    def keys(self, start: int, stop: int) -> npt.NDArray[np.float16]:
        """(stop − start, d), copied."""
        out = self._rows(stop - start)
        position = start
        while position < stop:
            number, offset = divmod(position, self._per_shard)
            part = self._shards[number][offset : offset + stop - position]
            out[position - start : position - start + len(part)] = part
            position += len(part)
        return self._format.decoded(out)

    def _rows(self, count: int) -> npt.NDArray[Any]:
        return np.zeros((count, self._width), self._type)

    def values_of(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
        """The values of rows, in their shape. Raises DamagedMemory for one outside the vocabulary."""
        values = self.values[rows]
        most = self._vocabulary_size
        if most is not None and values.size and not 0 <= values.min() <= values.max() < most:
            raise DamagedMemory(
                f"{self._file}: a value is outside the vocabulary (0 … {most - 1}); the file is damaged: "
                "restore the memory from a backup (`kster memory verify` names the segments)"
            )
        return values

    def gather(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.float16]:
        """(m, d) keys of (m,) rows; zeros where a row is -1."""
        numbers = rows // self._per_shard
        if len(rows) and numbers[0] >= 0 and (numbers == numbers[0]).all():  # as a rule, and far faster
            shard = np.asarray(self._shards[numbers[0]])
            return self._format.decoded(shard.take(rows - numbers[0] * self._per_shard, axis=0))
        out = self._rows(len(rows))
        for number in np.unique(numbers[rows >= 0]):
            here = np.flatnonzero(numbers == number)
            out[here] = self._shards[number][rows[here] - number * self._per_shard]
        return self._format.decoded(out)


class Appender:
    """Appends entries behind the first `count`, cutting off whatever a dead writer left there."""

    def __init__(self, files: EntryFiles, count: int) -> None:
        self._files = files
        self._start = count
        self.count = count
        self._values = _open_at(files.values, count * VALUE.itemsize)
        self._created_shard = False
        self._shard: BufferedRandom | None = None
        number, offset = divmod(count, files.entries_per_shard)
        self._shard_at(number, offset)
        while (left_over := files.shard(number := number + 1)).exists():
            left_over.unlink()

    def append(self, keys: npt.NDArray[np.float16], values: npt.NDArray[np.int32]) -> None:
        """keys: (n, d); values: (n,)."""
        self._values.write(np.ascontiguousarray(values, VALUE).data)
        written = 0
        while written < len(keys):
            number, offset = divmod(self.count, self._files.entries_per_shard)
            room = self._files.entries_per_shard - offset
            part = self._files.keys.encoded(keys[written : written + room])
            self._shard_at(number, offset).write(part.data)
            written += len(part)
            self.count += len(part)
            if len(part) == room:
                self._close_shard()

    def sync(self) -> None:
        """Returns when everything appended would survive a power cut."""
        sync(self._values)
        self._close_shard()
        if self._created_shard:
            sync_directory(self._files.directory)

    def undo(self) -> None:
        """Cut off what was appended. Never raises: what cannot be cut off now, the next writer cuts off."""
        self.abandon()
        with suppress(OSError):
            os.truncate(self._files.values, self._start * VALUE.itemsize)
            number, offset = divmod(self._start, self._files.entries_per_shard)
            if (shard := self._files.shard(number)).exists():
                os.truncate(shard, offset * self._files.key_bytes)
            while (appended := self._files.shard(number := number + 1)).exists():
                appended.unlink()

    def abandon(self) -> None:
        """Let go of the files, whatever state they are in."""
        for file in (self._values, self._shard):
            if file is not None:
                with suppress(OSError):
                    file.raw.close()  # and not `file`, which would try once more to write its buffer

    def close(self) -> None:
        self._close_shard()
        self._values.close()

    def _shard_at(self, number: int, offset: int) -> BufferedRandom:
        if self._shard is None:
            path = self._files.shard(number)
            self._created_shard |= not path.exists()
            self._shard = _open_at(path, offset * self._files.key_bytes)
        return self._shard

    def _close_shard(self) -> None:
        if self._shard is not None:
            sync(self._shard)
            self._shard.close()
            self._shard = None


def _open_at(path: Path, size: int) -> BufferedRandom:
    """Open for writing at `size`; a file that is longer is cut, one that is shorter is refused."""
    file = open(path, "r+b" if path.exists() else "w+b")  # noqa: SIM115  (closed by the appender)
    assert isinstance(file, BufferedRandom)
    actual = os.fstat(file.fileno()).st_size
    if actual < size:
        file.close()
        raise OSError(f"{path.name} has {actual} bytes where {size} are recorded")
    file.truncate(size)
    file.seek(size)
    return file


def _map(path: Path, dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
    """By torch, whose mappings hold no descriptor: Python's do, and a process has few of those.

    Raises OSError for what cannot be opened, ValueError for a file that is too short.
    """
    if shape[0] == 0:
        return np.empty(shape, dtype)
    count = math.prod(shape)
    with path.open("rb") as file:
        if os.fstat(file.fileno()).st_size < count * dtype.itemsize:
            raise ValueError(f"{path.name} is shorter than recorded")
        place = f"/dev/fd/{file.fileno()}"  # the very file, whatever its name stands for by now
        mapped = torch.from_file(place, shared=False, size=count, dtype=TORCH_TYPES[dtype])
    array = mapped.numpy().reshape(shape)
    array.setflags(write=False)
    return array
