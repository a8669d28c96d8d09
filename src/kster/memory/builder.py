"""Slow work on a search index that no search waits for."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

log = logging.getLogger(__name__)


class Builder:
    """Does one job in a thread of its own, whenever it is asked to and is not at it already.

    The thread is waited for when the program ends: what it builds is kept for the next one.
    """

    def __init__(self, job: Callable[[], None]) -> None:
        self._job = job
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._failed_at = -1

    def start(self, generation: int) -> bool:
        """generation: of the memory; once the job has failed it is not tried again before the next.

        Returns whether it is being done.
        """
        with self._lock:
            if self._failed_at == generation:
                return False
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, args=(generation,), name="kster index")
                self._thread.start()
            return True

    @property
    def busy(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def wait(self) -> None:
        """Returns when nothing is being done any more."""
        thread = self._thread
        if thread is not None:
            thread.join()

    def _run(self, generation: int) -> None:
        try:
            self._job()
        except Exception as error:  # searches go on without it
            log.warning("the search index could not be built (%s); searches are exact, and slower", error)
            self._failed_at = generation
