"""Servers shared by the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from running import RunningServer, start

from tiny import ENGLISH, GERMAN


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
