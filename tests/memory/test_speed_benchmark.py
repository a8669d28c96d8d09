"""benchmarks/search_speed.py runs wherever it is, and says what it cannot measure there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "search_speed.py"
WHAT = "on a GPU: exact search by Triton kernels, and by torch's operations"


def run(*arguments: object, **environment: str) -> list[str]:
    command = [sys.executable, str(SCRIPT), *map(str, arguments)]
    changed = {**os.environ, "OMP_NUM_THREADS": "1", **environment}
    done = subprocess.run(command, capture_output=True, text=True, env=changed, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_without_a_gpu_the_kernels_are_left_out_and_the_rest_is_measured() -> None:
    lines = run("--sizes", 2_000, "--batches", "1,8", "--dimension", 32, CUDA_VISIBLE_DEVICES="")
    assert [line.split(":")[0] for line in lines[:3]] == ["machine", "versions", "settings"]
    for line, count in zip(lines[-3:-1], (1, 8), strict=True):
        measured = rf"2000 entries, {count} queries: \d+\.\d\d ms"
        assert re.fullmatch(measured, line), line
    assert lines[-1] == f"{WHAT}: left out, there is no GPU here"


@pytest.mark.gpu
def test_on_a_gpu_kernels_and_torch_are_measured_side_by_side() -> None:
    lines = run("--device", "cuda", "--gpu-sizes", 5_000, "--gpu-batches", "1,40", "--dimension", 128)
    assert lines[3] == WHAT
    for line, count in zip(lines[4:], (1, 40), strict=True):
        times = r"kernels \d+\.\d\d ms, torch \d+\.\d\d ms, \d+\.\d times as fast"
        assert re.fullmatch(
            rf"5000 entries, {count} queries: {times}, \d+\.\d\d% of the neighbours the same", line
        )
