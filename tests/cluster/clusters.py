"""Real Ray clusters for tests: a head and raylets on loopback, small ones."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import ray
from ray.cluster_utils import Cluster

from kster.cluster.calls import CATALOGUE, CATALOGUE_RESOURCE, NAMESPACE, SHARD, SHARD_RESOURCE, change
from kster.cluster.catalogue_service import Parts, RemoteDatabase
from kster.cluster.cluster_catalogue import home_of
from kster.cluster.cluster_memory import ClusterMemory
from kster.cluster.connection import SYSTEM_SETTINGS, connect, leave, start_actors
from kster.memory import KeyMaker
from kster.memory.store.description import Description

SMALL: dict[str, Any] = {"object_store_memory": 100 << 20, "node_ip_address": "127.0.0.1"}
FOLDERS = [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "memory")]


@contextmanager
def running(data: Path, shards: Sequence[str] = ("a", "b"), *, raylets: bool = False) -> Iterator[Cluster]:
    """A head that also has the shards' disks, or, with raylets, a head and a raylet for each shard."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    os.environ["PYTHONPATH"] = os.pathsep.join([*FOLDERS, os.environ.get("PYTHONPATH", "")])
    disks = {SHARD_RESOURCE + name: 1 for name in shards}
    cluster = Cluster(
        initialize_head=True,
        head_node_args={
            **SMALL,
            "num_cpus": 2,
            "include_dashboard": False,
            "resources": {CATALOGUE_RESOURCE: 1} | ({} if raylets else disks),
            "_system_config": SYSTEM_SETTINGS,
        },
    )
    try:
        for resource in disks if raylets else ():
            cluster.add_node(**SMALL, num_cpus=1, resources={resource: 1})
        connect(cluster.address)
        start_actors(data)
        yield cluster
    finally:
        leave()
        cluster.shutdown()


def memory_on(shards: Sequence[str], model: KeyMaker, number: int, kept_in: Path) -> ClusterMemory:
    """A new empty memory, where the catalogue would put it."""
    directory = f"{number}-{model.fingerprint[:16]}"
    description = Description.of(model, kept_in, 1 << 20)
    home = home_of(directory, shards)
    change(SHARD + home, "create", directory, description)
    parts = Parts(RemoteDatabase())
    parts.add_first(number, model.fingerprint, home, directory)
    return ClusterMemory(number, description, model, parts, kept_in)


def process_of(name: str) -> int:
    """The id of an actor's process."""
    return ray.get(ray.get_actor(name, namespace=NAMESPACE).process.remote(), timeout=60)[0]


def shard_process(name: str) -> int:
    return process_of(SHARD + name)


def catalogue_process() -> int:
    return process_of(CATALOGUE)
