"""One source, several targets in the memory: the one added last is what the source is translated to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from kster.memory import Memory
from kster.memory.group import SHIFT
from kster.memory.search.neighbours import Neighbours
from kster.model import BaseModel
from kster.smoothing import SAFE_KNN, FitSettings, Smoother, fit
from kster.translation import Translator
from tiny import ENGLISH, GERMAN

SOURCE = ENGLISH[3]
KNOWN = GERMAN[3]  # what the base model says, and is sure of
OTHER = "die Taste drücken und das Licht ist grün"  # shares its beginning
THIRD = "das Kind gibt dem Vogel etwas Brot"


@pytest.fixture
def translator(taught_marian: Path, tmp_path: Path) -> Iterator[Translator]:
    model = BaseModel.load(str(taught_marian), device="cpu")
    with Memory.create(tmp_path / "memory", model) as memory:
        yield Translator(model, memory)


def translations(translator: Translator) -> set[str]:
    return {translator.translate([SOURCE], method=method)[0].text for method in ("knn", "kster")}


def test_the_target_added_last_wins_and_its_removal_brings_the_earlier_back(translator: Translator) -> None:
    memory = translator.memory
    assert isinstance(memory, Memory)
    for target in (KNOWN, OTHER, THIRD):
        memory.add(SOURCE, target)
        assert translations(translator) == {target}
    ids = [segment.id for segment in memory.segments(state="kept")]
    memory.remove(ids[2])
    assert translations(translator) == {OTHER}
    memory.remove(ids[1])
    assert translations(translator) == {KNOWN}


def test_the_target_added_last_wins_after_a_fit(translator: Translator) -> None:
    memory = translator.memory
    assert isinstance(memory, Memory)
    for source, target in zip(ENGLISH, reversed(GERMAN), strict=True):
        memory.add(source, target)
    memory.add(SOURCE, KNOWN)
    fit(translator.model, memory, FitSettings(steps=10, batch_tokens=128))
    assert translations(translator) == {KNOWN}
    memory.add(SOURCE, OTHER)
    assert translations(translator) == {OTHER}


def weights_of(ids: list[int], values: list[int], distances: list[float]) -> list[float]:
    queries = torch.full((1, 4), 10.0)  # ‖q‖² = 400
    neighbours = Neighbours(
        distances=torch.tensor([distances]),
        values=torch.tensor([values]),
        ids=torch.tensor([ids]),
        keys=torch.zeros(1, len(ids), 4).half(),
    )
    return Smoother(SAFE_KNN)(queries, neighbours).log_weights.exp()[0].tolist()


def test_equal_contexts_with_one_value_share_their_weight() -> None:
    assert weights_of([3, 7], [1, 1], [0.0, 0.0]) == pytest.approx([0.5, 0.5])


def test_age_decides_between_exact_matches_only() -> None:
    assert weights_of([3, 7], [1, 2], [0.0, 0.0]) == pytest.approx([0.0, 1.0])
    apart = weights_of([3, 7], [1, 2], [5.0, 5.0])  # equally far, not exact
    assert apart == pytest.approx([0.5, 0.5])
    assert weights_of([3, 7], [1, 2], [0.0, 6.0]) == pytest.approx([1.0, 0.0])  # newer, another context


def test_between_memories_searched_together_nothing_is_newer() -> None:
    assert weights_of([7, 1 << SHIFT | 9], [1, 2], [0.0, 0.0]) == pytest.approx([0.5, 0.5])
