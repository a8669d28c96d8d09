"""A fit shifts confidences to what is right of the memory's own text, which is judged as if it were new."""

from __future__ import annotations

from dataclasses import replace
from math import log
from pathlib import Path

import pytest

from kster.formats import Pair
from kster.memory import Memory
from kster.model import BaseModel
from kster.smoothing import SAFE_KNN, FitSettings, Smoother, fit
from kster.translation import Translator
from kster.translation.calibration import FEWEST, calibrate, shift_of
from kster.translation.confidence import probability
from kster.translation.unseen import MemoryWithout
from tiny import ENGLISH, GERMAN

PAIRS = [
    (f"{english} {i}", f"{german} {i}")
    for i in (1, 2)
    for english, german in zip(ENGLISH, GERMAN, strict=True)
]


@pytest.fixture
def model(taught_marian: Path) -> BaseModel:
    return BaseModel.load(taught_marian)


@pytest.fixture
def memory(model: BaseModel, tmp_path: Path) -> Memory:
    memory = Memory.create(tmp_path / "memory", model)
    memory.import_pairs(Pair(*pair) for pair in PAIRS)
    return memory


def odds(confidence: float | None) -> float:
    assert confidence is not None
    return log(confidence / (1 - confidence))


def test_much_text_is_believed_and_little_text_a_little() -> None:
    right = [True, True, True, True, False]
    much = shift_of([0.5] * 1000, right * 200)
    little = shift_of([0.5] * 5, right)
    assert probability(much) == pytest.approx(0.8, abs=0.01)
    assert 0 < little < much
    assert shift_of([0.5] * 5, [not own for own in right]) == pytest.approx(-little)
    assert shift_of([0.8] * 5, right) == pytest.approx(0.0, abs=1e-9)


def test_a_fit_shifts_the_confidences_of_translations_with_the_memory(
    model: BaseModel, memory: Memory
) -> None:
    settings = FitSettings(steps=5, k=4, length=False)
    report = fit(model, memory, settings, dev=PAIRS[:20])
    found = report.calibration
    assert found is not None
    assert found.sentences == 20
    assert (found.shift < 0) == (found.right < found.believed)
    smoother = Smoother.load(memory.directory / "smoother")
    assert smoother.settings.confidence_shift == found.shift

    def confidence(shift: float) -> float | None:
        own = Smoother.load(memory.directory / "smoother").eval()
        own.settings = replace(own.settings, confidence_shift=shift)
        translator = Translator(model, memory)
        return translator.translate("the small red dog", smoother=own, confidence=True).confidence

    assert odds(confidence(found.shift)) == pytest.approx(odds(confidence(0.0)) + found.shift, abs=1e-3)


def test_without_development_text_the_memory_s_own_segments_are_judged(
    model: BaseModel, memory: Memory
) -> None:
    smoother = Smoother(SAFE_KNN).eval()
    found = calibrate(model, memory, smoother, [], memory.entries(), seed=1)
    assert found is not None
    assert found.sentences == len(PAIRS)
    assert smoother.settings.confidence_shift == found.shift != 0.0


def test_too_little_text_shifts_nothing(model: BaseModel, memory: Memory) -> None:
    smoother = Smoother(replace(SAFE_KNN, confidence_shift=1.0)).eval()
    assert calibrate(model, memory, smoother, PAIRS[: FEWEST - 1], memory.entries(), seed=1) is None
    assert smoother.settings.confidence_shift == 0.0


def test_a_text_that_is_judged_does_not_find_itself(memory: Memory) -> None:
    source, target = PAIRS[0]
    memory.add(source.upper(), target)  # a copy, but for its source's case
    without = MemoryWithout(memory, PAIRS[:1])
    assert memory.matches(source, 1)[0].percentage == 100
    assert without.matches(source, 3)[0].segment.source == PAIRS[len(ENGLISH)][0]
    assert len(without.matches(source, 3)) == 3
    found = [match.segment.target for match in without.similar_segments([source], 8)[0]]
    assert target not in found
    assert found
