"""Idle memories hold no files: a process may have more of them than descriptors."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from speller import Speller

from kster import KsterError
from kster.errors import DamagedMemory
from kster.memory import Memory


@pytest.fixture
def few_descriptors() -> Iterator[None]:
    """As many as are open already, and 256 - 64 = 192 more."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(256, open_files() + 192), before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.usefixtures("few_descriptors")
def test_a_hundred_and_fifty_memories_are_open_with_256_descriptors(tmp_path: Path, speller: Speller) -> None:
    before = open_files()
    with ExitStack() as stack:
        memories = []
        for i in range(150):
            memory = stack.enter_context(Memory.create(tmp_path / str(i), speller))
            memory.add("the source", f"t{i}")
            memory.search(speller.query("the source"), 1)
            memories.append(memory)
        assert open_files() - before < 100
        for i in (0, 77, 149, 3):
            memories[i].add(f"new {i}", "x")
            found = memories[i].search(speller.query("the source", "t"), 1)
            assert found.distances[0, 0] == 0
            assert memories[i].provenance(found.ids[0])[0].segment.target == f"t{i}"
            assert memories[i].segment_count() == 2
            assert len(memories[i].similar("source", 3)) == 1


def test_a_released_memory_sees_what_others_have_written_since(memory: Memory, speller: Speller) -> None:
    memory.add("tree", "Baum")
    memory.search(speller.query("tree"), 1)
    assert memory._store.release()
    with Memory.open(memory.directory, speller) as other:
        other.add("bird", "Vogel")
        other.remove(1)
    assert memory.search(speller.query("bird"), 1).distances[0, 0] == 0
    assert memory.search(speller.query("tree"), 1).distances[0, 0] > 0


def test_a_closed_memory_stays_closed(memory: Memory) -> None:
    memory.close()
    with pytest.raises(KsterError, match="closed") as error:
        memory.segment_count()
    assert not isinstance(error.value, DamagedMemory)
