"""A memory need not be fitted: which smoother is used, and what the unfitted one promises."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch

from kster.errors import KsterError
from kster.memory import Memory, Neighbours
from kster.model import BaseModel
from kster.smoothing import SAFE_KNN, FitSettings, Smoother, SmootherSettings, fit, mix, resolve_smoother
from kster.smoothing.defaults import UNIVERSAL
from kster.smoothing.fitting.report import write_json

SOURCE, TARGET = "the red house stands by the river", "das Licht ist heiß und der Zug fährt ab"


def smoother_for(model: BaseModel, mark: float) -> Smoother:
    """A smoother recognisable by its mixing weight."""
    return Smoother(SmootherSettings(dimension=model.dimension, mixing_weight=mark))


def test_own_fit_first_then_the_models_then_the_universal_one(tiny_marian: Path, tmp_path: Path) -> None:
    directory = shutil.copytree(tiny_marian, tmp_path / "model")
    model = BaseModel.load(str(directory), device="cpu")
    memory = tmp_path / "memory"
    memory.mkdir()

    resolved = resolve_smoother("kster", [memory], model)
    assert (resolved.origin, resolved.smoother.settings.features) == ("default", "scale-free")
    resolved = resolve_smoother("knn", [memory], model)
    assert (resolved.origin, resolved.path, resolved.smoother.settings) == ("default", None, SAFE_KNN)

    smoother_for(model, 0.25).save(directory / "smoother")
    resolved = resolve_smoother("kster", [memory], model)
    assert (resolved.origin, resolved.smoother.settings.mixing_weight) == ("model", 0.25)

    smoother_for(model, 0.125).save(memory / "smoother")
    resolved = resolve_smoother("kster", [memory], model)
    assert (resolved.origin, resolved.smoother.settings.mixing_weight) == ("memory", 0.125)
    assert resolved.path == memory / "smoother" / "smoother.json"
    # a fit says nothing about kNN-MT
    assert resolve_smoother("knn", [memory], model).origin == "default"


def test_a_smoother_is_read_once_and_a_new_fit_is_seen_at_once(model: BaseModel, tmp_path: Path) -> None:
    smoother_for(model, 0.25).save(tmp_path / "smoother")
    first = resolve_smoother("kster", [tmp_path], model).smoother
    assert resolve_smoother("kster", [tmp_path], model).smoother is first
    smoother_for(model, 0.75).save(tmp_path / "smoother")  # a settings file of the same size
    assert resolve_smoother("kster", [tmp_path], model).smoother.settings.mixing_weight == 0.75
    shutil.rmtree(tmp_path / "smoother")
    assert resolve_smoother("kster", [tmp_path], model).origin == "default"


def test_among_several_memories_the_first_with_a_fit_decides(model: BaseModel, tmp_path: Path) -> None:
    smoother_for(model, 0.25).save(tmp_path / "b" / "smoother")
    smoother_for(model, 0.125).save(tmp_path / "c" / "smoother")
    resolved = resolve_smoother("kster", [tmp_path / name for name in "abc"], model)
    assert resolved.smoother.settings.mixing_weight == 0.25


def test_a_fit_for_other_keys_is_refused_not_skipped(model: BaseModel, tmp_path: Path) -> None:
    Smoother(SmootherSettings(dimension=8)).save(tmp_path / "smoother")
    with pytest.raises(KsterError, match=f"keys of length 8, the model's have {model.dimension}"):
        resolve_smoother("kster", [tmp_path], model)


def test_knn_settings_that_learn_something_are_refused(model: BaseModel, tmp_path: Path) -> None:
    write_json(tmp_path / "smoother" / "knn.json", SmootherSettings(dimension=8).to_json())
    with pytest.raises(KsterError, match="something is learned"):
        resolve_smoother("knn", [tmp_path], model)


def test_base_has_no_smoother(model: BaseModel) -> None:
    with pytest.raises(KsterError, match="accepted: knn, kster"):
        resolve_smoother("base", [], model)  # type: ignore[arg-type]


def best_tokens(model: BaseModel, memory: Memory, smoother: Smoother, pair: tuple[str, str]) -> torch.Tensor:
    """The most probable token at each step of a force-decoded pair, given the memory. Returns (n,)."""
    (forced,) = model.force_decode([pair])
    neighbours = memory.search(forced.keys, smoother.k)
    every = torch.arange(model.vocabulary_size).expand(len(forced.tokens), -1)
    base = model.output_log_probs(forced.hidden, every, forced.log_normaliser)  # (n, V)
    with torch.no_grad():
        smoothing = smoother(forced.keys, neighbours, base.gather(1, neighbours.values), base.amax(-1))
    return mix(base, neighbours, smoothing).argmax(-1)


def test_the_first_segment_added_to_an_empty_memory_wins_at_each_step(
    model: BaseModel, tmp_path: Path
) -> None:
    with Memory.create(tmp_path / "memory", model) as memory:
        memory.add(SOURCE, TARGET)
        expected = torch.tensor(model.tokenise_target([TARGET])[0])
        for method in ("knn", "kster"):
            smoother = resolve_smoother(method, [memory.directory], model).smoother  # type: ignore[arg-type]
            assert torch.equal(best_tokens(model, memory, smoother, (SOURCE, TARGET)), expected)
        (forced,) = model.force_decode([(SOURCE, TARGET)])
        assert (forced.log_probs < forced.max_log_prob - 1e-3).any()  # the base model alone would not


def test_a_segment_added_after_a_fit_wins_at_each_step(model: BaseModel, memory: Memory) -> None:
    fit(model, memory, FitSettings(steps=40, batch_tokens=512, max_tokens=600))
    memory.add(SOURCE, TARGET)
    smoother = resolve_smoother("kster", [memory.directory], model).smoother
    expected = torch.tensor(model.tokenise_target([TARGET])[0])
    assert torch.equal(best_tokens(model, memory, smoother, (SOURCE, TARGET)), expected)


def test_unrelated_queries_are_left_to_the_base_model(model: BaseModel, memory: Memory) -> None:
    """Directions no decoder state of this memory has, at the length states have."""
    length = memory.entries().keys_of(memory.entries().ids[:1]).float().norm()
    queries = torch.randn(50, model.dimension, generator=torch.Generator().manual_seed(0))
    queries = queries / queries.norm(dim=-1, keepdim=True) * length
    smoothing = Smoother(SAFE_KNN)(queries, memory.search(queries, SAFE_KNN.k))
    assert smoothing.mixing_weight.max() < 0.01


def test_the_universal_smoother_believes_what_is_near_and_agrees_and_nothing_unrelated() -> None:
    smoother = Smoother.load(UNIVERSAL)
    queries = torch.nn.functional.normalize(torch.ones(2, 8), dim=-1)
    neighbours = Neighbours(
        distances=torch.tensor([[0.05], [1.0]]).expand(2, 16),
        values=torch.stack([torch.zeros(16), torch.arange(16)]).long(),
        ids=torch.arange(16).expand(2, 16),
        keys=torch.zeros(2, 16, 8),
        similarity=torch.tensor([[0.9], [0.0]]).expand(2, 16),
    )
    near, unrelated = smoother(
        queries, neighbours, torch.full((2, 16), -6.0), torch.full((2,), -0.3)
    ).mixing_weight.tolist()
    assert near > 0.9
    assert unrelated < 0.01
