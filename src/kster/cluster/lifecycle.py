"""A first cluster on one machine: up, status and down."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from kster.cluster.environment import is_on_loopback, make_token, prepare
from kster.errors import KsterError
from kster.files import write_atomically

FILE = "cluster.json"  # in the data directory: the process and the address of its cluster
LOG = "ray.log"
START_SECONDS = 120.0
STOP_SECONDS = 30.0
# Ray waits so long for its actors to end before it ends them; ours do not, and need not: they may be killed.
STOP_SOON = {"RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S": "1"}
OBJECT_STORE = 512 << 20  # bytes of shared memory: answers wait there for milliseconds


def up(data: Path, shards: int, *, host: str, port: int, cores: int | None) -> dict[str, Any]:
    """Start Ray on this machine, with the catalogue and some shards; returns where it is."""
    if (running := _running(data)) is not None:
        raise KsterError(f"the cluster of {data} runs already, at {running['address']}; nothing was started")
    data.mkdir(parents=True, exist_ok=True, mode=0o700)
    make_token()
    prepare(host)
    process = _start_ray(data, [str(number) for number in range(shards)], host, port, cores)
    try:
        from kster.cluster.connection import connect, leave, start_actors

        _wait(process, host, port, data / LOG)
        connect(f"{host}:{port}")
        try:
            started = start_actors(data.absolute())
        finally:
            leave()
    except BaseException:
        _stop(process.pid)
        raise
    state = {"process": process.pid, "address": f"{host}:{port}", "shards": started}
    write_atomically(data / FILE, json.dumps(state).encode())
    return state


def _start_ray(
    data: Path, shards: list[str], host: str, port: int, cores: int | None
) -> subprocess.Popen[bytes]:
    from kster.cluster.calls import CATALOGUE_RESOURCE, SHARD_RESOURCE
    from kster.cluster.connection import SYSTEM_SETTINGS

    resources = {CATALOGUE_RESOURCE: 1} | {SHARD_RESOURCE + name: 1 for name in shards}
    command = [
        *(sys.executable, "-m", "ray.scripts.scripts", "start", "--head", "--block"),
        *("--node-ip-address", host, "--port", str(port), "--include-dashboard=false"),
        *("--object-store-memory", str(OBJECT_STORE), "--resources", json.dumps(resources)),
        *("--system-config", json.dumps(SYSTEM_SETTINGS), "--disable-usage-stats"),
        *("--min-worker-port", "0", "--max-worker-port", "0", "--dashboard-agent-listen-port", "0"),
        *(("--num-cpus", str(cores)) if cores else ()),
    ]
    with (data / LOG).open("ab") as log:
        return subprocess.Popen(
            command, stdout=log, stderr=log, start_new_session=True, env={**STOP_SOON, **os.environ}
        )


def _wait(process: subprocess.Popen[bytes], host: str, port: int, log: Path) -> None:
    import socket

    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise KsterError(f"Ray does not start; {log} says why: {_last_line(log)}")
        if "Ray runtime started" in log.read_text(encoding="utf-8", errors="replace"):
            with suppress(OSError), socket.create_connection((host, port), timeout=1):
                return
        time.sleep(0.2)
    raise KsterError(f"Ray does not answer at {host}:{port} after {START_SECONDS:.0f} s; see {log}")


def _last_line(log: Path) -> str:
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return lines[-1] if lines else "nothing"


def down(data: Path) -> str:
    """Stop the cluster that `up` started; returns its address. What was acknowledged is on the disk."""
    running = _running(data)
    if running is None:
        raise KsterError(f"no cluster of {data} runs on this machine; nothing was stopped")
    _stop(running["process"])
    (data / FILE).unlink(missing_ok=True)
    return str(running["address"])


def address_of(data: Path) -> str | None:
    """Of the cluster that `up` has started with this data directory."""
    running = _running(data)
    return None if running is None else str(running["address"])


def _running(data: Path) -> dict[str, Any] | None:
    try:
        state: dict[str, Any] = json.loads((data / FILE).read_text(encoding="utf-8"))
        os.kill(state["process"], 0)
        named = Path(f"/proc/{state['process']}/cmdline")
        is_ray = not named.exists() or b"ray" in named.read_bytes()  # else the number is another's by now
    except (OSError, ValueError, KeyError):
        return None
    return state if is_ray else None


def _stop(process: int) -> None:
    """Ray ends what it has started; whatever of it is left after a while is ended with its group."""
    with suppress(ProcessLookupError):
        os.kill(process, signal.SIGTERM)
    deadline = time.monotonic() + STOP_SECONDS
    while time.monotonic() < deadline:
        with suppress(ChildProcessError):
            os.waitpid(process, os.WNOHANG)
        try:
            os.killpg(process, 0)
        except ProcessLookupError:
            return
        time.sleep(0.2)
    with suppress(ProcessLookupError):
        os.killpg(process, signal.SIGKILL)


def status(address: str | None) -> dict[str, Any]:
    """What a cluster consists of, and what of it answers."""
    prepare(address)
    import ray

    from kster.cluster.calls import CATALOGUE, JOBS, SHARD, ask_each, shards_offered
    from kster.cluster.connection import connect, leave, warn_if_open

    connect(address)
    try:
        lost: list[str] = []
        shards = shards_offered()
        sizes = ask_each({SHARD + name: ("size",) for name in shards}, lost=lost)
        others = ask_each({CATALOGUE: ("query", "SELECT COUNT(*) AS n FROM memories", ())}, lost=lost)
        nodes = [node for node in ray.nodes() if node["Alive"]]
        return {
            "nodes": [node["NodeManagerAddress"] for node in nodes],
            "cores": int(ray.cluster_resources().get("CPU", 0)),
            "memories": others[CATALOGUE][1][0][0] if CATALOGUE in others else None,
            "shards": {name: sizes.get(SHARD + name) for name in shards},
            "replicas": _replicas(),
            "jobs": _runs(JOBS),
            "warnings": warn_if_open(),
        }
    finally:
        leave()


def _replicas() -> dict[str, int]:
    """How many replicas are in each state; none where nothing is served."""
    from ray import serve

    from kster.cluster.serving import APPLICATION

    if not _runs("SERVE_CONTROLLER_ACTOR", namespace="serve"):
        return {}
    application = serve.status().applications.get(APPLICATION)
    if application is None:
        return {}
    return {
        str(state): count
        for deployment in application.deployments.values()
        for state, count in deployment.replica_states.items()
    }


def _runs(name: str, namespace: str | None = None) -> bool:
    import ray

    from kster.cluster.calls import NAMESPACE

    try:
        ray.get_actor(name, namespace=namespace or NAMESPACE)
    except ValueError:
        return False
    return True


def warn_where_open(host: str) -> str | None:
    """What to say about a cluster that listens on an address that others can reach."""
    if is_on_loopback(host) or os.environ.get("RAY_USE_TLS", "").lower() in ("1", "true"):
        return None
    return (
        f"{host} can be reached by others: Ray's ports need the token, but traffic is not encrypted unless "
        "you set up TLS (docs/how-to/cluster.md)"
    )
