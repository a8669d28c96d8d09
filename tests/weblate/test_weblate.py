"""Weblate itself, from the Python package index, with a server that it translates by: see check.py."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE.parent / "server"))

from running import RunningServer, start  # noqa: E402

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def weblate(request: pytest.FixtureRequest) -> Path:
    """The interpreter of an environment with Weblate: WEBLATE_PYTHON, or one that is made and kept."""
    if not (shutil.which("pg_config") or shutil.which("postgres")):
        pytest.skip("PostgreSQL is not installed")
    if "WEBLATE_PYTHON" in os.environ:
        return Path(os.environ["WEBLATE_PYTHON"])
    directory = request.config.cache.mkdir("weblate")
    python = directory / "bin" / "python"
    if not python.exists():
        venv.create(directory, with_pip=True)
    command = [python, "-m", "pip", "install", "--quiet", "-r", HERE / "requirements.txt"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"Weblate cannot be installed here: {done.stderr.strip().splitlines()[-1]}")
    return python


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    from kster import BaseModel, Memory

    directory, model = tmp_path_factory.mktemp("weblate"), ROOT / "models" / "en-de"
    with Memory.create(directory / "memory", BaseModel.load(model, device="cpu")) as memory:
        memory.import_file(ROOT / "examples" / "ombravella.tmx")
    running = start(directory / "data", "--model", str(model), "--memory", str(directory / "memory"))
    yield running
    assert running.stop() == 0


def test_weblate_translates_learns_and_sends_its_glossary(weblate: Path, server: RunningServer) -> None:
    command = ["sh", HERE / "run.sh", weblate, server.url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.rstrip().endswith("all checks passed")
