"""The learned measure of distance: its arithmetic, what it is for, and when a fit keeps it."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
import torch

from kster.errors import KsterError
from kster.limits import LARGEST_K, LARGEST_SEARCH
from kster.memory import Memory, Neighbours
from kster.model import BaseModel
from kster.smoothing import FitSettings, Smoother, SmootherSettings, fit
from kster.smoothing.fitting.cache import EXTERNAL, FitCache
from kster.smoothing.fitting.key_table import KeyTable
from kster.smoothing.fitting.metric_fit import SURE, learn_metric
from kster.smoothing.fitting.optimisation import (
    CurvePoint,
    Evaluation,
    Optimisation,
    Source,
    evaluate,
    surely_better,
)
from kster.smoothing.metric import NUMBERS_AT_ONCE, Metric
from kster.translation import Translator
from smoothing.conftest import make_pairs

CPU = torch.device("cpu")
QUICK = {"steps": 20, "batch_tokens": 512, "evaluate_every": 10, "general_share": 0.0, "k": 4}


def metric_of(scale: float, weight: list[list[float]]) -> Metric:
    metric = Metric(len(weight[0]), len(weight))
    with torch.no_grad():
        metric.scale.fill_(scale)
        metric.weight.copy_(torch.tensor(weight))
    return metric


def test_distances_by_hand() -> None:
    metric = metric_of(0.5, [[0.0, 2.0]])
    queries = torch.tensor([[1.0, 1.0], [0.0, 0.0]])
    keys = torch.tensor([[[1.0, 1.0], [4.0, 5.0]], [[3.0, 0.0], [0.0, 3.0]]], dtype=torch.float16)
    # 0.25 · 25 + (2 · 4)² = 70.25; 0.25 · 9 = 2.25; 0.25 · 9 + (2 · 3)² = 38.25
    expected = torch.tensor([[0.0, math.sqrt(70.25)], [1.5, math.sqrt(38.25)]])
    torch.testing.assert_close(metric(queries, keys), expected, atol=1e-4, rtol=1e-5)


def test_what_is_nearest_by_it_comes_first_and_brings_its_value_and_key_along() -> None:
    metric = metric_of(0.1, [[0.0, 1.0]])
    queries = torch.zeros(1, 2)
    found = Neighbours(
        distances=torch.tensor([[1.0, 2.0, 2.0, torch.inf]]),
        values=torch.tensor([[11, 12, 13, 0]]),
        ids=torch.tensor([[1, 2, 3, -1]]),
        keys=torch.tensor([[[0.0, 1.0], [2.0, 0.0], [-2.0, 0.0], [0.0, 0.0]]], dtype=torch.float16),
    )
    nearest = found.measured(metric(queries, found.keys).masked_fill(found.ids < 0, torch.inf), 3)
    assert nearest.values.tolist() == [[13, 12, 11]]  # of equal ones the newest first
    assert nearest.ids.tolist() == [[3, 2, 1]]
    assert nearest.keys[0, :, 0].tolist() == [-2.0, 2.0, 0.0]
    torch.testing.assert_close(nearest.distances, torch.tensor([[0.2, 0.2, math.sqrt(1.01)]]))
    all_four = found.measured(metric(queries, found.keys).masked_fill(found.ids < 0, torch.inf), 4)
    assert all_four.ids[0, 3] == -1
    assert all_four.distances[0, 3] == torch.inf


def test_it_begins_close_to_the_plain_distance() -> None:
    generator = torch.Generator().manual_seed(0)
    differences = torch.randn(500, 16, generator=generator) * torch.logspace(0, -2, 16)
    metric = Metric(16, 6)
    metric.begin(differences)
    ours = metric(torch.zeros(500, 16), -differences.unsqueeze(1)).squeeze(1).detach()
    plain = differences.norm(dim=-1)
    assert float(ours.square().mean()) == pytest.approx(float(plain.square().mean()), rel=1e-4)
    assert torch.corrcoef(torch.stack([ours, plain]))[0, 1] > 0.99
    nothing = Metric(16, 6)
    nothing.begin(torch.zeros(0, 16))
    assert nothing.weight.isfinite().all()


def puzzle(tokens: int, seed: int, keys: torch.Tensor, values: torch.Tensor, ids: torch.Tensor) -> FitCache:
    """Tokens that are told by the first two of 16 dimensions, while the others differ more."""
    generator = torch.Generator().manual_seed(seed)
    gold = torch.randint(4, (tokens,), generator=generator)
    queries = contexts(gold, generator)
    distances, rows = torch.cdist(queries, keys).topk(32, largest=False)
    vague = torch.full((tokens,), math.log(0.25))
    return FitCache(
        queries=queries.half(),
        gold=gold,
        segment_ids=torch.full((tokens,), EXTERNAL),
        ids=ids[rows].int(),
        distances=distances,
        values=values[rows].int(),
        related=torch.zeros(tokens, 32, dtype=torch.bool),
        log_probs=vague,
        log_probs_at_values=vague.unsqueeze(-1).expand(-1, 32).clone(),
        mean_log_prob=vague,
        max_log_prob=vague,
        similarity=torch.zeros(tokens, 32),
        missing=torch.zeros(tokens, 32),
        taught=torch.zeros(tokens, 32),
        older=torch.zeros(tokens, 32).bool(),
    )


def contexts(tokens: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    states = torch.randn(len(tokens), 16, generator=generator)
    states[:, 0] = (tokens % 2) + 0.1 * states[:, 0]
    states[:, 1] = (tokens // 2) + 0.1 * states[:, 1]
    return states


def test_it_learns_which_directions_tell_what_comes_next(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = torch.Generator().manual_seed(0)
    values = torch.randint(4, (3_000,), generator=generator)
    keys, ids = contexts(values, generator), torch.arange(1, 3_001)
    table = KeyTable.joined(ids, keys.half(), CPU)
    train, dev = (Source(puzzle(n, seed, keys, values, ids), table) for n, seed in ((4_000, 1), (500, 2)))
    settings = FitSettings(steps=150, batch_tokens=512, evaluate_every=25, k=8, exact_match=None, metric=4)
    plain = Smoother(settings.smoother(16))
    run = Optimisation(plain, [train], [dev], settings, 4, CPU)
    run.run()
    seen: list[CurvePoint] = []
    measured, curve = learn_metric(run, 150, seen.append)
    assert measured.metric is not None
    assert evaluate(measured, dev, CPU).nll < evaluate(plain, dev, CPU).nll - 0.2
    stretched = measured.metric.weight.detach().square().sum(0)  # of each dimension
    assert stretched[:2].min() > stretched[2:].max()
    assert curve[0].step == 175
    assert seen == curve

    # However few tokens are measured at once, the answer is the same.
    whole = evaluate(measured, dev, CPU).losses
    monkeypatch.setitem(NUMBERS_AT_ONCE, "cpu", 7 * 16 * 16)
    torch.testing.assert_close(evaluate(measured, dev, CPU).losses, whole)


def test_a_fit_keeps_it_only_if_it_helps(
    model: BaseModel, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    dev = make_pairs(10, seed=9)
    seen: list[tuple[str, int]] = []
    settings = FitSettings(**QUICK, metric=8)  # type: ignore[arg-type]
    report = fit(model, memory, settings, dev, progress=lambda what, done, _: seen.append((what, done)))
    saved = Smoother.load(memory.directory / "smoother", dimension=model.dimension)
    assert report.metric == saved.settings.metric
    assert (saved.metric is not None) == (report.metric > 0)
    assert [done for what, done in seen if what == "measuring"] == [10, 20, 30, 40]
    assert report.seconds["measuring"] > 0
    plain = fit(model, memory, FitSettings(**QUICK), dev)  # type: ignore[arg-type]
    assert plain.metric == 0
    assert report.dev.kster < plain.dev.kster if report.metric else report.dev.kster == plain.dev.kster

    # One that has unlearned everything is not kept, nor is its curve.
    monkeypatch.setattr(Metric, "begin", lambda self, differences: self.scale.data.fill_(1e3))
    worse = fit(model, memory, settings, dev)
    assert worse.metric == 0
    assert worse.dev.kster == plain.dev.kster
    assert [point.step for point in worse.curve] == [0, 10, 20]


def test_a_gain_that_may_be_chance_is_none() -> None:
    def evaluation(losses: torch.Tensor) -> Evaluation:
        return Evaluation(losses, losses, losses)

    before = torch.rand(2_000, generator=torch.Generator().manual_seed(0))
    noise = torch.randn(2_000, generator=torch.Generator().manual_seed(1))
    better = [evaluation(before - 0.1 + 0.5 * noise)]
    luckier = [evaluation(before - 0.02 + 0.5 * (noise - noise.mean()))]
    assert surely_better(better, [evaluation(before)], SURE)
    assert luckier[0].nll < float(before.double().mean())
    assert not surely_better(luckier, [evaluation(before)], SURE)
    # What one source gains may be lost by the other.
    assert not surely_better([*better, evaluation(before + 0.2)], 2 * [evaluation(before)], SURE)


def test_what_is_exact_is_not_learned() -> None:
    """One neighbour is the query itself; the other looks like it to a W that does not see the difference."""
    settings = SmootherSettings(
        k=2,
        dimension=4,
        learn_bandwidth=False,
        learn_weight=False,
        mixing_weight=0.1,
        exact_match=0.98,
        metric=1,
    )
    smoother = Smoother(settings).eval()
    metric = smoother.metric
    assert metric is not None
    with torch.no_grad():
        metric.scale.fill_(0.0)
        metric.weight.copy_(torch.tensor([[1.0, 0.0, 0.0, 0.0]]))
    queries = torch.tensor([[1.0, 2.0, 0.0, 0.0]])

    def believed(*keys: list[float]) -> tuple[float, list[float]]:
        found = Neighbours(
            distances=torch.cdist(queries[:, None], torch.tensor([keys]))[:, 0],
            values=torch.tensor([[5, 6]]),
            ids=torch.tensor([[1, 2]]),
            keys=torch.tensor([keys], dtype=torch.float16),
        )
        smoothing = smoother(queries, found.measured(metric(queries, found.keys), 2))
        return float(smoothing.mixing_weight), smoothing.log_weights.exp()[0].sort().values.tolist()

    weight, shares = believed([1.0, 2.0, 0.0, 0.0], [1.0, 0.0, 2.0, 0.0])
    assert weight > 0.97
    assert shares == pytest.approx([0.0, 1.0], abs=1e-3)
    weight, shares = believed([1.0, 0.0, 0.0, 2.0], [1.0, 0.0, 2.0, 0.0])
    assert weight == pytest.approx(0.1)
    assert shares == pytest.approx([0.5, 0.5])


@pytest.fixture
def measuring(model: BaseModel) -> Smoother:
    """Weighs by a W of random numbers."""
    torch.manual_seed(3)
    settings = SmootherSettings(
        k=4, dimension=model.dimension, features="confidence", exact_match=0.98, metric=6
    )
    smoother = Smoother(settings).eval()
    assert smoother.metric is not None
    torch.nn.init.normal_(smoother.metric.weight, std=0.5)
    return smoother


def test_twice_as_many_are_searched_for_and_the_nearest_used(
    model: BaseModel, memory: Memory, measuring: Smoother
) -> None:
    entries = memory.entries()
    queries = entries.keys_of(entries.ids[:20]).float() + 0.1
    plain = memory.search(queries, 8)
    neighbours = measuring.neighbours(memory, queries)
    assert measuring.metric is not None
    for row in range(20):
        differences = queries[row] - plain.keys[row].float()
        squared = differences.square().sum(-1) + (differences @ measuring.metric.weight.T).square().sum(-1)
        order = squared.sort().values[:4].sqrt()
        torch.testing.assert_close(neighbours.distances[row], order, rtol=1e-4, atol=1e-4)
    assert (neighbours.distances[:, :-1] <= neighbours.distances[:, 1:]).all()


def test_decoding_and_explaining_measure_alike(model: BaseModel, memory: Memory, measuring: Smoother) -> None:
    source, _ = make_pairs(1, seed=21)[0]
    options = {"memory": memory, "smoother": measuring, "length_penalty": 0.0, "explain": True}
    (best,) = Translator(model).translate([source], **options)  # type: ignore[arg-type]
    assert best.tokens is not None
    explained = sum(math.log(token.probability) for token in best.tokens)
    assert best.score == pytest.approx(explained, abs=2e-2)
    assert any(len(token.examples) for token in best.tokens)


def test_it_is_saved_with_the_smoother_and_missed_when_damaged(measuring: Smoother, tmp_path: Path) -> None:
    measuring.save(tmp_path)
    again = Smoother.load(tmp_path)
    assert again.metric is not None
    assert measuring.metric is not None
    assert torch.equal(again.metric.weight, measuring.metric.weight)
    path = tmp_path / "smoother.json"
    settings = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(settings | {"metric": 0}), encoding="utf-8")
    with pytest.raises(KsterError, match="the settings are not what was written"):
        Smoother.load(tmp_path)


def test_settings_that_make_no_sense_are_refused() -> None:
    for wrong, message in (
        (-1, "is -1; must be at least 0"),
        (4.5, "a whole number"),
        (True, "a whole number"),
    ):
        with pytest.raises(KsterError, match=f"metric: .*{message}"):
            FitSettings(metric=wrong)  # type: ignore[arg-type]
    with pytest.raises(KsterError, match="dimension, the length of the model's keys, is missing"):
        SmootherSettings(learn_bandwidth=False, learn_weight=False, metric=4)
    assert SmootherSettings(k=LARGEST_K, dimension=4, metric=4).candidates <= LARGEST_SEARCH
