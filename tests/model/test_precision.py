"""Less than float32 on a CPU: the same translations, and keys that serve each other."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from kster import KsterError, Translator
from kster.model import BaseModel, layers
from kster.smoothing.exact_match import ROUNDING
from tiny import ENGLISH, GERMAN

PAIRS = list(zip(ENGLISH, GERMAN, strict=True))


def keys(model: BaseModel) -> torch.Tensor:
    return torch.cat([sentence.keys.float() for sentence in model.force_decode(PAIRS)])


@pytest.mark.parametrize("precision", ["bfloat16", "int8"])
@pytest.mark.parametrize("family", ["taught_marian", "taught_m2m100"])
def test_translations_are_those_of_float32(
    family: str, precision: str, request: pytest.FixtureRequest
) -> None:
    model = BaseModel.load(request.getfixturevalue(family), device="cpu", precision=precision)
    assert [str(translation) for translation in Translator(model).translate(ENGLISH)] == GERMAN


@pytest.mark.parametrize("family", ["taught_marian", "taught_m2m100"])
def test_keys_in_bfloat16_are_those_of_float32_but_for_rounding(
    family: str, request: pytest.FixtureRequest
) -> None:
    checkpoint: Path = request.getfixturevalue(family)
    exact = keys(BaseModel.load(checkpoint, device="cpu", precision="float32"))
    rounded = keys(BaseModel.load(checkpoint, device="cpu", precision="bfloat16"))
    moved = (exact - rounded).norm(dim=1) / exact.norm(dim=1)
    assert moved.square().median() < ROUNDING


def test_small_networks_are_computed_in_float32_unless_asked_otherwise(tiny_marian: Path) -> None:
    assert BaseModel.load(tiny_marian, device="cpu").precision == "float32"


def test_a_processor_without_the_instructions_computes_in_float32_and_says_so(
    tiny_marian: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(layers, "has_instructions_for", lambda precision: False)
    model = BaseModel.load(tiny_marian, device="cpu", precision="bfloat16")
    assert model.precision == "float32"
    assert "no instructions for bfloat16; float32 is used" in caplog.text
    assert layers.choose_precision("auto", torch.device("cpu"), 512) == "float32"


def test_a_precision_that_is_unknown_or_not_for_the_device_is_refused(tiny_marian: Path) -> None:
    with pytest.raises(KsterError, match=r"'float8' is unknown; accepted: auto, int8, bfloat16"):
        BaseModel.load(tiny_marian, device="cpu", precision="float8")
    with pytest.raises(KsterError, match=r"'float16' is not for device cpu; accepted: auto, int8"):
        BaseModel.load(tiny_marian, device="cpu", precision="float16")
