"""The jobs of a cluster, done in one place; their heavy parts are Ray tasks, wherever there is room."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from kster.cluster.calls import JOBS, NAMESPACE, SHARD, ask_about, ask_of_parts, change, got, node_of
from kster.cluster.cluster_engine import ClusterEngine
from kster.cluster.cluster_memory import ClusterMemory
from kster.cluster.importing import NamedModel, model_of, reference_of
from kster.cluster.wire import Part
from kster.errors import KsterError
from kster.memory import KeyMaker, Memory
from kster.server.auth.access import LOCAL
from kster.server.settings import ServerSettings
from kster.server.work.import_and_fit import JobRunners, fit_json
from kster.server.work.jobs import FINISHED, Cancelled, Job, Jobs, Stopped
from kster.smoothing import FitSettings, fit
from kster.smoothing.fitting.optimisation import CurvePoint


class JobService:
    """Takes uploads and jobs, and says how these are."""

    def __init__(self, settings: ServerSettings, shared: Sequence[int]) -> None:
        self._engine = JobsEngine(settings, shared)
        self._jobs, self._uploads = self._engine.jobs, self._engine.uploads
        self.get, self.of_memory = self._jobs.get, self._jobs.of_memory

    def receive(self, job: str, name: str, offset: int, piece: bytes) -> None:
        """A piece of an upload; the same piece may come twice."""
        place = self._uploads / Path(job).name
        place.mkdir(exist_ok=True)
        with (place / Path(name).name).open("r+b" if offset else "wb") as file:
            file.seek(offset)
            file.write(piece)

    def submit(self, kind: str, memory: int, owner: int | None, request: dict[str, Any], id: str) -> Job:
        return self._jobs.get(id) or self._jobs.submit(kind, memory, owner, request, id)

    def cancel(self, id: str) -> Job:
        job = self._jobs.get(id)
        if job is None:
            raise KsterError(f"no job {id}")
        self._jobs.cancel(job)
        if job.state in FINISHED:
            shutil.rmtree(self._uploads / job.id, ignore_errors=True)
        return job

    def report(self, id: str, phase: str, done: int, total: int | None) -> bool:
        """From a task: how far it is; returns whether it is to go on."""
        job = self._jobs.get(id)
        if job is None:
            return False
        try:
            self._jobs.report(job, phase, done, total)
        except (Stopped, Cancelled):
            return False
        return True

    def add_point(self, id: str, point: dict[str, Any]) -> None:
        """From a fit: another point of its learning curve."""
        if (job := self._jobs.get(id)) is not None:
            job.points.append(point)
            job.version += 1


class JobsEngine(ClusterEngine):
    """Has the jobs here."""

    def _start_jobs(self) -> Jobs:
        jobs = Jobs(self.database)
        runners = ClusterJobRunners(self.catalogue, jobs, self.uploads, self.model_by_pair)
        jobs.start({"import": runners.run_import, "fit": runners.run_fit}, runners.discard_upload)
        return jobs


class ClusterJobRunners(JobRunners):
    """Fits run where the memory lies."""

    def _fit(self, job: Job) -> dict[str, Any]:
        served = self._model_by_pair(job.request["pair"])
        memory = self._catalogue.part(self._catalogue.get(LOCAL, job.memory), served)
        if not isinstance(memory, ClusterMemory):
            raise KsterError(
                f"memory {job.memory} has no examples for {served.pair} yet; add some, then fit it"
            )
        job.points.clear()
        reference = reference_of(served.model)
        part = _largest(memory.parts)
        where = NodeAffinitySchedulingStrategy(node_of(SHARD + part.shard), soft=False)
        on_gpu = isinstance(reference, NamedModel) and reference.gpu
        task = fit_part.options(scheduling_strategy=where, num_gpus=1 if on_gpu else 0)
        directory = ask_about(part, "place")
        result = got(task.remote(reference, directory, job.request.get("settings", {}), job.id))
        if result is None:
            self._jobs.report(job, "stopped", 0)  # raises Stopped or Cancelled
            raise KsterError("the fit was stopped")
        home = memory.parts[0]
        if part != home:
            files = ask_about(part, "smoother")
            change(SHARD + home.shard, "put_smoother", home.directory, files)
        job.points[:] = result["curve"]
        return result


def _largest(parts: Sequence[Part]) -> Part:
    """A memory that is divided is fitted by its largest part: a fit takes a sample anyway."""
    facts = ask_of_parts(parts, "facts")
    return max(parts, key=lambda part: facts[part].entries)


@ray.remote(num_cpus=1, max_retries=1)
def fit_part(
    reference: NamedModel | KeyMaker, directory: str, settings: dict[str, Any], job: str
) -> dict[str, Any] | None:
    """Fit the memory in a directory of this machine; None when it was stopped."""
    jobs = ray.get_actor(JOBS, namespace=NAMESPACE)

    def on_progress(phase: str, done: int, total: int) -> None:
        if not ray.get(jobs.change.remote("report", job, phase, done, total)):
            raise Cancelled

    def on_point(point: CurvePoint) -> None:
        jobs.change.remote("add_point", job, asdict(point))

    model: Any = model_of(reference)
    with Memory.open(directory, model) as memory:
        try:
            return fit_json(
                fit(model, memory, FitSettings(**settings), progress=on_progress, on_point=on_point)
            )
        except Cancelled:
            return None
