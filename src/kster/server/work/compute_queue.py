"""Who computes next: translations and jobs take turns, in the order they asked.

Both use all cores. At the same time each would slow the other down by far more than its share. In turns, a
translation waits no longer than one small piece of a job takes, and a job has the machine to itself when
nobody translates.
"""

from __future__ import annotations

import threading


class ComputeQueue:
    """A lock for the thread that asked first; `threading.Lock` mostly goes to the one that just had it."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._asked = self._served = 0

    def __enter__(self) -> None:
        with self._changed:
            mine = self._asked
            self._asked += 1
            while self._served != mine:
                self._changed.wait()

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._served += 1
            self._changed.notify_all()
