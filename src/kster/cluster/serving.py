"""`kster serve --ray`: the application as a Ray Serve deployment."""

from __future__ import annotations

import logging
import math
import signal
import threading
from collections.abc import Sequence
from typing import Any

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


def serve_on_ray(settings: ServerSettings, address: str | None, replicas: int) -> None:
    """Returns after a signal, when the replicas are gone; shards and jobs go on."""
    connect(address)
    try:
        log_to_stderr(settings.log_level)
        deploy(settings, replicas)
        stopped = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stopped.set())
        stopped.wait()
        serve.delete(APPLICATION)
        serve.shutdown()
    finally:
        leave()


def deploy(settings: ServerSettings, replicas: int) -> None:
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
            "replicas": replicas,
            "keys_required": settings.keys_required,
        },
    )


def application(settings: ServerSettings, shared: Sequence[int], replicas: int) -> Any:
    """The deployment, to be run by `serve.run`."""
    if replicas > 1 and settings.rate:  # a client's requests are spread over all
        settings = settings.model_copy(
            update={"requests_per_minute": max(1, math.ceil(settings.rate / replicas))}
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
        num_replicas=replicas,
        max_ongoing_requests=settings.max_connections,
        graceful_shutdown_timeout_s=settings.shutdown_seconds,
        health_check_period_s=HEALTH_SECONDS,
        # A core is left to what makes keys; replicas share the others.
        ray_actor_options={"num_cpus": min(1.0, max(0.1, (cores - 1) / replicas))},
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
