"""The default smoother: memories of many sizes, one smoother, found by memories that have none."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kster import BaseModel, KsterError, Memory
from kster.smoothing import FitSettings, resolve_smoother
from kster.smoothing.fitting.default_fit import DefaultFitSettings, fit_default
from tiny import ENGLISH, GERMAN

SETTINGS = DefaultFitSettings(
    sizes=(1, 4, 10_000),
    queries=4,
    dev_queries=2,
    fit=FitSettings(k=4, steps=30, evaluate_every=10, batch_tokens=256),
)


def test_a_default_smoother_is_fitted_saved_beside_the_model_and_found(
    tiny_marian: Path, tmp_path: Path
) -> None:
    directory = shutil.copytree(tiny_marian, tmp_path / "model")
    model = BaseModel.load(directory)
    pairs = list(zip(ENGLISH, GERMAN, strict=True))
    domains = {"forward": pairs, "backward": [(t, s) for s, t in pairs]}
    results = fit_default(
        model, domains, pairs[::-1], directory / "smoother", scratch=tmp_path / "work", settings=SETTINGS
    )
    # two domains × sizes up to all there are × own and general text
    assert {(r.domain, r.size, r.text) for r in results} == {
        (domain, size, text) for domain in domains for size in (1, 4, 6) for text in ("domain", "general")
    }
    assert sum(r.kster for r in results) < sum(r.base for r in results)
    with Memory.create(tmp_path / "memory", model) as memory:
        assert resolve_smoother("kster", [memory.directory], model).origin == "model"


def test_too_little_text_is_named(tiny_marian: Path, tmp_path: Path) -> None:
    model = BaseModel.load(tiny_marian)
    with pytest.raises(KsterError, match="law: 3 pairs; a default fit needs more than 6"):
        fit_default(
            model,
            {"law": [("a", "b")] * 3},
            [("a", "b")] * 9,
            tmp_path / "smoother",
            scratch=tmp_path / "work",
            settings=SETTINGS,
        )
