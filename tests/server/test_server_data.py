"""One data directory: one server, and jobs that say why they ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from running import RunningServer, free_port, start

from kster.errors import KsterError
from kster.server.database import sole_server
from tiny import ENGLISH, GERMAN


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "kster", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env={**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"},
    )


def test_a_second_server_on_the_same_data_is_refused_and_keys_are_not(
    server: RunningServer, taught_marian: Path, tmp_path: Path
) -> None:
    (tmp_path / "alias").symlink_to(server.data)
    for name in (server.data, tmp_path / "alias"):
        command = ("serve", "--model", str(taught_marian), "--data", str(name), "--port", str(free_port()))
        second = run(*command)
        assert second.returncode == 2
        assert second.stdout == ""
        assert second.stderr.count("\n") == 1
        assert f"{name}: another server is using this data directory" in second.stderr
        assert "--data DIR" in second.stderr
    assert server.http.get("/health").status_code == 200
    assert run("keys", "add", "beside", "--data", str(server.data)).returncode == 0
    assert "beside" in run("keys", "list", "--data", str(server.data)).stdout
    assert run("keys", "revoke", "beside", "--data", str(server.data)).returncode == 0


def test_a_killed_server_holds_nobody_up(taught_marian: Path, tmp_path: Path) -> None:
    start(tmp_path / "data", "--model", str(taught_marian)).stop(signal.SIGKILL)
    with sole_server(tmp_path / "data"):
        pass


def test_the_data_directory_is_free_again_after_an_error(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), sole_server(tmp_path / "data"):
        raise ZeroDivisionError
    with sole_server(tmp_path / "data"), pytest.raises(KsterError, match="another server"):
        sole_server(tmp_path / "data").__enter__()


@pytest.mark.parametrize("kind", ["import", "fit"])
def test_a_job_of_a_deleted_memory_says_that_it_was_deleted(server: RunningServer, kind: str) -> None:
    memory = server.http.post("/v1/memories", json={"name": "short-lived"}).json()["id"]
    rows = "\n".join(f"{ENGLISH[n % 12]} number {n}\t{GERMAN[n % 12]} Nummer {n}" for n in range(60_000))
    many = {"file": ("many.tsv", f"source\ttarget\n{rows}".encode())}
    job = server.http.post(f"/v1/memories/{memory}/import", files=many).json()
    if kind == "fit":
        assert server.finished(job)["state"] == "done"
        job = server.http.post(f"/v1/memories/{memory}/fit", json={"steps": 5_000}).json()
    while (now := server.http.get(f"/v1/jobs/{job['id']}").json())["done"] == 0:
        assert now["state"] in ("waiting", "running"), now
    assert server.http.delete(f"/v1/memories/{memory}").status_code == 200
    ended = server.finished(job)
    assert (ended["state"], ended["error"]) == ("failed", "the memory was deleted")
    assert not (server.data / "uploads" / job["id"]).exists()
    assert "job failed" not in server.log.read_text()
