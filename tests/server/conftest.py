"""Real servers in processes of their own, on free ports."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest

from tiny import ENGLISH, GERMAN


@dataclass
class RunningServer:
    """A `kster serve` process."""

    process: subprocess.Popen[bytes]
    url: str
    data: Path
    log: Path
    http: httpx.Client = field(init=False)

    def __post_init__(self) -> None:
        self.http = httpx.Client(base_url=self.url, timeout=60)

    def wait_until_ready(self) -> None:
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise RuntimeError(f"the server ended:\n{self.log.read_text()}")
            try:
                if httpx.get(f"{self.url}/health").status_code == 200:
                    return
            except httpx.TransportError:
                time.sleep(0.1)
        raise RuntimeError(f"the server does not answer:\n{self.log.read_text()}")

    def stop(self, how: signal.Signals = signal.SIGTERM) -> int:
        self.http.close()
        if self.process.poll() is None:
            self.process.send_signal(how)
        return self.process.wait(timeout=60)

    def finished(self, job: dict[str, object], key: str | None = None) -> dict[str, object]:
        """The job when it is done or has failed."""
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            now = self.http.get(f"/v1/jobs/{job['id']}", headers=headers).json()
            if now["state"] in ("done", "failed"):
                return now
            time.sleep(0.05)
        raise RuntimeError("the job does not finish")


StartServer = Callable[..., RunningServer]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start(data: Path, *arguments: str, **environment: str) -> RunningServer:
    """arguments: of `kster serve`; environment: settings such as KSTER_BEAM."""
    port = free_port()
    data.mkdir(parents=True, exist_ok=True)
    log = data.parent / f"{data.name}-{port}.log"
    command = [sys.executable, "-m", "kster", "serve", "--port", str(port), "--data", str(data), *arguments]
    variables = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", **environment}
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, env=variables)
    server = RunningServer(process, f"http://127.0.0.1:{port}", data, log)
    server.wait_until_ready()
    return server


@pytest.fixture(scope="session")
def shared_memory(taught_marian: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A memory with two examples, to be named on a command line."""
    from kster.memory import Memory
    from kster.model import BaseModel

    directory = tmp_path_factory.mktemp("shared") / "house-style"
    with Memory.create(directory, BaseModel.load(taught_marian, device="cpu")) as memory:
        memory.add(ENGLISH[0], GERMAN[0])
        memory.add(ENGLISH[1], GERMAN[1])
    return directory


@pytest.fixture(scope="session")
def server(
    taught_marian: Path, shared_memory: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningServer]:
    """A server as it is started for oneself: loopback, no keys, one shared memory."""
    data = tmp_path_factory.mktemp("server") / "data"
    running = start(data, "--model", str(taught_marian), "--memory", str(shared_memory))
    yield running
    assert running.stop() == 0
    assert "Traceback" not in running.log.read_text()
