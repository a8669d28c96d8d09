"""Adaptive and Robust kNN-MT and SK-MT give what their papers' equations give, computed by hand."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from experiments.budget import Budget
from experiments.data import Slice
from experiments.domains import domain_setting
from experiments.engine import MemorySpec, RivalFit, SentenceSearch
from experiments.pipeline import Pipeline
from experiments.rivals import (
    AdaptiveKnn,
    Evidence,
    Examples,
    Rival,
    RobustKnn,
    disturbed,
    learn,
    loss,
    own_log_probs,
    rival_of,
)
from experiments.sentence_knn import DistanceAwareKnn
from experiments.systems import ADAPTIVE_KNN, ROBUST_KNN, SK_MT, System
from torch import Tensor

from kster.memory import Neighbours
from kster.memory.search.retriever import Batch, RowsOf

LN3 = math.log(3)


def told(squared: list[float], values: list[int], *, own: float = -1.0) -> Evidence:
    k = len(values)
    return Evidence(
        torch.tensor([squared]),
        torch.tensor([values]),
        torch.ones(1, k, dtype=torch.bool),
        torch.full((1, k), -2.0),
        torch.full((1, k), own),
        torch.tensor([-0.5]),
    )


def silent(rival: Rival) -> Rival:
    """All weights zero: every softmax is even, and a sigmoid is a half."""
    for parameter in rival.parameters():
        torch.nn.init.zeros_(parameter)
    return rival


def found(distances: list[float], values: list[int]) -> Neighbours:
    there = torch.tensor([[math.isfinite(distance) for distance in distances]])
    ids = torch.where(there, 7, -1)
    return Neighbours(torch.tensor([distances]), torch.tensor([values]), ids, torch.zeros(1, len(values), 2))


def test_adaptive_knn_mixes_the_first_none_one_two_neighbours() -> None:
    """p(k') = 1/3 each; softmax(−d / T) of the first two is ¾ and ¼."""
    weights, base = silent(AdaptiveKnn(2, temperature=2.0)).weigh(told([0.0, 2 * LN3], [5, 6]))
    assert weights.exp().tolist() == [pytest.approx([1 / 3 + 1 / 3 * 3 / 4, 1 / 3 * 1 / 4])]
    assert base.exp().tolist() == pytest.approx([1 / 3])


def test_adaptive_knn_sees_squared_distances_and_how_many_values_differ() -> None:
    assert told([1.0, 4.0, 9.0, 9.0], [5, 6, 5, 7]).shape_features.tolist() == [
        [1.0, 4.0, 9.0, 9.0, 1.0, 2.0, 2.0, 3.0]
    ]


def test_robust_knn_calibrates_each_neighbour_and_weighs_model_against_memory() -> None:
    """τ = ½; c = own log-probability: its network passes it on; s_m = the largest log-probability."""
    rival = silent(RobustKnn(2))
    assert isinstance(rival, RobustKnn)
    evidence = told([0.0, 2 * LN3], [5, 6])
    weights, base = rival.weigh(evidence)
    assert weights.exp().tolist() == [pytest.approx([0.5 * 0.75, 0.5 * 0.25])]
    assert base.exp().tolist() == pytest.approx([0.5])

    with torch.no_grad():
        rival.calibration[0].weight[0, 0] = 1e-3  # tanh is the identity there
        rival.calibration[2].weight[0, 0] = 1e3
        evidence.own = torch.tensor([[-LN3, 0.0]])
        rival.belief_in_model.weight[0, -1] = 1.0
    weights, base = rival.weigh(evidence)  # kernels: ⅓ and ⅓; e^{s_m} = e^{−½}, e^{s_e} = 1
    share = 1 / (1 + math.exp(-0.5))
    assert weights.exp().tolist() == [pytest.approx([0.5 * share, 0.5 * share], rel=1e-4)]
    assert base.exp().tolist() == pytest.approx([1 - share])


@pytest.mark.parametrize("rival", [AdaptiveKnn(4, 1.0), RobustKnn(4)], ids=["adaptive", "robust"])
def test_what_was_not_found_weighs_nothing(rival: Rival, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(rival), "needs_own", False)
    some = found([1.0, 2.0, math.inf, math.inf], [5, 6, 0, 0])
    smoothing = rival(torch.zeros(1, 2), some, torch.zeros(1, 4), torch.zeros(1))
    assert smoothing.log_weights[:, :2].logsumexp(-1).item() == pytest.approx(0.0, abs=1e-5)
    assert smoothing.log_weights[:, 2:].eq(-math.inf).all()
    together = torch.logaddexp(smoothing.log_mixing_weight, smoothing.log_base_weight)
    assert together.item() == pytest.approx(0.0, abs=1e-5)
    none = found([math.inf] * 4, [0] * 4)
    nothing = rival(torch.zeros(1, 2), none, torch.zeros(1, 4), torch.zeros(1))
    assert nothing.mixing_weight.tolist() == [0.0]
    assert nothing.log_base_weight.tolist() == [0.0]


def examples(n: int) -> Examples:
    """The nearest neighbour is always right, and the model never sure."""
    evidence = Evidence(
        torch.tensor([[1.0, 9.0]]).repeat(n, 1),
        torch.tensor([[5, 6]]).repeat(n, 1),
        torch.ones(n, 2, dtype=torch.bool),
        torch.full((n, 2), -3.0),
        torch.full((n, 2), -3.0),
        torch.full((n,), -1.0),
    )
    return Examples(evidence, torch.full((n,), 5), torch.full((n,), -3.0), dimension=16)


@pytest.mark.parametrize("kind", [lambda: AdaptiveKnn(2, 1.0), lambda: RobustKnn(2)])
def test_learning_makes_the_text_more_likely(kind: Callable[[], Rival]) -> None:
    torch.manual_seed(1)
    rival = kind()
    before = loss(rival, examples(64)).item()
    learn(rival, examples(64), steps=200)
    assert loss(rival, examples(64)).item() < before - 0.1


def test_noise_puts_the_right_token_first_where_it_was_lacking() -> None:
    lacking = examples(4)
    lacking.gold[2:] = 9
    dice = torch.Generator().manual_seed(1)
    noisy = disturbed(lacking, 1.0, dice)
    assert noisy.evidence.values.tolist() == [[5, 6], [5, 6], [9, 5], [9, 5]]
    assert noisy.evidence.at_values[2:, 0].tolist() == [-3.0, -3.0]
    assert noisy.evidence.squared[2:, 0].tolist() == pytest.approx([0.01**2 * 16] * 2)
    assert not torch.equal(noisy.evidence.squared[0], lacking.evidence.squared[0])
    assert torch.equal(disturbed(lacking, 0.0, dice).evidence.squared, lacking.evidence.squared)


def pipeline_of(model: Path, data: Path, out: Path) -> Pipeline:
    return Pipeline(model, data, out, out / "cache", device="cpu")


def test_what_the_model_said_of_a_neighbour_is_read_from_its_key(
    taught_marian: Path, data: Path, tmp_path: Path
) -> None:
    pipeline = pipeline_of(taught_marian, data, tmp_path)
    (forced,) = pipeline.base.force_decode(pipeline.corpora.pairs(Slice("koran", "test", 1)))
    keys, tokens = forced.keys[:, None], forced.tokens.long()[:, None]
    said: Tensor = own_log_probs(pipeline.base, keys, tokens)[:, 0]
    assert said.tolist() == pytest.approx(forced.log_probs.tolist(), abs=0.02)  # keys are float16


@pytest.mark.parametrize("system", [ADAPTIVE_KNN, ROBUST_KNN], ids=["adaptive", "robust"])
def test_they_translate_and_are_learned_once(
    system: System, taught_marian: Path, data: Path, tmp_path: Path, budget: Budget
) -> None:
    pipeline = pipeline_of(taught_marian, data, tmp_path)
    engine = system.engine(pipeline, domain_setting("koran", budget), budget)
    assert isinstance(engine.smoother, RivalFit)
    path = pipeline.translate(engine, Slice("koran", "test", 2))
    assert path.is_file()

    def learned() -> dict[str, int]:
        return {path.name: path.stat().st_mtime_ns for path in (pipeline.cache / "rivals").iterdir()}

    before = learned()
    pipeline.translate(engine, Slice("koran", "test", 3))
    assert f"{engine.smoother.name}.safetensors" in before
    assert learned() == before


def test_two_processes_learn_the_same_rival(taught_marian: Path, data: Path, tmp_path: Path) -> None:
    base = pipeline_of(taught_marian, data, tmp_path).base
    wanted = RivalFit("robust", MemorySpec("it", ()), (), 2, 5)
    one, other = rival_of(wanted, base), rival_of(wanted, base)
    learn(one, examples(16), steps=5)
    learn(other, examples(16), steps=5)
    for name, weights in one.state_dict().items():
        assert torch.equal(weights, other.state_dict()[name])


def test_other_settings_are_another_rival() -> None:
    usual = RivalFit("adaptive", MemorySpec("it", ()), (), 8, 10, 2.0)
    others = [
        RivalFit("robust", MemorySpec("it", ()), (), 8, 10, 2.0),
        RivalFit("adaptive", MemorySpec("it", (Slice("it", "train"),)), (), 8, 10, 2.0),
        RivalFit("adaptive", MemorySpec("it", ()), (Slice("it", "dev"),), 8, 10, 2.0),
        RivalFit("adaptive", MemorySpec("it", ()), (), 4, 10, 2.0),
        RivalFit("adaptive", MemorySpec("it", ()), (), 8, 11, 2.0),
        RivalFit("adaptive", MemorySpec("it", ()), (), 8, 10, 1.0),
    ]
    assert len({usual.name, *(other.name for other in others)}) == 7


def test_sk_mt_believes_the_memory_less_the_farther_the_nearest_entry_is() -> None:
    """T = 4: λ = 1 − 1 / 4; softmax(−1 / 4, −1 / 4 − ln 3) is ¾ and ¼; beyond T it is believed no more."""
    rival = DistanceAwareKnn(2, temperature=4.0)
    weights, base = rival.weigh(told([1.0, 1.0 + 4 * LN3], [5, 6]))
    assert weights.exp().tolist() == [pytest.approx([0.75 * 0.75, 0.75 * 0.25])]
    assert base.exp().tolist() == pytest.approx([0.25])
    weights, base = rival.weigh(told([5.0, 6.0], [5, 6]))
    assert weights.exp().sum().item() == pytest.approx(0.0, abs=1e-5)
    assert base.exp().tolist() == pytest.approx([1.0], abs=1e-5)


def test_sk_mt_searches_the_sentences_that_need_the_fewest_words_changed(
    taught_marian: Path, data: Path, tmp_path: Path
) -> None:
    pipeline = pipeline_of(taught_marian, data, tmp_path)
    spec = MemorySpec("koran", (Slice("koran", "train", 30),))
    memory = pipeline.memory(spec, sentences=2)
    texts = [source for source, _ in pipeline.corpora.pairs(Slice("koran", "test", 3))]
    retriever = memory.retriever(Batch(texts, torch.device("cpu"), similarity=False))
    (forced, *_) = pipeline.base.force_decode(pipeline.corpora.pairs(Slice("koran", "test", 1)))
    for number, text in enumerate(texts):
        rows = RowsOf(retriever, torch.full((len(forced.keys),), number))
        ids = memory.segment_ids(rows.search(forced.keys, 4).ids)
        best = {match.segment.id for match in memory.matches(text, 2, least=0)}
        assert set(ids.flatten().tolist()) <= best | {-1}
    assert pipeline.memory(spec) is not memory  # any other system sees all of it


def test_sk_mt_translates(taught_marian: Path, data: Path, tmp_path: Path, budget: Budget) -> None:
    pipeline = pipeline_of(taught_marian, data, tmp_path)
    engine = SK_MT.engine(pipeline, domain_setting("koran", budget), budget)
    assert isinstance(engine.smoother, SentenceSearch)
    assert pipeline.translate(engine, Slice("koran", "test", 2)).is_file()
