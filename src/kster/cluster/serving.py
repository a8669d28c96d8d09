"""`kster serve --ray`: the application as a Ray Serve deployment."""

from __future__ import annotations

import logging
import math
import signal
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import Any, NamedTuple

import ray
from ray import serve

from kster.cluster.actors import start_jobs
from kster.cluster.catalogue_service import RemoteDatabase
from kster.cluster.cluster_catalogue import ClusterCatalogue, sweep_shards
from kster.cluster.connection import connect, leave, start_actors
from kster.errors import KsterError
from kster.memory import Memory
from kster.server.auth.keys import Keys
from kster.server.logs import log_to_stderr
from kster.server.settings import ModelSetting, ServerSettings

log = logging.getLogger("kster.server")

APPLICATION = "kster"
HEALTH_SECONDS = 10.0
AT_ONCE = 4  # requests of each replica; while there are more, replicas are added where that is allowed


class Replicas(NamedTuple):
    """How many servers share the requests."""

    least: int = 1
    most: int | None = None  # started while many requests wait; by default no more than `least`


def serve_on_ray(read: Callable[[], ServerSettings], address: str | None, replicas: Replicas) -> None:
    """Returns after a signal, when the replicas are gone; shards and jobs go on.

    SIGHUP reads the settings again and replaces the replicas, some at a time, while the others serve.
    """
    connect(address)
    try:
        settings = read()
        log_to_stderr(settings.log_level)
        deploy(settings, replicas)
        signals: SimpleQueue[int] = SimpleQueue()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda number, _: signals.put(number))
        while signals.get() == signal.SIGHUP:
            try:
                deploy(_reread(read, settings), replicas)
            except KsterError as error:
                log.error("the replicas go on as they are: %s", error)
        serve.delete(APPLICATION)
        serve.shutdown()
    finally:
        leave()


def _reread(read: Callable[[], ServerSettings], before: ServerSettings) -> ServerSettings:
    """The settings as they are now. Raises KsterError for changes that replicas cannot follow."""
    settings = read()
    for name in ("host", "port", "data"):
        if getattr(settings, name) != getattr(before, name):
            raise KsterError(f"{name} has changed; that needs a restart of `kster serve --ray`")
    return settings


def deploy(settings: ServerSettings, replicas: Replicas) -> None:
    """Start what is missing of the cluster, and serve; returns when requests are answered."""
    settings = settings.model_copy(
        update={
            "data": settings.data.absolute(),
            "memories": [directory.absolute() for directory in settings.memories],
            "models": _models_of(settings),
        }
    )
    if not settings.models:
        raise KsterError("nothing to serve: give --model MODEL or --memory DIR")
    shards = start_actors(settings.data)
    database = RemoteDatabase()
    Keys(database).require_some(settings)
    catalogue = ClusterCatalogue(settings.data, database, [], [])
    shared = [catalogue.adopt(directory) for directory in settings.memories]
    sweep_shards(catalogue.places)
    catalogue.close()
    ray.get(start_jobs(settings, shared).process.remote(), timeout=300)
    serve.start(
        http_options={"host": settings.host, "port": settings.port, "location": "EveryNode"},
        logging_config={"log_level": "WARNING", "enable_access_log": False},
    )
    serve.run(application(settings, shared, replicas), name=APPLICATION, route_prefix="/")
    log.info(
        "serving",
        extra={
            "address": f"http://{settings.host}:{settings.port}/",
            "shards": shards,
            "replicas": replicas.least,
            "keys_required": settings.keys_required,
        },
    )


def application(settings: ServerSettings, shared: Sequence[int], replicas: Replicas) -> Any:
    """The deployment, to be run by `serve.run`."""
    least, most = replicas.least, replicas.most or replicas.least
    if least > 1 and settings.rate:  # a client's requests are spread over all
        settings = settings.model_copy(
            update={"requests_per_minute": max(1, math.ceil(settings.rate / least))}
        )

    def build() -> Any:
        from kster.cluster.cluster_engine import ClusterEngine
        from kster.server.app import create_app

        log_to_stderr(settings.log_level)
        return create_app(settings, ClusterEngine(settings, shared))

    cores = ray.cluster_resources().get("CPU", 1.0)
    deployment: Any = serve.deployment(
        serve.ingress(build)(_Replica),
        name="translate",
        **(
            {"num_replicas": least}
            if most == least
            else {
                "autoscaling_config": {
                    "min_replicas": least,
                    "max_replicas": most,
                    "target_ongoing_requests": AT_ONCE,
                }
            }
        ),
        max_ongoing_requests=settings.max_connections,
        graceful_shutdown_timeout_s=settings.shutdown_seconds,
        health_check_period_s=HEALTH_SECONDS,
        # A core is left to what makes keys; replicas share the others.
        ray_actor_options={"num_cpus": min(1.0, max(0.1, (cores - 1) / most))},
    )
    return deployment.bind()


class _Replica:
    """All routes are the application's."""


def _models_of(settings: ServerSettings) -> list[ModelSetting]:
    """Those named, and those of the memories named, which replicas may not be able to open."""
    models = list(settings.models)
    known = {str(model.path) for model in models}
    for directory in settings.memories:
        with Memory.open(directory) as memory:
            own = memory.description
        path = own.model_location(directory)
        if path not in known:
            known.add(path)
            models.append(ModelSetting(path=path, source=own.source_lang, target=own.target_lang))
    return models
