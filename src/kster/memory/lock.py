"""One writer at a time, across threads and processes."""

from __future__ import annotations

import fcntl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kster.errors import KsterError

POLL_SECONDS = 0.02


class WriterLock:
    """A lock on a memory. The operating system releases it when its holder dies, however it dies."""

    def __init__(self, path: Path, timeout: float) -> None:
        self._path = path
        self._timeout = timeout
        self._threads = threading.Lock()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Wait for the lock, at most `timeout` seconds."""
        deadline = time.monotonic() + self._timeout
        if not self._threads.acquire(timeout=self._timeout):
            raise self._busy()
        try:
            with open(self._path, "ab") as file:
                while not _try_lock(file.fileno()):
                    if time.monotonic() >= deadline:
                        raise self._busy()
                    time.sleep(POLL_SECONDS)
                yield  # closing the file releases the lock
        finally:
            self._threads.release()

    def _busy(self) -> KsterError:
        return KsterError(
            f"{self._path.parent}: another writer has been busy for {self._timeout:g} s; nothing was "
            "changed. Try again when it has finished"
        )


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
