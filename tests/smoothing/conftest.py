"""A small real memory: made-up sentences put through a tiny real network."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from kster.formats import Pair
from kster.memory import Memory
from kster.model import BaseModel
from tiny import ENGLISH, GERMAN


def make_pairs(count: int, seed: int) -> list[tuple[str, str]]:
    """Beginnings and ends of the tiny sentences in new combinations, so that contexts recur."""
    rng = random.Random(seed)
    pairs = []
    for _ in range(count):
        a, b = rng.sample(range(len(ENGLISH)), 2)
        source = ENGLISH[a].split()[:4] + ENGLISH[b].split()[-3:]
        target = GERMAN[a].split()[:4] + GERMAN[b].split()[-3:]
        pairs.append((" ".join(source), " ".join(target)))
    return pairs


@pytest.fixture(scope="session")
def model(tiny_marian: Path) -> BaseModel:
    return BaseModel.load(str(tiny_marian), device="cpu")


@pytest.fixture
def memory(model: BaseModel, tmp_path: Path) -> Iterator[Memory]:
    """About 110 segments; some targets occur twice, with different sources."""
    pairs = make_pairs(100, seed=0)
    pairs += [(source + " today", target.upper()) for source, target in pairs[:10]]  # same target, case aside
    with Memory.create(tmp_path / "memory", model) as memory:
        memory.import_pairs(Pair(source, target) for source, target in pairs)
        yield memory
