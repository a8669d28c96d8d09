"""Thousands of memories on one server that may never have more than 256 files open."""

from __future__ import annotations

import os
import resource
import shutil
from pathlib import Path

import pytest
from running import start

from kster.formats import Pair
from kster.server.auth.access import LOCAL
from kster.server.settings import ModelSetting, ServerSettings
from kster.server.work.engine import Engine

SOURCE, TARGET = "the small machine gives cold coffee", "die kleine Maschine gibt kalten Kaffee"
MEMORIES, MANY_MEMORIES = 300, 2_000
TOGETHER = 100  # of them serve every request
DESCRIPTORS = 256


def make_memories(data: Path, model: Path, count: int) -> None:
    """The first is taught, the others are copies of its files."""
    engine = Engine(ServerSettings(data=data, models=[ModelSetting(path=str(model))]))
    first, *others = [
        engine.catalogue.create(LOCAL, f"memory {number}", automatic=number < TOGETHER)
        for number in range(count)
    ]
    engine.teach(first, engine.models[0], [Pair(SOURCE, TARGET)], "test")
    engine.close()
    for other in others:
        shutil.copytree(data / "memories" / str(first.id), data / "memories" / str(other.id))


@pytest.mark.parametrize("count", [MEMORIES, pytest.param(MANY_MEMORIES, marks=pytest.mark.slow)])
def test_many_memories_serve_with_256_descriptors(taught_marian: Path, tmp_path: Path, count: int) -> None:
    data = tmp_path / "data"
    make_memories(data, taught_marian, count)
    server = start(data, "--model", str(taught_marian), descriptors=DESCRIPTORS)
    try:
        pid = server.process.pid
        assert resource.prlimit(pid, resource.RLIMIT_NOFILE) == (DESCRIPTORS, DESCRIPTORS)
        asked = {"q": SOURCE, "source": "en", "target": "de"}
        assert server.http.post("/translate", json=asked, timeout=300).json() == {"translatedText": TARGET}
        listed = server.http.get("/v1/memories", timeout=300).json()
        assert len(listed) == count
        assert all(memory["segments"] == 1 and memory["damaged"] is None for memory in listed)
        for number in (1, 77, 200, count - 1, 2):
            id = listed[number]["id"]
            example = {"source": f"{SOURCE} {number}", "target": TARGET}
            assert server.http.post(f"/v1/memories/{id}/segments", json=example).status_code == 201
            named = server.http.post("/translate", json={**asked, "memories": [id]})
            assert named.json() == {"translatedText": TARGET}
        assert server.http.post("/translate", json=asked, timeout=300).json() == {"translatedText": TARGET}
        assert len(os.listdir(f"/proc/{pid}/fd")) < DESCRIPTORS
        assert "Too many open files" not in server.log.read_text()
    finally:
        assert server.stop() == 0
