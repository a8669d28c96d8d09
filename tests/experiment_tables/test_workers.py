"""Several processes for one run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from experiments.budget import QUICK
from experiments.catalogue import EXPERIMENTS
from experiments.experiment import Part
from experiments.stages import Clock
from experiments.workers import Share, _Worker

CODE = """
import os, time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from experiments.workers import _begin
if __name__ == "__main__":
    with ProcessPoolExecutor(1, get_context("forkserver"), _begin, (None, None, None, 1)) as pool:
        print(pool.submit(os.getpid).result(), flush=True)
        time.sleep(60)
"""


def test_processes_of_a_killed_run_end_with_it(tmp_path: Path) -> None:
    script = tmp_path / "run.py"
    script.write_text(CODE)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, str(script)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        parent.kill()
        try:
            parent.communicate(timeout=10)  # its output ends when no process has it any more
        except subprocess.TimeoutExpired:
            os.kill(child, signal.SIGKILL)
            raise


def test_what_finds_no_room_on_the_gpu_is_left_to_the_run_itself(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def crowded(pipeline: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    closed = []
    pipeline = SimpleNamespace(direction="en-de", close=lambda: closed.append(True))
    given: Any = SimpleNamespace(open=lambda model, clock: pipeline)
    monkeypatch.setattr(EXPERIMENTS["lengths"], "parts", lambda budget: [Part(crowded, 1)])
    assert _Worker(given.open, QUICK, Clock()).do(
        Share("lengths", 0, "models/en-de")
    )  # not a failure, nor out of time
    assert "lengths (part 0) with models/en-de: no room on the GPU" in capsys.readouterr().err
    assert closed  # its memory makes room for the others
