"""Work that takes longer than a request: imports and fits, in the background, one of each kind at a time.

A job that was accepted gets done even if the server is stopped: it is written down before it is acknowledged,
and starts again with the next server. Both kinds can start again: an import changes nothing until it is
complete, and a fit replaces the earlier one when it is done. A job is given up when the server has died twice
while doing it.
"""

from __future__ import annotations

import json
import logging
import queue
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from kster.errors import KsterError
from kster.server.database import ServerDatabase, now
from kster.server.errors import ApiError, TooMany, is_disk_full

log = logging.getLogger("kster.server")
T = TypeVar("T")

FINISHED = ("done", "failed", "cancelled")
MAX_UNFINISHED = 50  # jobs of one client; each may have a large file
MAX_ATTEMPTS = 2  # servers that may die while doing a job
REMEMBERED = 1_000  # finished jobs kept at hand; the others are in the database
STOP_SECONDS = 3.0  # that a job has for its next report when the server stops
ROOM_SECONDS = (1.0, 60.0)  # to wait for room on the disk, at first and at most


class Stopped(Exception):
    """The server is shutting down; the job is left for the next one."""


class Cancelled(Exception):
    """Somebody does not want the job any more."""


class AlreadyFinished(ApiError):
    status, kind = 409, "ConflictException"


@dataclass
class Job:
    """One import or fit; `version` grows with every change, so that watchers can tell."""

    id: str
    kind: str
    memory: int
    owner: int | None
    request: dict[str, Any]
    created: str
    state: str = "waiting"  # waiting, running, done, failed, cancelled
    phase: str | None = None
    done: int = 0
    total: int | None = None
    points: list[dict[str, Any]] = field(default_factory=list)  # a fit's learning curve
    result: dict[str, Any] | None = None
    error: str | None = None
    finished: str | None = None
    version: int = 0
    unwanted: bool = False  # cancelled while running: it stops at its next report

    def to_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "kind": self.kind,
            "memory": self.memory,
            "pair": self.request.get("pair"),
            "file": self.request.get("name"),
            "state": self.state,
            "phase": self.phase,
            "done": self.done,
            "total": self.total,
            "progress": self.progress,
            "curve": list(self.points),
            "result": self.result,
            "error": self.error,
            "created": self.created,
            "finished": self.finished,
        }

    @property
    def progress(self) -> float:
        """From 0 to 1."""
        if self.state == "done":
            return 1.0
        return min(0.99, self.done / self.total) if self.total else 0.0


class Jobs:
    """`start` names, for each kind, the function that does it; what it returns is the job's result.

    on_end: called with every job whose end has been written down.
    """

    def __init__(self, database: ServerDatabase) -> None:
        self._database = database
        self._on_end: Callable[[Job], None] = lambda job: None
        self._runners: dict[str, Callable[[Job], dict[str, Any]]] = {}
        self._jobs: dict[str, Job] = {}
        self._queues: dict[str, queue.SimpleQueue[Job | None]] = {}
        self._threads: list[threading.Thread] = []
        self.stopping = threading.Event()

    def start(
        self,
        runners: dict[str, Callable[[Job], dict[str, Any]]],
        on_end: Callable[[Job], None] = lambda job: None,
    ) -> None:
        """Take up what an earlier server did not finish, then wait for more."""
        self._runners, self._on_end = runners, on_end
        self._queues = {kind: queue.SimpleQueue() for kind in runners}
        for row in self._database.all("SELECT * FROM jobs WHERE state = 'waiting' ORDER BY created, rowid"):
            job = _job(row)
            self._jobs[job.id] = job
            if row["attempts"] >= MAX_ATTEMPTS:
                times = f"the server ended {row['attempts']} times while doing this"
                self._write_end(job, "failed", f"{times}; it will not be tried again")
            else:
                self._queues[job.kind].put(job)
        for kind in runners:
            thread = threading.Thread(target=self._loop, args=(kind,), name=f"{kind} jobs", daemon=True)
            self._threads.append(thread)
            thread.start()

    def submit(
        self, kind: str, memory: int, owner: int | None, request: dict[str, Any], id: str | None = None
    ) -> Job:
        """Written down when this returns. Raises TooMany when a client has many that are not finished."""
        unfinished = [j for j in list(self._jobs.values()) if j.owner == owner and j.state not in FINISHED]
        if len(unfinished) >= MAX_UNFINISHED:
            raise TooMany(f"{len(unfinished)} jobs are not finished yet; try again when some are")
        job = Job(id or secrets.token_hex(8), kind, memory, owner, request, now())
        self._database.change(
            "INSERT INTO jobs (id, kind, memory, owner, state, request, created) "
            "VALUES (?, ?, ?, ?, 'waiting', ?, ?)",
            (job.id, kind, memory, owner, json.dumps(request, ensure_ascii=False), job.created),
        )
        self._jobs[job.id] = job
        self._queues[kind].put(job)
        return job

    def get(self, id: str) -> Job | None:
        if id in self._jobs:
            return self._jobs[id]
        row = self._database.one("SELECT * FROM jobs WHERE id = ?", (id,))
        return _job(row) if row is not None else None

    def wait(self, job: Job, seconds: float) -> None:
        """Wait until it has ended, at most this long."""
        until = time.monotonic() + seconds
        while job.state not in FINISHED and time.monotonic() < until:
            time.sleep(0.02)

    def of_memory(self, memory: int) -> list[Job]:
        rows = self._database.all(
            "SELECT id FROM jobs WHERE memory = ? ORDER BY created DESC, rowid DESC LIMIT 50", (memory,)
        )
        return [job for row in rows if (job := self.get(row["id"])) is not None]

    def cancel(self, job: Job) -> None:
        """A job that runs ends at its next report of progress. Raises AlreadyFinished."""
        if job.state in FINISHED:
            raise AlreadyFinished(f"job {job.id} is {job.state} already; nothing was cancelled")
        job.unwanted = True  # a waiting one is dropped when it is taken from the queue
        if job.state == "waiting":
            self._write_end(job, "cancelled", None)

    def stop(self, seconds: float = STOP_SECONDS) -> bool:
        """Running jobs stop at their next report of progress and start again with the next server.

        Returns whether all have stopped. A job that computes for longer ends with the process; that does not
        count as a failed attempt.
        """
        self.stopping.set()
        for waiting in self._queues.values():
            waiting.put(None)
        until = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))
        left = [job for job in list(self._jobs.values()) if job.state == "running"]
        if not any(thread.is_alive() for thread in self._threads):
            return True
        for job in left:
            self._count_attempts(job, "0")
        log.info("work in progress is left for the next start", extra={"jobs": [job.id for job in left]})
        return False

    def report(self, job: Job, phase: str, done: int, total: int | None = None) -> None:
        """Called by runners. Raises Stopped when the server is shutting down, Cancelled when told to."""
        if self.stopping.is_set():
            raise Stopped
        if job.unwanted:
            raise Cancelled
        job.phase, job.done = phase, done
        job.total = total if total is not None else job.total
        job.version += 1

    def _loop(self, kind: str) -> None:
        while (job := self._queues[kind].get()) is not None and not self.stopping.is_set():
            outcome = self._insist(job, partial(self._run, job))
            if outcome is not None:
                self._insist(job, partial(self._write_end, job, *outcome))

    def _insist(self, job: Job, action: Callable[[], T]) -> T | None:
        """Try again until the disk has room for it; None when the server stops first."""
        seconds, most = ROOM_SECONDS
        while True:
            try:
                return action()
            except Exception as error:
                if not is_disk_full(error):
                    log.error("a job could not be recorded", exc_info=error, extra={"job": job.id})
                    return None
            log.error("a job waits until there is room on the disk", extra={"job": job.id})
            job.state, job.phase = "waiting", "no room"
            job.version += 1
            if self.stopping.wait(seconds):
                return None
            seconds = min(2 * seconds, most)

    def _run(self, job: Job) -> tuple[str, str | None] | None:
        """How it ended: its state and what went wrong. None when the server stops. Raises on a full disk."""
        if job.unwanted:
            return None if job.state == "cancelled" else ("cancelled", None)
        self._count_attempts(job, "attempts + 1")
        job.state = "running"
        job.version += 1
        try:
            job.result = self._runners[job.kind](job)
        except Stopped:
            job.state = "waiting"
            self._count_attempts(job, "0")
            return None
        except Cancelled:
            return "cancelled", None
        except Exception as error:
            if is_disk_full(error):
                self._count_attempts(job, "0")
                raise
            if isinstance(error, KsterError):
                return "failed", str(error)
            log.error("job failed", exc_info=error, extra={"job": job.id})
            return "failed", f"internal error (job {job.id})"
        return "done", None

    def _count_attempts(self, job: Job, value: str) -> None:
        self._database.change(f"UPDATE jobs SET attempts = {value} WHERE id = ?", (job.id,))

    def _write_end(self, job: Job, state: str, error: str | None) -> None:
        finished = now()
        self._database.change(
            "UPDATE jobs SET state = ?, result = ?, error = ?, finished = ?, attempts = 0 WHERE id = ?",
            (state, json.dumps(job.result, ensure_ascii=False), error, finished, job.id),
        )
        self._on_end(job)
        job.state, job.error, job.finished = state, error, finished
        job.version += 1
        ended = [old.id for old in list(self._jobs.values()) if old.state in FINISHED]
        for id in ended[:-REMEMBERED]:
            del self._jobs[id]


def _job(row: Any) -> Job:
    return Job(
        row["id"],
        row["kind"],
        row["memory"],
        row["owner"],
        json.loads(row["request"]),
        row["created"],
        state=row["state"],
        result=json.loads(row["result"]) if row["result"] else None,
        error=row["error"],
        finished=row["finished"],
    )
