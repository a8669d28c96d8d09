from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from large import SMALL
from speller import Speller

from kster.formats import Pair
from kster.memory import Memory


@pytest.fixture
def speller() -> Speller:
    return Speller()


@pytest.fixture
def memory(tmp_path: Path, speller: Speller) -> Iterator[Memory]:
    """Empty, with shards so small that every test fills several."""
    with Memory.create(tmp_path / "memory", speller, entries_per_shard=20) as memory:
        yield memory


@pytest.fixture
def large(tmp_path: Path, speller: Speller) -> Memory:
    """4,000 entries, searched by lists."""
    memory = Memory.create(tmp_path / "m", speller, search=SMALL, entries_per_shard=1_500)
    memory.import_pairs(Pair(f"source {i}", f"target {i:02d}"[-9:]) for i in range(400))
    memory.build_index()
    return memory
