"""Locks on a memory's files, which the operating system releases when their holder dies, however it dies.

`WriterLock` lets one writer in at a time, across threads and processes. A directory that somebody owns while
a lock in it is held can be told from what its dead owner has left behind, which others delete.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedWriter
from pathlib import Path

from kster.errors import MemoryBusy
from kster.files import try_lock
from kster.memory.store.failures import for_people

POLL_SECONDS = 0.02
ATTEMPTS = 100  # some file systems, such as /proc, never let anybody make a directory


class WriterLock:
    """A lock on a memory."""

    def __init__(self, path: Path, timeout: float) -> None:
        self._path = path
        self._timeout = timeout
        self._threads = threading.Lock()

    @contextmanager
    def held(self, patience: float = 0.0) -> Iterator[None]:
        """Wait for the lock, at most `timeout` seconds, or `patience` seconds if that is longer."""
        seconds = max(self._timeout, patience)
        deadline = time.monotonic() + seconds
        if not self._threads.acquire(timeout=seconds):
            raise self._busy(seconds)
        try:
            with for_people(self._path.parent, "nothing was changed"):
                file = open(self._path, "ab")  # noqa: SIM115  (closed below)
            with file:
                while not self._try_lock(file.fileno()):
                    if time.monotonic() >= deadline:
                        raise self._busy(seconds)
                    time.sleep(POLL_SECONDS)
                yield  # closing the file releases the lock
        finally:
            self._threads.release()

    def _busy(self, seconds: float) -> MemoryBusy:
        return MemoryBusy(
            f"{self._path.parent}: another writer has been busy for {seconds:g} s; nothing was "
            "changed. Try again when it has finished"
        )

    def _try_lock(self, descriptor: int) -> bool:
        with for_people(self._path.parent, "nothing was changed"):  # not every file system has locks
            return try_lock(descriptor)


def own_new_directory(parent: Path, lock_name: str) -> tuple[Path, BufferedWriter]:
    """A new directory and its lock, ours until that is closed.

    Tries again if somebody who was sweeping took it for a leftover. Raises OSError.
    """
    for attempt in range(1, ATTEMPTS + 1):
        directory = parent / f"{os.getpid()}-{secrets.token_hex(4)}"
        try:
            directory.mkdir()
            lock = open(directory / lock_name, "xb")  # noqa: SIM115  (kept open as long as it is ours)
        except (FileExistsError, FileNotFoundError):
            if attempt == ATTEMPTS or not parent.is_dir():
                raise
            continue
        if try_lock(lock) and (directory / lock_name).exists():
            return directory, lock
        lock.close()
    raise FileNotFoundError(errno.ENOENT, "new directories vanish here", str(parent))


def sweep(parent: Path, lock_name: str) -> None:
    """Delete what dead owners left. Never raises: what cannot be deleted stays for the next one."""
    try:
        left = list(parent.iterdir())
    except OSError:
        return
    for directory in left:
        try:
            with open(directory / lock_name, "r+b") as lock:
                if try_lock(lock):  # else its owner lives
                    shutil.rmtree(directory, ignore_errors=True)
        except FileNotFoundError:  # died before it had a lock, or while it was being deleted
            shutil.rmtree(directory, ignore_errors=True)
        except OSError:
            continue
