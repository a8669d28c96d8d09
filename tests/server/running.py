"""A real server in a process of its own, on a free port.

Processes are forked from one that has imported what a server needs, which saves seconds each; the command
`kster serve` itself is started by tests/docs.
"""

from __future__ import annotations

import os
import resource
import signal
import socket
import sys
import time
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from pathlib import Path

import httpx


@dataclass
class RunningServer:
    """A `kster serve` process."""

    process: BaseProcess
    url: str
    data: Path
    log: Path
    http: httpx.Client = field(init=False)

    def __post_init__(self) -> None:
        self.http = httpx.Client(base_url=self.url, timeout=60)

    def wait_until_ready(self) -> None:
        deadline = time.monotonic() + 300
        while time.monotonic() < deadline:
            if not self.process.is_alive():
                raise RuntimeError(f"the server ended:\n{self.log.read_text()}")
            try:
                if httpx.get(f"{self.url}/health").status_code == 200:
                    return
            except httpx.TransportError:
                time.sleep(0.1)
        raise RuntimeError(f"the server does not answer:\n{self.log.read_text()}")

    def stop(self, how: signal.Signals = signal.SIGTERM) -> int:
        self.http.close()
        if self.process.is_alive():
            os.kill(self.process.pid, how)
        self.process.join(180)
        if self.process.exitcode is None:
            raise RuntimeError(f"the server does not end:\n{self.log.read_text()}")
        return self.process.exitcode

    def finished(self, job: dict[str, object], key: str | None = None) -> dict[str, object]:
        """The job when it has ended."""
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        deadline = time.monotonic() + 300
        while time.monotonic() < deadline:
            now = self.http.get(f"/v1/jobs/{job['id']}", headers=headers).json()
            if now["state"] in ("done", "failed", "cancelled"):
                return now
            time.sleep(0.05)
        raise RuntimeError("the job does not finish")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start(
    data: Path,
    *arguments: str,
    port: int | None = None,
    descriptors: int | None = None,
    **environment: str,
) -> RunningServer:
    """arguments: of `kster serve`; environment: settings such as KSTER_BEAM; port: None for a free one;
    descriptors: how many files the server may ever have open."""
    port = port or free_port()
    data.mkdir(parents=True, exist_ok=True)
    log = data.parent / f"{data.name}-{port}.log"
    command = ["serve", "--port", str(port), "--data", str(data), *arguments]
    variables = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", **environment}
    process = FORKS.Process(target=_serve, args=(command, variables, log, descriptors), daemon=True)
    process.start()
    server = RunningServer(process, f"http://127.0.0.1:{port}", data, log)
    server.wait_until_ready()
    return server


FORKS = get_context("forkserver")
FORKS.set_forkserver_preload(["kster.cli.serve_commands", "kster.server.run"])


def _serve(command: list[str], variables: dict[str, str], log: Path, descriptors: int | None) -> None:
    if descriptors is not None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors))
    os.environ.clear()
    os.environ.update(variables)
    with log.open("wb") as out:
        for stream in (1, 2):
            os.dup2(out.fileno(), stream)
    from kster.cli import main
    from kster.smoothing.fitting import general

    if short := variables.get("TESTS_GENERAL_TEXT"):  # see tests/conftest.py
        general.TEXTS = Path(short)
    sys.exit(main(command))
