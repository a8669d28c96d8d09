"""/v1: imports and fits in the background, and watching them."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, File, Form, Query, Response, UploadFile
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import StreamingResponse

from kster.limits import LARGEST_K
from kster.server.api.context import Reader, TheEngine, Writer
from kster.server.api.transfers import import_upload, shown_name, suffix_of
from kster.server.api.v1_memories import PairName, chosen_pair
from kster.server.auth.access import NotFound, Principal
from kster.server.work.engine import Engine
from kster.server.work.jobs import FINISHED, Job
from kster.smoothing import FitSettings

router = APIRouter(prefix="/v1", tags=["jobs"])

FIT_REPORT = (
    "dev",
    "general",
    "train_tokens",
    "train_segments",
    "memory_entries",
    "metric",
    "seconds",
    "curve",
    "finished",
)
Wait = Annotated[bool, Query(description="Answer when it is done, at the latest after a minute.")]
LOOK_EVERY = 0.2  # seconds between two looks at a job that is being watched


class FitRequest(BaseModel):
    """How to fit; what is left out has the defaults of `kster fit`."""

    model_config = ConfigDict(extra="forbid")

    pair: str | None = None
    kernel: str | None = None
    k: int | None = Field(None, ge=1, le=LARGEST_K)
    steps: int | None = Field(None, ge=1, le=100_000)
    max_tokens: int | None = Field(None, ge=1, le=10_000_000)
    learning_rate: float | None = Field(None, gt=0, le=1)
    metric: int | None = Field(None, ge=0, le=4_096)
    seed: int | None = None


@router.post("/memories/{id}/import", status_code=202)
async def import_file(
    id: int,
    engine: TheEngine,
    principal: Writer,
    response: Response,
    file: Annotated[UploadFile, File(description=".tmx .xlf .xliff .po .tsv .csv, also with .gz or .xz")],
    pair: Annotated[str | None, Form()] = None,
    format: Annotated[str | None, Form()] = None,
    wait: Wait = False,
) -> dict[str, Any]:
    """Add the pairs of a file: all usable ones or, if the file is broken, none."""

    def accept() -> Job:
        memory = engine.catalogue.get(principal, id, to_change=True)
        served = chosen_pair(engine, memory, pair)
        suffix = suffix_of(shown_name(file), format)
        return import_upload(engine, principal, memory, file, suffix, lambda _: served)

    return await _accepted(engine, accept, wait, response)


@router.post("/memories/{id}/fit", status_code=202)
async def fit_memory(
    id: int,
    engine: TheEngine,
    principal: Writer,
    response: Response,
    wanted: FitRequest | None = None,
    wait: Wait = False,
) -> dict[str, Any]:
    """Learn how much to believe this memory's examples; an earlier fit stays in use until then."""
    wanted = wanted or FitRequest.model_validate({})
    settings = wanted.model_dump(exclude={"pair"}, exclude_none=True)
    FitSettings(**settings)  # so that a mistake is reported now, not by a failed job

    def accept() -> Job:
        memory = engine.catalogue.get(principal, id, to_change=True)
        request = {"pair": chosen_pair(engine, memory, wanted.pair).pair, "settings": settings}
        return engine.jobs.submit("fit", id, principal.key_id, request)

    return await _accepted(engine, accept, wait, response)


async def _accepted(
    engine: Engine, accept: Callable[[], Job], wait: bool, response: Response
) -> dict[str, Any]:
    """Answer with a new job: 200 if it was waited for and is finished, else 202."""
    job = await asyncio.to_thread(accept)
    until = time.monotonic() + engine.settings.timeout_seconds
    while wait and job.state not in FINISHED and time.monotonic() < until:
        if engine.jobs.stopping.is_set():
            break
        await asyncio.sleep(LOOK_EVERY / 4)
    if wait and job.state in FINISHED:
        response.status_code = 200
    return job_json(engine, job)


@router.get("/memories/{id}/fit")
def show_fit(id: int, engine: TheEngine, principal: Reader, pair: PairName = None) -> dict[str, Any] | None:
    """The report of the fit in use, with how the memory has changed since; null if there is none."""
    memory = engine.catalogue.get(principal, id)
    part = engine.catalogue.part(memory, chosen_pair(engine, memory, pair))
    info = part.info() if part is not None else None
    if info is None or info.fit is None:
        return None
    shown = {name: info.fit[name] for name in FIT_REPORT if name in info.fit}
    means: dict[str, Any] = {
        name: info.fit[name]["mean"] for name in ("bandwidth", "mixing_weight") if name in info.fit
    }
    return {**shown, **means, "since": asdict(info.since_fit) if info.since_fit else None}


@router.get("/memories/{id}/jobs")
def list_jobs(id: int, engine: TheEngine, principal: Reader) -> list[dict[str, Any]]:
    """The latest jobs of a memory, newest first."""
    memory = engine.catalogue.get(principal, id)
    return [job_json(engine, job) for job in engine.jobs.of_memory(memory.id)]


@router.get("/jobs/{job}")
def show_job(job: str, engine: TheEngine, principal: Reader) -> dict[str, Any]:
    return job_json(engine, visible_job(engine, principal, job))


@router.delete("/jobs/{job}")
def cancel_job(job: str, engine: TheEngine, principal: Writer) -> dict[str, Any]:
    """Cancel a job. A cancelled import has added nothing; an earlier fit stays in use."""
    unwanted = visible_job(engine, principal, job)
    engine.jobs.cancel(unwanted)
    return job_json(engine, unwanted)


@router.get("/jobs/{job}/events")
def watch_job(job: str, engine: TheEngine, principal: Reader) -> StreamingResponse:
    """Server-sent events: the job as JSON whenever it changes, until it is finished."""
    watched = visible_job(engine, principal, job)
    headers = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
    return StreamingResponse(_events(engine, watched), media_type="text/event-stream", headers=headers)


async def _events(engine: Engine, job: Job) -> AsyncIterator[str]:
    seen = -1
    while not engine.jobs.stopping.is_set():
        if job.version != seen:
            seen = job.version
            yield f"data: {json.dumps(job_json(engine, job), ensure_ascii=False)}\n\n"
        if job.state in FINISHED and job.version == seen:
            return
        await asyncio.sleep(LOOK_EVERY)


def visible_job(engine: Engine, principal: Principal, id: str) -> Job:
    job = engine.jobs.get(id)
    if job is None or not (principal.may("admin") or job.owner == principal.key_id):
        raise NotFound(f"no job {id}")
    return job


def job_json(engine: Engine, job: Job) -> dict[str, Any]:
    shown = job.to_json()
    if job.error is not None:
        shown["error"] = engine.catalogue.forget_paths(job.error)
    return shown
