"""Files that appear whole or not at all, names that survive a loss of power, and locks."""

from __future__ import annotations

import errno
import fcntl
import glob
import gzip
import io
import lzma
import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, BinaryIO, TextIO, cast

from kster.errors import KsterError


@contextmanager
def atomic_text(path: Path, *, keep: Callable[[Path], bool] | None = None) -> Iterator[TextIO]:
    """A UTF-8 text file to write to, put in place of `path` when the block ends without an error.

    A file named `.gz` or `.xz` is compressed. Line ends are written as given. If `path` is a link, the file
    it leads to is replaced. A pipe or a device cannot be replaced: the text is written to it at once.

    keep: asked after an error whether to keep what was written so far, in the file that it is given.
    """
    if _takes_a_stream(path):
        with (
            _for_people(path, "what was written to it may be incomplete"),
            path.open("ab") as raw,
            _text(raw, path.suffix) as text,
        ):
            yield text
        return
    with _for_people(path, "nothing was changed"):
        place = _place(path)
        ending = "partial" if keep else "part"
        part = place.with_name(f"{'' if keep else '.'}{place.name}.{secrets.token_hex(4)}.{ending}")
        try:
            with part.open("xb") as raw:
                if place.exists():
                    with suppress(OSError):  # some file systems know no modes
                        os.fchmod(raw.fileno(), place.stat().st_mode & 0o777)
                with _text(raw, path.suffix) as text:
                    yield text
                sync(raw)
            os.replace(part, place)
        except BaseException:
            if keep is None or not part.exists() or not keep(part):
                part.unlink(missing_ok=True)
            raise


@contextmanager
def replacing(path: Path, *, durable: bool = True) -> Iterator[BinaryIO]:
    """A file to write to, put in place of `path` when the block ends without an error. Raises OSError.

    durable: whether it is on the disk when this returns; not needed for what can be made again.
    """
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        with part.open("xb") as file:
            yield file
            if durable:
                sync(file)
        os.replace(part, path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    if durable:
        sync_directory(path.parent)


def write_atomically(path: Path, data: bytes) -> None:
    """Replace `path` by a file with this content, on the disk when this returns. Raises OSError."""
    with replacing(path) as file:
        file.write(data)


@contextmanager
def new_directory(directory: Path, *, replace: bool = False) -> Iterator[Path]:
    """A directory to fill, renamed to `directory` when the block ends without an error. Raises OSError.

    replace: whether to remove an older one; otherwise only an empty one is replaced. What a killed process
    left behind is removed by the next.
    """
    directory.parent.mkdir(parents=True, exist_ok=True)
    for left in directory.parent.glob(f".{glob.escape(directory.name)}.*.lock"):
        with suppress(OSError), left.open("ab") as old:
            if try_lock(old):
                shutil.rmtree(left.with_suffix(".part"), ignore_errors=True)
                left.unlink()
    lock = _new_lock(directory)  # not on the new directory itself, which others may lock
    part = Path(lock.name).with_suffix(".part")
    try:
        part.mkdir()
        yield part
        if replace:
            shutil.rmtree(directory, ignore_errors=True)
        part.rename(directory)
        sync_directory(directory.parent)
    finally:
        shutil.rmtree(part, ignore_errors=True)
        Path(lock.name).unlink(missing_ok=True)
        lock.close()


def _new_lock(directory: Path) -> IO[bytes]:
    """The lock of somebody who makes this directory; another one if it was just taken for a leftover."""
    while True:
        name = f".{directory.name}.{secrets.token_hex(4)}.lock"
        lock = open(directory.with_name(name), "xb")  # noqa: SIM115  (closed by `new_directory`)
        ours = True
        with suppress(OSError):  # not every file system has locks
            ours = try_lock(lock)
        if ours and Path(lock.name).exists():
            return lock
        lock.close()


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Let one thread or process at a time go on, where the file system has locks."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)  # which unlocks it


def try_lock(file: int | IO[Any], *, wait: bool = False) -> bool:
    """Lock an open file until it is closed or the process ends; False if somebody else holds it.

    wait: until they have closed it. Raises OSError where the file system has no locks.
    """
    try:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    return True


def sync(file: IO[Any]) -> None:
    """Make sure that what was written to an open file is on the disk."""
    file.flush()
    os.fsync(file.fileno())


def sync_directory(directory: Path) -> None:
    """Make names that were added, replaced or removed here survive a loss of power."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _takes_a_stream(path: Path) -> bool:
    """Whether this cannot be replaced like a file: a pipe, a device, or standard output by its name."""
    named = path.absolute()
    if named.is_relative_to("/dev/fd") or named.is_relative_to("/proc") or named == Path("/dev/stdout"):
        return True
    return path.exists() and not path.is_file() and not path.is_dir()


def _place(path: Path) -> Path:
    """Where a path leads to, links followed, if a file can be written there. Raises OSError."""
    place = Path(os.path.realpath(path))
    if place.is_symlink():  # a loop
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    if place.is_dir():
        raise OSError(errno.EISDIR, os.strerror(errno.EISDIR))
    if place.exists() and not os.access(place, os.W_OK):  # replacing would not ask
        raise OSError(errno.EACCES, os.strerror(errno.EACCES))
    return place


@contextmanager
def _for_people(path: Path, after: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise KsterError(f"{path}: cannot be written ({error.strerror or error}); {after}") from error


@contextmanager
def _text(raw: IO[bytes], suffix: str) -> Iterator[TextIO]:
    """A text file over `raw`, which gets what was written even after an error."""
    with _compressed(raw, suffix) as packed:
        text = io.TextIOWrapper(packed, encoding="utf-8", newline="")
        try:
            yield text
            text.flush()
        finally:
            text.detach()  # else dropping the wrapper would close what is still to be synced


@contextmanager
def _compressed(raw: IO[bytes], suffix: str) -> Iterator[IO[bytes]]:
    if suffix == ".gz":  # no name and no time inside: the same pairs give the same bytes
        with gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0) as packed:
            yield cast(IO[bytes], packed)
    elif suffix == ".xz":
        with lzma.LZMAFile(raw, "wb") as packed:
            yield cast(IO[bytes], packed)
    else:
        yield raw
