"""What the two kinds of jobs do: import a file into a memory, and fit a memory."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from kster.errors import KsterError
from kster.formats import Pair, Rejection, read_pairs
from kster.server.auth.access import LOCAL
from kster.server.errors import is_disk_full
from kster.server.work.catalogue import Catalogue
from kster.server.work.jobs import Cancelled, Job, Jobs, Stopped
from kster.server.work.served_model import ServedModel
from kster.smoothing import FitReport, FitSettings, fit
from kster.smoothing.fitting.optimisation import CurvePoint

MAX_UNITS = 5_000_000  # of one file: a small compressed one may hold any number
REPORTED = 1_000  # rejections kept in a job's report; all are counted
HOPELESS = 10_000  # units without a single pair among them, after which a file is given up
COUNTED_AT_ONCE = 500


class JobRunners:
    """Does a server's jobs. model_by_pair: finds the served model of a pair such as "en-de"."""

    def __init__(
        self,
        catalogue: Catalogue,
        jobs: Jobs,
        uploads: Path,
        model_by_pair: Callable[[str], ServedModel],
        when_imported: Callable[[], None] = lambda: None,
    ) -> None:
        """when_imported: called when there are examples whose keys have yet to be made."""
        self._catalogue, self._jobs = catalogue, jobs
        self._uploads, self._model_by_pair, self._when_imported = uploads, model_by_pair, when_imported

    def run_import(self, job: Job) -> dict[str, Any]:
        """Read the uploaded file twice: to check and count it, then to import it. Keys are made later."""
        file = self._uploads / job.id / job.request["file"]
        try:
            with self._for_its_memory(job):
                return self._import(job, file)
        except KsterError as error:
            if is_disk_full(error):
                raise  # it is done when there is room
            message = str(error).replace(str(file), job.request["name"])
            if self._catalogue.exists(job.memory):
                message = f"{message}; nothing was imported"
            raise KsterError(message) from error

    def discard_upload(self, job: Job) -> None:
        """Not before the job's end is written down: until then another server may have to do it again."""
        shutil.rmtree(self._uploads / job.id, ignore_errors=True)

    def _import(self, job: Job, file: Path) -> dict[str, Any]:
        name = job.request["name"]
        served = self._model_by_pair(job.request["pair"])
        target = self._catalogue.part(self._catalogue.get(LOCAL, job.memory), served, create=True)
        assert target is not None
        kept: list[Rejection] = []
        rejected = 0

        def pairs() -> Iterator[Pair]:
            nonlocal rejected
            kept.clear()
            rejected = 0
            for number, item in enumerate(
                read_pairs(file, served.source, served.target, format=job.request["format"], drafts=True), 1
            ):
                if number > MAX_UNITS:
                    raise KsterError(f"{name}: more than {MAX_UNITS:,} units; split it")
                if isinstance(item, Pair):
                    yield item
                    continue
                rejected += 1
                if len(kept) < REPORTED:
                    kept.append(Rejection(name, item.line, item.unit, item.reason))
                if rejected == number and rejected >= HOPELESS:
                    raise KsterError(f"{name}: {HOPELESS:,} units and none is usable ({item.reason})")
                if rejected % COUNTED_AT_ONCE == 0:
                    self._report(job, job.phase or "reading", job.done)

        total = 0
        self._report(job, "reading", 0)
        for total, _ in enumerate(pairs(), 1):
            if total % COUNTED_AT_ONCE == 0:
                self._report(job, "reading", 0, total)
        self._report(job, "learning", 0, total)
        report = target.import_pairs(
            pairs(),
            name,
            lambda done: self._report(job, "learning", done, total),
            keys="later",
            author=job.request.get("author"),
        )
        self._when_imported()
        return {
            "added": report.added,
            "drafts": report.drafts,
            "approved": len(report.approved),
            "duplicates": report.duplicates,
            "rejected": rejected + len(report.rejected),
            "rejections": [asdict(rejection) for rejection in (kept + report.rejected)[:REPORTED]],
        }

    def run_fit(self, job: Job) -> dict[str, Any]:
        with self._for_its_memory(job):
            return self._fit(job)

    def _fit(self, job: Job) -> dict[str, Any]:
        served = self._model_by_pair(job.request["pair"])
        memory = self._catalogue.part(self._catalogue.get(LOCAL, job.memory), served)
        if memory is None:
            raise KsterError(
                f"memory {job.memory} has no examples for {served.pair} yet; add some, then fit it"
            )
        settings = FitSettings(**job.request.get("settings", {}))
        job.points.clear()

        def on_progress(phase: str, done: int, total: int) -> None:
            self._report(job, phase, done, total)

        def on_point(point: CurvePoint) -> None:
            job.points.append(asdict(point))
            job.version += 1

        result = fit_json(fit(served.model, memory, settings, progress=on_progress, on_point=on_point))
        job.points[:] = result["curve"]
        return result

    @contextmanager
    def _for_its_memory(self, job: Job) -> Iterator[None]:
        """If its memory is deleted while a job runs, report that, however the job then fails."""
        try:
            yield
            self._require_memory(job)
        except (Stopped, Cancelled):
            raise
        except Exception as error:
            try:
                self._require_memory(job)
            except KsterError as reason:
                raise reason from None
            raise error

    def _report(self, job: Job, phase: str, done: int, total: int | None = None) -> None:
        """Raises if the job has to end: its memory is gone, it was cancelled, or the server stops."""
        self._require_memory(job)
        self._jobs.report(job, phase, done, total)

    def _require_memory(self, job: Job) -> None:
        if not self._catalogue.exists(job.memory):
            raise KsterError("the memory was deleted")


def fit_json(report: FitReport) -> dict[str, Any]:
    """The result of a fit, as its job reports it."""
    told = ("dev", "train_tokens", "train_segments", "metric", "seconds", "curve")
    return {name: value for name, value in report.to_json().items() if name in told}
