"""One writer at a time, across threads and processes."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kster.errors import MemoryBusy
from kster.files import try_lock
from kster.memory.store.failures import for_people

POLL_SECONDS = 0.02


class WriterLock:
    """A lock on a memory. The operating system releases it when its holder dies, however it dies."""

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
