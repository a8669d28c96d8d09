"""What the two kinds of jobs do: import a file into a memory, and fit a memory."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kster.errors import KsterError
from kster.formats import Pair, Rejection, read_pairs
from kster.server.auth.access import LOCAL
from kster.server.work.jobs import Job, Stopped
from kster.smoothing import FitSettings, fit
from kster.smoothing.fitting.metric_fit import steps_of
from kster.smoothing.fitting.optimisation import CurvePoint

if TYPE_CHECKING:
    from kster.server.work.engine import Engine

MAX_UNITS = 5_000_000  # of one file: a small compressed one may hold any number
REPORTED = 1_000  # rejections kept in a job's report; all are counted
COUNTED_AT_ONCE = 500
PAIRS_AT_ONCE = 16  # between two reports of progress, and two turns


def run_import(engine: Engine, job: Job) -> dict[str, Any]:
    with _for_its_memory(engine, job):
        return _import(engine, job)


def run_fit(engine: Engine, job: Job) -> dict[str, Any]:
    with _for_its_memory(engine, job):
        return _fit(engine, job)


def _import(engine: Engine, job: Job) -> dict[str, Any]:
    """Read the uploaded file twice, to know how long it is and that it is whole, then to learn from it."""
    request = job.request
    upload = engine.uploads / job.id
    file = upload / request["file"]
    try:
        served = engine.model_by_pair(request["pair"])
        target = engine.catalogue.part(engine.catalogue.get(LOCAL, job.memory), served, create=True)
        assert target is not None

        def pairs() -> Iterator[Pair | Rejection]:
            for item in read_pairs(file, served.source, served.target, format=request["format"]):
                if isinstance(item, Rejection):
                    item = Rejection(request["name"], item.line, item.unit, item.reason)
                yield item

        total = 0
        for total, _ in enumerate(pairs(), 1):
            if total % COUNTED_AT_ONCE == 0:
                _report(engine, job, "reading", 0, total)
            if total > MAX_UNITS:
                raise KsterError(f"{request['name']}: more than {MAX_UNITS:,} units; divide it")
        _report(engine, job, "learning", 0, total)

        with engine.turns.by_pieces() as let_others:

            def progress(done: int) -> None:
                _report(engine, job, "learning", done, total)
                let_others(done < total)  # what comes after the last pair is no computing

            report = target.import_pairs(pairs(), request["name"], progress, at_once=PAIRS_AT_ONCE)
    except KsterError as error:
        _discard(upload)
        raise KsterError(f"{str(error).replace(str(file), request['name'])}; nothing was imported") from error
    _discard(upload)
    return {
        "added": report.added,
        "duplicates": report.duplicates,
        "rejected": len(report.rejected),
        "rejections": [asdict(rejection) for rejection in report.rejected[:REPORTED]],
    }


def _fit(engine: Engine, job: Job) -> dict[str, Any]:
    served = engine.model_by_pair(job.request["pair"])
    memory = engine.catalogue.part(engine.catalogue.get(LOCAL, job.memory), served)
    if memory is None:
        raise KsterError(f"memory {job.memory} has no examples for {served.pair} yet; add some, then fit it")
    settings = FitSettings(**job.request.get("settings", {}))
    totals = {"fitting": settings.steps, "measuring": steps_of(settings)}
    job.points.clear()

    def on_progress(phase: str, done: int) -> None:
        _report(engine, job, phase, done, totals.get(phase))

    def on_point(point: CurvePoint) -> None:
        job.points.append(asdict(point))
        job.version += 1

    report = fit(served.model, memory, settings, progress=on_progress, on_point=on_point)
    job.points[:] = [asdict(point) for point in report.curve]
    return {
        "dev": asdict(report.dev),
        "train_tokens": report.train_tokens,
        "train_segments": report.train_segments,
        "metric": report.metric,
        "seconds": report.seconds,
        "curve": [asdict(point) for point in report.curve],
    }


@contextmanager
def _for_its_memory(engine: Engine, job: Job) -> Iterator[None]:
    """A memory may be deleted while a job is at it, which then fails in whatever way: this is the reason."""
    try:
        yield
        _require_memory(engine, job)
    except Stopped:
        raise
    except Exception as error:
        try:
            _require_memory(engine, job)
        except KsterError as reason:
            _discard(engine.uploads / job.id)
            raise reason from error
        raise


def _report(engine: Engine, job: Job, phase: str, done: int, total: int | None = None) -> None:
    """Raises when there is nothing to go on for."""
    _require_memory(engine, job)
    engine.jobs.report(job, phase, done, total)


def _require_memory(engine: Engine, job: Job) -> None:
    if engine.database.one("SELECT 1 FROM memories WHERE id = ?", (job.memory,)) is None:
        raise KsterError("the memory was deleted")


def _discard(upload: Path) -> None:
    with suppress(OSError):
        shutil.rmtree(upload)
