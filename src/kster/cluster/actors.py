"""The actors: shards, the catalogue and the jobs, as Ray runs them. Each comes back when it dies."""

from __future__ import annotations

import logging
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import ray

from kster.cluster.calls import CATALOGUE, CATALOGUE_RESOURCE, JOBS, NAMESPACE, SHARD, SHARD_RESOURCE
from kster.cluster.catalogue_service import OWNER_SECONDS, CatalogueService
from kster.cluster.shard import Shard

log = logging.getLogger("kster.cluster")

THREADS = 16  # of an actor, so that questions are answered while a change waits for another


class Actor:
    """Hands calls on to a service. Questions fail when the actor dies; changes are asked again by Ray."""

    service: Any

    @ray.method(max_task_retries=0)
    def ask(self, operation: str, *arguments: Any) -> Any:
        return getattr(self.service, operation)(*arguments)

    @ray.method(max_task_retries=-1)
    def change(self, operation: str, *arguments: Any) -> Any:
        return getattr(self.service, operation)(*arguments)

    @ray.method(max_task_retries=0)
    def process(self) -> tuple[int, str]:
        """The process and node that it runs on."""
        return os.getpid(), ray.get_runtime_context().get_node_id()


@ray.remote
class ShardActor(Actor):
    def __init__(self, name: str, root: str, patience: float = OWNER_SECONDS) -> None:
        self.service = Shard(name, Path(root), patience)


@ray.remote
class CatalogueActor(Actor):
    def __init__(self, data: str) -> None:
        self.service = CatalogueService(Path(data))


@ray.remote
class JobsActor(Actor):
    def __init__(self, settings: Any, shared: list[int]) -> None:
        from kster.cluster.job_service import JobService

        self.service = JobService(settings, shared)


def start_shard(name: str, root: Path) -> Any:
    """The shard of this name, on the node that offers its disk."""
    return _start(ShardActor, SHARD + name, {SHARD_RESOURCE + name: 1}, name, str(root))


def start_catalogue(data: Path) -> Any:
    return _start(CatalogueActor, CATALOGUE, _on_catalogue_node(), str(data))


def start_jobs(settings: Any, shared: list[int]) -> Any:
    """A new jobs actor, with these models; what an earlier one was doing is started again."""
    with suppress(ValueError):
        ray.kill(ray.get_actor(JOBS, namespace=NAMESPACE))
    deadline = time.monotonic() + 30
    while True:
        try:
            return _start(JobsActor, JOBS, _on_catalogue_node(), settings, shared, get_if_exists=False)
        except ValueError:  # the earlier one still has the name
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)


def _on_catalogue_node() -> dict[str, float]:
    """Beside the data directory; on any node where none says that it has it."""
    return {CATALOGUE_RESOURCE: 0.001} if CATALOGUE_RESOURCE in ray.cluster_resources() else {}


def _start(
    kind: Any, name: str, resources: dict[str, float], *arguments: Any, get_if_exists: bool = True
) -> Any:
    return kind.options(
        name=name,
        namespace=NAMESPACE,
        get_if_exists=get_if_exists,
        lifetime="detached",
        max_restarts=-1,
        max_concurrency=THREADS,
        num_cpus=0,
        resources=resources,
    ).remote(*arguments)
