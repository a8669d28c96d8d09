"""One source corrected again and again, more often than there are neighbours: what was said last counts."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

from kster.formats import Pair
from kster.memory import Memory, SearchSettings
from kster.model import BaseModel
from kster.smoothing import FitSettings, fit, tune
from kster.translation import Method, Translator
from tiny import ENGLISH, GERMAN

SOURCE = ENGLISH[3]
CORRECTIONS = 40
METHODS: tuple[Method, ...] = ("knn", "kster")


def correction(number: int) -> str:
    """A different translation for every number, also in its first words."""
    words = ("Kind", "Vogel", "Taste", "Licht", "Baum", "Haus", "Wasser")
    return f"{words[number % 7]} {words[number // 7]} ist rot"


@pytest.fixture(scope="module")
def model(taught_marian: Path) -> BaseModel:
    return BaseModel.load(taught_marian, device="cpu")


@pytest.mark.parametrize("mode", ["exact", "shortlist"])
def test_the_newest_of_forty_translations_of_a_source_wins(
    model: BaseModel, tmp_path: Path, mode: Literal["exact", "shortlist"]
) -> None:
    with Memory.create(tmp_path / "m", model, search=SearchSettings(mode=mode)) as memory:
        memory.import_pairs(
            Pair(f"{s} {i}", t) for i in range(10) for s, t in zip(ENGLISH, GERMAN, strict=True)
        )
        memory.import_pairs(Pair(SOURCE, correction(i)) for i in range(CORRECTIONS - 1))
        tune(model, memory, ks=(16,))
        fit(model, memory, FitSettings(k=16, steps=5, batch_tokens=128))
        translator = Translator(model, memory)
        for newest in (correction(CORRECTIONS - 2), correction(CORRECTIONS - 1)):
            memory.add(SOURCE, newest)
            assert {translator.translate([SOURCE], method=method)[0].text for method in METHODS} == {newest}
