"""A real server in a process of its own, on a free port."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import httpx


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
        deadline = time.monotonic() + 300
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
        return self.process.wait(timeout=180)

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


def start(data: Path, *arguments: str, port: int | None = None, **environment: str) -> RunningServer:
    """arguments: of `kster serve`; environment: settings such as KSTER_BEAM; port: None for a free one."""
    port = port or free_port()
    data.mkdir(parents=True, exist_ok=True)
    log = data.parent / f"{data.name}-{port}.log"
    command = [sys.executable, "-m", "kster", "serve", "--port", str(port), "--data", str(data), *arguments]
    variables = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", **environment}
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, env=variables)
    server = RunningServer(process, f"http://127.0.0.1:{port}", data, log)
    server.wait_until_ready()
    return server
