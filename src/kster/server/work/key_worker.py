"""Makes the keys of imported examples in the background.

An import is done when its text is in the memory. Translations use it from then on, and make the keys they
need at once. This thread makes the rest, piece by piece, in turns with translations.
"""

from __future__ import annotations

import logging
import threading
import time

from kster.memory import Memory
from kster.server.work.catalogue import Catalogue
from kster.server.work.compute_queue import ComputeQueue

SEGMENTS_A_TURN = 32  # about as long as a translation
LOOK_EVERY = 5.0  # seconds; another program may have imported
STOP_SECONDS = 5.0
PAUSE_AFTER_FAILURE = 60.0  # seconds: a full disk, a writer that takes long

log = logging.getLogger("kster.server")


class KeyWorker:
    """The one thread of a server that does so."""

    def __init__(self, catalogue: Catalogue, compute: ComputeQueue) -> None:
        self._catalogue, self._compute = catalogue, compute
        self._not_before: dict[Memory, float] = {}  # after a failure
        self._news, self._stopping = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="keys", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """Say that there is something to do."""
        self._news.set()

    def stop(self) -> bool:
        """Returns whether it has ended; a piece that takes longer ends with the process."""
        self._stopping.set()
        self._news.set()
        self._thread.join(STOP_SECONDS)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._news.clear()
            made = [self._make_some(memory) for memory in self._catalogue.in_use()]
            if not any(made):
                self._news.wait(LOOK_EVERY)

    def _make_some(self, memory: Memory) -> bool:
        """Returns whether this memory lacked keys, and some were made."""
        if self._stopping.is_set() or time.monotonic() < self._not_before.get(memory, 0.0):
            return False
        try:
            if not len(memory.ids_without_keys()):
                return False
            with self._compute:
                return memory.make_keys(SEGMENTS_A_TURN, at_once=SEGMENTS_A_TURN) > 0
        except Exception as error:  # also of a memory that was just deleted or closed
            log.warning(
                "keys could not be made", extra={"memory": str(memory.directory), "reason": str(error)}
            )
            self._not_before[memory] = time.monotonic() + PAUSE_AFTER_FAILURE
            return False
