"""A fit chooses how long translations should be; who names a length penalty gets that one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kster.formats import Pair
from kster.memory import Memory
from kster.model import BaseModel
from kster.smoothing import SAFE_KNN, FitSettings, Smoother, fit
from kster.translation import Translator
from kster.translation.length import FEWEST, PENALTIES, choose_length
from tiny import ENGLISH, GERMAN

PAIRS = [
    (f"{english} {i}", f"{german} {i}")
    for i in (1, 2)
    for english, german in zip(ENGLISH, GERMAN, strict=True)
]
TEXTS = [source for source, _ in PAIRS]


@pytest.fixture
def model(tiny_marian: Path) -> BaseModel:
    return BaseModel.load(tiny_marian)


@pytest.fixture
def memory(model: BaseModel, tmp_path: Path) -> Memory:
    memory = Memory.create(tmp_path / "memory", model)
    memory.import_pairs(Pair(*pair) for pair in PAIRS)
    return memory


def length_of(model: BaseModel, texts: list[str]) -> int:
    return sum(map(len, model.tokenise_target(texts)))


def test_a_fit_chooses_a_length_penalty_and_translations_use_it(model: BaseModel, memory: Memory) -> None:
    dev = [
        (source, " ".join([target] * 4)) for source, target in PAIRS[:FEWEST]
    ]  # longer than any translation
    report = fit(model, memory, FitSettings(steps=5, k=4), dev=dev)
    smoother = Smoother.load(memory.directory / "smoother")
    assert list(report.lengths) == [str(penalty) for penalty in PENALTIES]
    assert smoother.settings.length_penalty == report.length_penalty
    nearest = min(report.lengths.items(), key=lambda item: abs(item[1] - 1.0))[0]
    assert str(report.length_penalty) == nearest


def test_what_the_smoother_says_about_length_holds_unless_a_call_says_otherwise(
    model: BaseModel, memory: Memory
) -> None:
    translator = Translator(model, memory)

    def texts(learned: float | None, **options: float) -> list[str]:
        smoother = Smoother(replace(SAFE_KNN, exact_match=None, length_penalty=learned)).eval()
        new = ["the house by the river is red", "a train leaves the light", "the river and the train"]
        return [t.text for t in translator.translate(new, smoother=smoother, **options)]  # type: ignore[arg-type]

    short, usual, long = texts(-5.0), texts(None), texts(5.0)
    assert length_of(model, short) < length_of(model, long)
    assert texts(5.0, length_penalty=-5.0) == short
    assert texts(5.0, length_penalty=0.6) == usual


def test_text_that_the_memory_holds_is_judged_as_if_it_did_not(model: BaseModel, memory: Memory) -> None:
    """A memory of nothing else then gives what the base model gives."""
    smoother = Smoother(SAFE_KNN).eval()
    ratios = choose_length(model, memory, smoother, PAIRS, memory.entries(), seed=1)
    translator = Translator(model, split_sentences=False)
    base = [t.text for t in translator.translate(TEXTS, length_penalty=PENALTIES[0])]
    expected = length_of(model, base) / length_of(model, [target for _, target in PAIRS])
    assert ratios[PENALTIES[0]] == pytest.approx(expected)


def test_a_handful_of_sentences_chooses_nothing(model: BaseModel, memory: Memory) -> None:
    smoother = Smoother(SAFE_KNN).eval()
    assert choose_length(model, memory, smoother, PAIRS[: FEWEST - 1], memory.entries(), seed=1) == {}
    assert smoother.settings.length_penalty is None
