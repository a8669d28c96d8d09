from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from speller import Speller

from kster.memory import Memory


@pytest.fixture
def speller() -> Speller:
    return Speller()


@pytest.fixture
def memory(tmp_path: Path, speller: Speller) -> Iterator[Memory]:
    """Empty, with shards so small that every test fills several."""
    with Memory.create(tmp_path / "memory", speller, entries_per_shard=20) as memory:
        yield memory
