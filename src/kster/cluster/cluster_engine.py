"""What is behind the APIs of a replica: its own models; memories, keys and jobs of the cluster."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Sequence
from pathlib import Path
from tempfile import mkdtemp
from typing import Any
from weakref import WeakValueDictionary

from kster.cluster.calls import JOBS, Unreachable, ask, change
from kster.cluster.catalogue_service import RemoteDatabase
from kster.cluster.cluster_catalogue import ClusterCatalogue
from kster.server.database import ServerDatabase
from kster.server.settings import ServerSettings
from kster.server.work.catalogue import Catalogue
from kster.server.work.engine import Engine
from kster.server.work.jobs import FINISHED, Job, Jobs

PIECE = 4 << 20  # bytes of an upload that travel at once
LOOK_SECONDS = 0.2  # between two looks at jobs that somebody watches


class RemoteJobs(Jobs):
    """Jobs as a replica sees them: done by one actor, and looked at from everywhere.

    `Job`s handed out here are kept up to date as long as somebody holds them.
    """

    def __init__(self, uploads: Path) -> None:
        self.stopping = threading.Event()
        self._uploads = uploads
        self._watched: WeakValueDictionary[str, Job] = WeakValueDictionary()
        threading.Thread(target=self._watch, name="watch jobs", daemon=True).start()

    def submit(
        self, kind: str, memory: int, owner: int | None, request: dict[str, Any], id: str | None = None
    ) -> Job:
        job_id = id or secrets.token_hex(8)
        if kind == "import":
            self._send(self._uploads / job_id / request["file"], job_id)
        return self._kept(change(JOBS, "submit", kind, memory, owner, request, job_id))

    def _send(self, file: Path, job: str) -> None:
        with file.open("rb") as upload:
            offset = 0
            while piece := upload.read(PIECE):
                change(JOBS, "receive", job, file.name, offset, piece)
                offset += len(piece)
            if not offset:
                change(JOBS, "receive", job, file.name, 0, b"")
        file.unlink()
        file.parent.rmdir()

    def get(self, id: str) -> Job | None:
        job = ask(JOBS, "get", id)
        return None if job is None else self._kept(job)

    def of_memory(self, memory: int) -> list[Job]:
        return [self._kept(job) for job in ask(JOBS, "of_memory", memory)]

    def cancel(self, job: Job) -> None:
        vars(job).update(vars(change(JOBS, "cancel", job.id)))

    def stop(self, seconds: float = 0.0) -> bool:
        """The actor goes on."""
        self.stopping.set()
        return True

    def _kept(self, job: Job) -> Job:
        return self._watched.setdefault(job.id, job)

    def _watch(self) -> None:
        while not self.stopping.wait(LOOK_SECONDS):
            for job in [job for job in list(self._watched.values()) if job.state not in FINISHED]:
                try:
                    now = ask(JOBS, "get", job.id)
                except Unreachable:
                    continue  # it comes back, and the job with it
                if now is not None:
                    vars(job).update(vars(now))


class ClusterEngine(Engine):
    """settings name all models; shared: ids of the memories that serve everybody."""

    def __init__(self, settings: ServerSettings, shared: Sequence[int]) -> None:
        self._shared = shared
        settings.data.mkdir(parents=True, exist_ok=True)
        super().__init__(settings.model_copy(update={"memories": []}))

    def _open_database(self) -> ServerDatabase:
        return RemoteDatabase()

    def _open_catalogue(self) -> Catalogue:
        assert isinstance(self.database, RemoteDatabase)
        return ClusterCatalogue(self.settings.data, self.database, self.models, self._shared)

    def _start_jobs(self) -> Jobs:
        self.uploads = Path(mkdtemp(prefix="kster-uploads-"))  # on their way to the jobs actor
        return RemoteJobs(self.uploads)

    def _sweep_uploads(self) -> None:
        """They are with the jobs."""
