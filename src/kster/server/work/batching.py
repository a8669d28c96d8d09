"""Requests of many clients joined into batches: one thread for a model, so that the event loop never waits.

While a batch is translated the next one gathers by itself; a request that finds the thread idle waits a
few milliseconds for company. Texts take turns in the order of arrival, but the further into its request a
text is, the later it counts as arrived: a long request lets short ones pass, but not for ever. The text whose
turn it is decides which kind of work comes next. It is joined by others of its request and by those that have
arrived by now, those of similar length first, so that little is padded.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from itertools import accumulate, count
from typing import Generic, TypeVar

Work = TypeVar("Work", bound=Hashable)  # what texts must have in common to be translated together
Result = TypeVar("Result")

SENTENCE = 64  # characters: longer ones fill a batch sooner, so that none takes much longer than others
CHARACTERS_A_SECOND = 100.0  # at which a long request counts as arriving: slower than it is translated


@dataclass(slots=True)
class _Unit(Generic[Result]):
    text: str
    request: int
    arrived: float
    due: float
    future: Future[Result] = field(default_factory=Future)


class Batcher(Generic[Work, Result]):
    """run: translates texts of one kind of work. on_batch: told the size of every batch."""

    def __init__(
        self,
        run: Callable[[Work, list[str]], Sequence[Result]],
        *,
        window: float,
        largest: int,
        name: str = "batcher",
        on_batch: Callable[[int], None] | None = None,
    ) -> None:
        self._run, self._window, self._largest = run, window, largest
        self._on_batch = on_batch
        self._pending: dict[Work, list[_Unit[Result]]] = {}
        self._requests = count()
        self._changed = threading.Condition()
        self._closing = False
        self._thread = threading.Thread(target=self._loop, name=name, daemon=True)
        self._thread.start()

    def submit(self, work: Work, texts: Sequence[str]) -> list[Future[Result]]:
        """One future for each text; cancelling one takes the text out of the queue."""
        request, now = next(self._requests), time.monotonic()
        before = accumulate(map(len, texts), initial=0)
        units: list[_Unit[Result]] = [
            _Unit(text, request, now, now + characters / CHARACTERS_A_SECOND)
            for text, characters in zip(texts, before, strict=False)
        ]
        with self._changed:
            if self._closing:
                raise RuntimeError("the batcher is closed")
            if units:
                pending = self._pending.setdefault(work, [])
                pending += units
                pending.sort(key=lambda unit: unit.due)
                self._changed.notify()
        return [unit.future for unit in units]

    @property
    def waiting(self) -> int:
        with self._changed:
            return sum(map(len, self._pending.values()))

    @property
    def waiting_requests(self) -> int:
        """How many have texts that wait."""
        with self._changed:
            return len({unit.request for units in self._pending.values() for unit in units})

    def close(self) -> None:
        """Finish what was submitted, then stop."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join()

    def _loop(self) -> None:
        while True:
            with self._changed:
                while not self._pending and not self._closing:
                    self._changed.wait()
                if not self._pending:
                    return
                self._wait_for_company()
                work, units = self._take()
            # From here on a client can no longer withdraw; those who have are left out.
            running = [unit for unit in units if unit.future.set_running_or_notify_cancel()]
            if running:
                if self._on_batch is not None:
                    self._on_batch(len(running))
                self._translate(work, running)

    def _wait_for_company(self) -> None:
        """With the lock held, until the oldest text has waited for the window or a batch is full."""
        oldest = min(unit.arrived for units in self._pending.values() for unit in units)
        while not self._closing and max(map(len, self._pending.values())) < self._largest:
            left = oldest + self._window - time.monotonic()
            if left <= 0:
                return
            self._changed.wait(left)

    def _take(self) -> tuple[Work, list[_Unit[Result]]]:
        """With the lock held: the text whose turn it is, and those that join it."""
        work = min(self._pending, key=lambda kind: self._pending[kind][0].due)
        pending, now = self._pending[work], time.monotonic()
        first = pending[0]
        company = [unit for unit in pending[1:] if unit.due <= now or unit.request == first.request]
        company.sort(key=lambda unit: abs(len(unit.text) - len(first.text)))
        lengths = accumulate((len(unit.text) for unit in company), initial=len(first.text))
        room = sum(length <= self._largest * SENTENCE for length in lengths)  # first included
        taken = [first, *company[: min(self._largest, max(room, 1)) - 1]]
        chosen = set(map(id, taken))
        left = [unit for unit in pending if id(unit) not in chosen]
        if left:
            self._pending[work] = left
        else:
            del self._pending[work]
        return work, taken

    def _translate(self, work: Work, units: list[_Unit[Result]]) -> None:
        try:
            results = self._run(work, [unit.text for unit in units])
        except Exception:
            # One text must not spoil the others': each on its own, and what fails again is that one's.
            for unit in units:
                try:
                    (result,) = self._run(work, [unit.text])
                except Exception as error:
                    unit.future.set_exception(error)
                else:
                    unit.future.set_result(result)
            return
        for unit, result in zip(units, results, strict=True):
            unit.future.set_result(result)
