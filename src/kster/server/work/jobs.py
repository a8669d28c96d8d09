"""Work that takes longer than a request: imports and fits, in the background, one of each kind at a time.

A job that was accepted is done, also when the server is stopped in between: it is written down before it
is acknowledged, and starts anew with the next server. Both kinds can: an import changes nothing until it
is complete, and a fit replaces the earlier one when it is done.
"""

from __future__ import annotations

import json
import logging
import queue
import secrets
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from kster.errors import KsterError
from kster.server.database import ServerDatabase, now
from kster.server.errors import TooMany

log = logging.getLogger("kster.server")

FINISHED = ("done", "failed")
MAX_UNFINISHED = 50  # jobs of one client; each may have a large file
REMEMBERED = 1_000  # finished jobs kept at hand; the others are in the database


class Stopped(Exception):
    """The server is shutting down; the job is left for the next one."""


@dataclass
class Job:
    """One import or fit; `version` grows with every change, so that watchers can tell."""

    id: str
    kind: str
    memory: int
    owner: int | None
    request: dict[str, Any]
    created: str
    state: str = "waiting"  # waiting, running, done, failed
    phase: str | None = None
    done: int = 0
    total: int | None = None
    points: list[dict[str, Any]] = field(default_factory=list)  # a fit's learning curve
    result: dict[str, Any] | None = None
    error: str | None = None
    finished: str | None = None
    version: int = 0

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
    """runners: for each kind, the function that does it; what it returns is the job's result."""

    def __init__(self, database: ServerDatabase, runners: dict[str, Callable[[Job], dict[str, Any]]]) -> None:
        self._database = database
        self._runners = runners
        self._jobs: dict[str, Job] = {}
        self._queues: dict[str, queue.SimpleQueue[Job | None]] = {k: queue.SimpleQueue() for k in runners}
        self._threads = [
            threading.Thread(target=self._loop, args=(kind,), name=f"{kind} jobs", daemon=True)
            for kind in runners
        ]
        self.stopping = threading.Event()

    def start(self) -> None:
        """Take up what an earlier server did not finish, then wait for more."""
        for row in self._database.all("SELECT * FROM jobs WHERE state = 'waiting' ORDER BY created, rowid"):
            job = _job(row)
            self._jobs[job.id] = job
            self._queues[job.kind].put(job)
        for thread in self._threads:
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

    def of_memory(self, memory: int) -> list[Job]:
        rows = self._database.all(
            "SELECT id FROM jobs WHERE memory = ? ORDER BY created DESC, rowid DESC LIMIT 50", (memory,)
        )
        return [job for row in rows if (job := self.get(row["id"])) is not None]

    def stop(self) -> None:
        """Running jobs stop at their next report of progress and start anew with the next server."""
        self.stopping.set()
        for waiting in self._queues.values():
            waiting.put(None)
        for thread in self._threads:
            if thread.is_alive():
                thread.join()

    def report(self, job: Job, phase: str, done: int, total: int | None = None) -> None:
        """Called by runners. Raises Stopped when the server is shutting down."""
        if self.stopping.is_set():
            raise Stopped
        job.phase, job.done = phase, done
        job.total = total if total is not None else job.total
        job.version += 1

    def _loop(self, kind: str) -> None:
        while True:
            job = self._queues[kind].get()
            if job is None or self.stopping.is_set():
                return
            self._run(job)

    def _run(self, job: Job) -> None:
        job.state = "running"
        job.version += 1
        try:
            job.result = self._runners[job.kind](job)
            job.state = "done"
        except Stopped:
            job.state = "waiting"
            return
        except KsterError as error:
            job.state, job.error = "failed", str(error)
        except Exception as error:
            log.error("job failed", exc_info=error, extra={"job": job.id})
            job.state, job.error = "failed", f"internal error (job {job.id})"
        job.finished = now()
        self._database.change(
            "UPDATE jobs SET state = ?, result = ?, error = ?, finished = ? WHERE id = ?",
            (job.state, json.dumps(job.result, ensure_ascii=False), job.error, job.finished, job.id),
        )
        job.version += 1
        finished = [old.id for old in list(self._jobs.values()) if old.state in FINISHED]
        for id in finished[:-REMEMBERED]:
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
