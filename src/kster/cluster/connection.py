"""Being part of a Ray cluster, and the actors that KSTER needs in it."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import RayActorError

from kster.cluster.actors import start_catalogue, start_shard
from kster.cluster.calls import NAMESPACE, forget_handles, shards_offered
from kster.cluster.environment import prepare
from kster.errors import KsterError
from kster.server.settings import is_loopback

log = logging.getLogger("kster.cluster")

INLINE_BYTES = 4 << 20
"""Messages up to this size travel with the call. Ray's default, 100 KB, sends all others through the object
store, which takes 20 ms where a call takes 4."""

SYSTEM_SETTINGS: dict[str, Any] = {
    "max_direct_call_object_size": INLINE_BYTES,
    "task_rpc_inlined_bytes_limit": 4 * INLINE_BYTES,
}
SHARDS = "shards"  # in the data directory: what the shards of this machine own


def connect(address: str | None = None) -> None:
    """Join a cluster; address: "auto" or None for the one that runs on this machine. Raises KsterError."""
    prepare(address)
    try:
        ray.init(
            address=address or "auto",
            namespace=NAMESPACE,
            log_to_driver=False,
            logging_level=logging.ERROR,
            ignore_reinit_error=True,
        )
    except (ConnectionError, RuntimeError, ValueError) as error:
        where = f"at {address}" if address not in (None, "auto") else "on this machine"
        raise KsterError(
            f"no Ray cluster answers {where} ({' '.join(str(error).split())[:200]}); start one with `kster "
            "cluster up`, or name its address"
        ) from None
    warn_if_open()


def leave() -> None:
    forget_handles()
    ray.shutdown()


def warn_if_open() -> list[str]:
    """Say when others could run their code on this cluster; returns what was said."""
    if os.environ.get("RAY_AUTH_MODE", "").lower() == "token":
        return []
    addresses = {node["NodeManagerAddress"] for node in ray.nodes() if node["Alive"]}
    if all(map(is_loopback, addresses)):
        return []
    warning = (
        "this Ray cluster asks for no token and can be reached from other machines: anybody who reaches its "
        "ports can run code on it; start it with RAY_AUTH_MODE=token, in a network of its own"
    )
    log.warning(warning)
    return [warning]


def start_actors(data: Path, names: Sequence[str] = ()) -> list[str]:
    """The catalogue and the shards, where they do not run yet; returns the names of the shards.

    data: the data directory, at the same path on every machine that has a shard or the catalogue.
    names: of the shards; by default all whose disks the cluster's nodes offer. Raises KsterError.
    """
    shards = list(names) or shards_offered()
    if not shards:
        raise KsterError(
            "no node of the cluster offers a disk for a shard; start nodes with `kster cluster up`, or with "
            "`ray start … --resources '{\"kster_shard_NAME\": 1}'`"
        )
    starting = {"catalogue": start_catalogue(data)}
    starting |= {f"shard {name}": start_shard(name, data / SHARDS / name) for name in shards}
    for who, actor in starting.items():
        try:
            ray.get(actor.process.remote(), timeout=120)
        except RayActorError as error:
            raise KsterError(f"{who} cannot be started: {_reason(error)}") from None
        except ray.exceptions.GetTimeoutError:
            raise KsterError(
                f"{who} does not start: no node offers what it needs; there is "
                f"{json.dumps(ray.available_resources())}"
            ) from None
    return shards


def _reason(error: Exception) -> str:
    """The last line that says anything: Ray tells where in its code something happened, too."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    named = [line for line in lines if "KsterError" in line or "Error:" in line]
    return (named or lines or ["unknown"])[-1].removeprefix("kster.errors.KsterError: ")
