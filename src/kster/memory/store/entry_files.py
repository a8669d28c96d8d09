"""Keys and values on disk, appended and never changed.

They lie in one directory: keys-00000.f16, keys-00001.f16, … (.i8 for keys of 8 bits, `key_formats.py`) and
values-00000.i32, … with a fixed number of entries each, so that a row's number says in which file it lies.
Only the database says how many rows count: bytes beyond that are left over from a writer that died, are never
read, and are cut off by the next writer. It also says which files compactions have dropped; their numbers are
not used again.
"""

from __future__ import annotations

import ctypes
import math
import mmap
import os
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from functools import cache
from io import BufferedRandom
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import torch

from kster.errors import DamagedMemory
from kster.files import sync, sync_directory
from kster.memory.store.key_formats import FORMATS, KeyFormat

IN_PAGE_CACHE = 4  # files of keys; of memories that have no more, what is needed often stays in RAM
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

    def values(self, number: int) -> Path:
        return self.directory / f"values-{number:05d}.i32"

    def of(self, number: int) -> tuple[Path, Path]:
        """The files of this number."""
        return self.shard(number), self.values(number)

    @property
    def old_values(self) -> Path:
        """Up to format 4 one file had all values."""
        return self.directory / "values.i32"

    def create(self) -> None:
        self.directory.mkdir(parents=True)
        for path in self.of(0):
            path.touch()
        sync_directory(self.directory)

    def numbers(self, rows: int, dropped: Collection[int] = ()) -> list[int]:
        """Of the files that so many rows take."""
        return [n for n in range(-(-rows // self.entries_per_shard)) if n not in dropped]

    def count_in(self, number: int, rows: int) -> int:
        """How many of so many rows lie in a file."""
        return min(self.entries_per_shard, rows - number * self.entries_per_shard)

    def expected(self, rows: int, dropped: Collection[int] = ()) -> list[tuple[Path, int]]:
        """The files of this many rows, and how many bytes of each they take."""
        expected = []
        for number in self.numbers(rows, dropped):
            count = self.count_in(number, rows)
            expected.append((self.values(number), count * VALUE.itemsize))
            expected.append((self.shard(number), count * self.key_bytes))
        return expected

    def problems(self, rows: int, dropped: Collection[int] = ()) -> list[str]:
        """Files that are missing or too short for this many rows."""
        found = []
        for path, size in self.expected(rows, dropped):
            actual = path.stat().st_size if path.exists() else None
            if actual is None:
                found.append(f"{path.name} is missing")
            elif actual < size:
                found.append(f"{path.name} has {actual} bytes, {size} are recorded")
        return found

    def drop(self, numbers: Collection[int]) -> None:
        """Delete these files, where they are still there. Never raises: the next writer tries again."""
        with suppress(OSError):
            present = set(os.listdir(self.directory))
            for number in numbers:
                for path in self.of(number):
                    if path.name in present:
                        path.unlink(missing_ok=True)

    def divide_values(self, rows: int) -> None:
        """Write the files of values that memories have had since format 5."""
        values = _map(self.old_values, VALUE, (rows,))
        for number in self.numbers(rows) or [0]:
            first = number * self.entries_per_shard
            with open(self.values(number), "wb") as file:
                file.write(values[first : first + self.entries_per_shard].tobytes())
                sync(file)
        sync_directory(self.directory)


class MappedEntries:
    """The first `count` rows, memory-mapped. Stays readable after the files are deleted."""

    def __init__(
        self,
        files: EntryFiles,
        count: int,
        vocabulary_size: int | None = None,
        dropped: Collection[int] = (),
    ) -> None:
        """Raises FileNotFoundError when a compaction has meanwhile dropped a file.

        vocabulary_size: what values must be smaller than; None if they are not checked.
        """
        self.count = count
        self.dimension = files.dimension
        self._vocabulary_size = vocabulary_size
        self._files = files
        self._per_shard = files.entries_per_shard
        self._format = files.keys
        self._keys: dict[int, npt.NDArray[Any]] = {}  # by number: rows as they are stored
        self._values: dict[int, npt.NDArray[np.int32]] = {}
        for number in files.numbers(count, dropped):
            here = files.count_in(number, count)
            self._values[number] = _map(files.values(number), VALUE, (here,))
            self._keys[number] = _map(files.shard(number), files.key_type, (here, files.key_width))

    def has(self, start: int, stop: int) -> bool:
        """Whether there are such rows at all."""
        files = range(start // self._per_shard, -(-stop // self._per_shard))
        return 0 <= start < stop <= self.count and all(number in self._keys for number in files)

    def keys(self, start: int, stop: int) -> npt.NDArray[np.float16]:
        """(stop − start, d), copied."""
        return self._format.decoded(
            np.concatenate([self._no_keys(0), *self._between(self._keys, start, stop)])
        )

    def values(self, start: int, stop: int) -> npt.NDArray[np.int32]:
        """(stop − start,), copied."""
        return np.concatenate([np.zeros(0, np.int32), *self._between(self._values, start, stop)])

    def values_of(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
        """(m,) of (m,) rows. Raises DamagedMemory for one outside the vocabulary."""
        values = np.zeros(len(rows), np.int32)
        self._announce(self._values, rows)
        for number, here in self._by_file(rows):
            values[here] = self._values[number][rows[here] - number * self._per_shard]
        most = self._vocabulary_size
        if most is not None and values.size and not 0 <= values.min() <= values.max() < most:
            raise DamagedMemory(
                f"{self._files.directory}: a value is outside the vocabulary (0 … {most - 1}); the file is "
                "damaged: restore the memory from a backup (`kster memory verify` names the segments)"
            )
        return values

    def gather(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.float16]:
        """(m, d) keys of (m,) rows; zeros where a row is -1."""
        out = self._no_keys(len(rows))
        self._announce(self._keys, rows)
        for number, here in self._by_file(rows):
            part = rows[here] - number * self._per_shard
            if len(here) == len(rows):  # as a rule, and far faster
                return self._format.decoded(np.asarray(self._keys[number]).take(part, axis=0))
            out[here] = self._keys[number][part]
        return self._format.decoded(out)

    def _no_keys(self, count: int) -> npt.NDArray[Any]:
        return np.zeros((count, self._files.key_width), self._files.key_type)

    def _by_file(self, rows: npt.NDArray[np.int64]) -> Iterator[tuple[int, npt.NDArray[np.int64]]]:
        """Which places of (m,) rows are in which file; not those of -1."""
        numbers = rows // self._per_shard
        for number in np.unique(numbers[rows >= 0]).tolist():
            yield number, np.flatnonzero(numbers == number)

    def _announce(self, files: Mapping[int, npt.NDArray[Any]], rows: npt.NDArray[np.int64]) -> None:
        """Let the disk read the runs of these rows side by side, and no more than these.

        Otherwise they are fetched one by one, each with what lies around it: 2.7 s instead of 0.1 s for one
        sentence's in a memory of 100 million entries.
        """
        rows = rows[rows >= 0]
        if len(files) <= IN_PAGE_CACHE or not len(rows):
            return
        ends = np.flatnonzero(np.diff(rows) != 1) + 1
        firsts, lasts = rows[np.append(0, ends)], rows[np.append(ends, len(rows)) - 1]
        for first, last in zip(firsts.tolist(), lasts.tolist(), strict=True):
            number, offset = divmod(first, self._per_shard)
            if number in files:
                will_need(files[number][offset : offset + last - first + 1])

    def _between(
        self, files: Mapping[int, npt.NDArray[Any]], start: int, stop: int
    ) -> Iterator[npt.NDArray[Any]]:
        while start < stop:
            number, offset = divmod(start, self._per_shard)
            part = files[number][offset : offset + stop - start]
            yield part
            start += len(part)


def will_need(array: npt.NDArray[Any]) -> None:
    """Begin to read this part of a mapped file. Advice: where it is not understood, it does no harm."""
    start = array.ctypes.data // mmap.PAGESIZE * mmap.PAGESIZE
    madvise()(start, array.ctypes.data + array.nbytes - start, mmap.MADV_WILLNEED)


@cache
def madvise() -> Callable[[int, int, int], int]:
    """The system call; Python has it for mappings of its own only."""
    function = ctypes.CDLL(None).madvise
    function.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
    return cast(Callable[[int, int, int], int], function)


class Appender:
    """Appends entries behind the first `count`, cutting off whatever a dead writer left there."""

    def __init__(self, files: EntryFiles, count: int) -> None:
        self._files = files
        self._start = count
        self.count = count
        self._open: tuple[BufferedRandom, BufferedRandom] | None = None  # keys, values
        self._created = False
        self._at(count)
        number = count // files.entries_per_shard
        while any(path.exists() for path in files.of(number + 1)):
            number += 1
            for path in files.of(number):
                path.unlink(missing_ok=True)

    def append(self, keys: npt.NDArray[np.float16], values: npt.NDArray[np.int32]) -> int:
        """keys: (n, d); values: (n,). Returns the first row.

        All in one file, if they fit into one: then a compaction need not touch the next.
        """
        if self._room < len(keys) <= self._files.entries_per_shard:
            self._append(np.zeros((self._room, keys.shape[1]), np.float16), np.zeros(self._room, np.int32))
        first = self.count
        self._append(keys, values)
        return first

    def _append(self, keys: npt.NDArray[np.float16], values: npt.NDArray[np.int32]) -> None:
        values, written = np.ascontiguousarray(values, VALUE), 0
        while written < len(keys):
            keys_file, values_file = self._at(self.count)
            part = self._files.keys.encoded(keys[written : written + self._room])
            keys_file.write(part.data)
            values_file.write(values[written : written + len(part)].data)
            written += len(part)
            self.count += len(part)
            if self._room == self._files.entries_per_shard:
                self._close_files()

    @property
    def _room(self) -> int:
        """How many more entries the file of the next row takes."""
        return self._files.entries_per_shard - self.count % self._files.entries_per_shard

    def sync(self) -> None:
        """Returns when everything appended would survive a power cut."""
        self._close_files()
        if self._created:
            sync_directory(self._files.directory)

    def undo(self) -> None:
        """Cut off what was appended. Never raises: what cannot be cut off now, the next writer cuts off."""
        for file in self._open or ():
            with suppress(OSError):
                file.raw.close()  # and not `file`, which would try once more to write its buffer
        self._open = None
        number, offset = divmod(self._start, self._files.entries_per_shard)
        with suppress(OSError):
            for path, size in zip(self._files.of(number), self._sizes(offset), strict=True):
                if path.exists():
                    os.truncate(path, size)
            while self._files.shard(number + 1).exists():
                number += 1
                self._files.drop([number])

    def _sizes(self, count: int) -> tuple[int, int]:
        return count * self._files.key_bytes, count * VALUE.itemsize

    def _at(self, row: int) -> tuple[BufferedRandom, BufferedRandom]:
        """The open files that a row, the next one, belongs to."""
        if self._open is None:
            number, offset = divmod(row, self._files.entries_per_shard)
            keys, values = self._files.of(number)
            self._created |= not (keys.exists() and values.exists())
            sizes = self._sizes(offset)
            keys_file = _open_at(keys, sizes[0])
            try:
                self._open = keys_file, _open_at(values, sizes[1])
            except BaseException:
                keys_file.close()
                raise
        return self._open

    def _close_files(self) -> None:
        for file in self._open or ():
            sync(file)
            file.close()
        self._open = None


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
