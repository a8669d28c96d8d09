"""The default smoother: memories of many sizes, one smoother, found by memories that have none."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch

from kster import BaseModel, KsterError, Memory
from kster.memory.search.neighbours import Neighbours
from kster.smoothing import FitSettings, Smoother, SmootherSettings, resolve_smoother
from kster.smoothing.fitting.default_fit import (
    DefaultFitSettings,
    Training,
    fit_default,
    fit_universal,
    look_up,
)
from tiny import ENGLISH, GERMAN

SETTINGS = DefaultFitSettings(
    sizes=(1, 4, 10_000),
    queries=4,
    dev_queries=2,
    fit=FitSettings(k=4, steps=30, evaluate_every=10, batch_tokens=256, start="tuned"),
)


def test_a_default_smoother_is_fitted_saved_beside_the_model_and_found(
    tiny_marian: Path, tmp_path: Path
) -> None:
    directory = shutil.copytree(tiny_marian, tmp_path / "model")
    model = BaseModel.load(directory)
    pairs = list(zip(ENGLISH, GERMAN, strict=True))
    domains = {"forward": pairs, "backward": [(t, s) for s, t in pairs]}
    results = fit_default(
        Training(model, domains, pairs[::-1]),
        directory / "smoother",
        scratch=tmp_path / "work",
        settings=SETTINGS,
    )
    # two domains × sizes up to all there are × own and general text
    assert {(r.domain, r.size, r.text) for r in results} == {
        (domain, size, text) for domain in domains for size in (1, 4, 6) for text in ("domain", "general")
    }
    assert sum(r.kster for r in results) < sum(r.base for r in results)
    with Memory.create(tmp_path / "memory", model) as memory:
        assert resolve_smoother("kster", [memory.directory], model).origin == "model"


def test_a_growing_memory_keeps_all_targets_of_a_source(tiny_marian: Path, tmp_path: Path) -> None:
    model = BaseModel.load(tiny_marian)
    pairs = [(ENGLISH[0], german) for german in dict.fromkeys(GERMAN)]
    domains, scratch = {"one source": pairs}, tmp_path / "work"
    fit_default(Training(model, domains, pairs), tmp_path / "smoother", scratch=scratch, settings=SETTINGS)
    with Memory.open(scratch / "one source", model) as memory:
        info = memory.info()
    assert (info.segments, info.superseded) == (len(pairs) - SETTINGS.queries - SETTINGS.dev_queries, 0)


def test_processes_that_share_the_domains_find_what_one_finds(tiny_marian: Path, tmp_path: Path) -> None:
    model = BaseModel.load(tiny_marian)
    pairs = list(zip(ENGLISH, GERMAN, strict=True))
    training = Training(model, {"forward": pairs, "backward": [(t, s) for s, t in pairs]}, pairs[::-1])
    alone, shared = (
        look_up(training, SETTINGS, tmp_path / str(workers), workers=workers) for workers in (1, 2)
    )
    smoother = Smoother(SmootherSettings(k=4, dimension=model.dimension))
    assert shared.results(smoother) == alone.results(smoother)


def test_pairs_that_the_model_cannot_read_are_left_out(tiny_marian: Path, tmp_path: Path) -> None:
    model = BaseModel.load(tiny_marian)
    pairs = list(zip(ENGLISH, GERMAN, strict=True))
    endless = ("word " * model.max_length, "Wort " * model.max_length)
    training = Training(model, {"forward": [endless, *pairs, endless]}, [*pairs, endless])
    results = fit_default(training, tmp_path / "smoother", scratch=tmp_path / "work", settings=SETTINGS)
    assert max(result.size for result in results) == len(pairs) - SETTINGS.queries - SETTINGS.dev_queries


def test_too_little_text_is_named(tiny_marian: Path, tmp_path: Path) -> None:
    model = BaseModel.load(tiny_marian)
    with pytest.raises(KsterError, match="law: 3 pairs; a default fit needs more than 6"):
        fit_default(
            Training(model, {"law": [("a", "b")] * 3}, [("a", "b")] * 9),
            tmp_path / "smoother",
            scratch=tmp_path / "work",
            settings=SETTINGS,
        )


def test_a_universal_smoother_serves_models_of_any_width(
    tiny_marian: Path, tiny_m2m100: Path, tmp_path: Path
) -> None:
    pairs = list(zip(ENGLISH, GERMAN, strict=True))
    models = [
        BaseModel.load(tiny_marian),
        BaseModel.load(tiny_m2m100, source_lang="en", target_lang="de"),
    ]
    trainings = [Training(model, {"all": pairs}, pairs[::-1]) for model in models]
    texts = [look_up(training, SETTINGS, tmp_path / str(i)) for i, training in enumerate(trainings)]
    fit_universal(texts, SETTINGS).save(tmp_path / "universal")
    smoother = Smoother.load(tmp_path / "universal")
    assert smoother.settings.dimension is None
    for of_model in (text.results(smoother) for text in texts):
        assert sum(r.kster for r in of_model) < sum(r.base for r in of_model)


def test_what_a_scale_free_smoother_decides_does_not_depend_on_the_scale_of_states() -> None:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        smoother = Smoother(SmootherSettings(features="scale-free", k=3, similarity=True, exact_match=0.98))
        for parameter in smoother.parameters():
            parameter.data.normal_()
    generator = torch.Generator().manual_seed(1)
    queries, keys = torch.randn(5, 8, generator=generator), torch.randn(5, 3, 8, generator=generator)
    answers = []
    for scale in (1.0, 32.0):
        found = Neighbours(
            distances=torch.linalg.vector_norm(queries[:, None] - keys, dim=-1) * scale,
            values=torch.tensor([[1, 2, 1]]).expand(5, -1),
            ids=torch.tensor([[0, 1, 2]]).expand(5, -1),
            keys=keys * scale,
            similarity=torch.tensor([[0.1, 0.9, 0.0]]).expand(5, -1),
        )
        answers.append(smoother(queries * scale, found, torch.full((5, 3), -3.0), torch.full((5,), -1.0)))
    torch.testing.assert_close(answers[0].log_weights, answers[1].log_weights, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(
        answers[0].log_mixing_weight, answers[1].log_mixing_weight, atol=1e-4, rtol=1e-4
    )
