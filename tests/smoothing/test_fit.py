"""Fitting on a small real memory: better than the base model, repeatable, and saved with its report."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path

import pytest
import torch

from by_transformers import network_of
from kster.errors import KsterError
from kster.formats import Pair
from kster.limits import LARGEST_K, LARGEST_SEARCH
from kster.memory import Memory
from kster.model import BaseModel
from kster.smoothing import FitSettings, Smoother, fit
from kster.smoothing.fitting.fit import over_fetch
from smoothing.conftest import make_pairs

QUICK = {
    "steps": 60,
    "batch_tokens": 512,
    "evaluate_every": 20,
    "max_tokens": 600,
    "k": 8,
    "general_share": 0.0,
}


def test_a_fit_is_more_likely_than_the_base_model_on_unseen_text(model: BaseModel, memory: Memory) -> None:
    settings = FitSettings(**QUICK, start="paper")  # type: ignore[arg-type]
    report = fit(model, memory, settings, dev=make_pairs(20, seed=9))
    assert report.dev.kster < report.dev.base - 1.0
    assert report.dev.knn < report.dev.base - 1.0
    assert report.curve[-1].dev_nll < report.curve[0].dev_nll


def test_the_papers_recipe_learns_too(model: BaseModel, memory: Memory) -> None:
    report = fit(model, memory, FitSettings.paper(kernel="gaussian", **QUICK), dev=make_pairs(20, seed=9))
    assert report.dev.kster < report.dev.base - 1.0
    smoother = Smoother.load(memory.directory / "smoother", dimension=model.dimension)
    assert (smoother.settings.features, smoother.settings.exact_match) == ("paper", None)


def test_the_saved_smoother_is_the_best_of_the_curve(model: BaseModel, memory: Memory) -> None:
    report = fit(model, memory, FitSettings(**QUICK, learning_rate=0.05, start="tuned"))  # type: ignore[arg-type]
    assert report.dev.kster == pytest.approx(min(point.dev_nll for point in report.curve), abs=1e-6)


def test_it_stops_when_patience_is_over(model: BaseModel, memory: Memory) -> None:
    """A learning rate that can only make things worse."""
    settings = FitSettings(**(QUICK | {"steps": 400, "evaluate_every": 2}), learning_rate=30.0, patience=3)  # type: ignore[arg-type]
    report = fit(model, memory, settings)
    best = min(report.curve, key=lambda point: point.dev_nll)
    assert report.curve[-1].step == best.step + 3 * 2
    assert report.curve[-1].step < 400


def test_the_same_seed_gives_the_same_smoother_and_another_seed_another(
    model: BaseModel, memory: Memory
) -> None:
    def weights(seed: int) -> dict[str, torch.Tensor]:
        fit(model, memory, FitSettings(**QUICK, seed=seed))  # type: ignore[arg-type]
        return Smoother.load(memory.directory / "smoother").state_dict()

    first, second, other = weights(1), weights(1), weights(2)
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert not all(torch.equal(first[name], other[name]) for name in first)


def test_fitting_leaves_the_callers_random_numbers_alone(model: BaseModel, memory: Memory) -> None:
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    fit(model, memory, FitSettings(**(QUICK | {"steps": 1})))  # type: ignore[arg-type]
    assert torch.equal(torch.rand(3), expected)


def test_the_report_says_how_it_was_made(model: BaseModel, memory: Memory) -> None:
    seen: list[tuple[str, int]] = []
    settings = FitSettings(**QUICK, label_smoothing=0.1, dropout="nearest")  # type: ignore[arg-type]
    report = fit(model, memory, settings, progress=lambda what, done, _: seen.append((what, done)))
    saved = json.loads((memory.directory / "smoother" / "fit.json").read_text(encoding="utf-8"))
    assert saved == json.loads(json.dumps(report.to_json()))
    assert saved["settings"]["dropout"] == "nearest"
    assert saved["dev_origin"] == "held out"
    assert saved["fingerprint"] == model.fingerprint
    assert saved["memory_entries"] == memory.entry_count
    assert 0 < saved["train_tokens"] <= memory.entry_count - saved["dev"]["tokens"]
    assert saved["general_tokens"] == 0
    assert (
        sum(saved["mixing_weight"]["counts"]) == sum(saved["bandwidth"]["counts"]) == saved["dev"]["tokens"]
    )
    assert 0.0 <= saved["mixing_weight"]["quantiles"]["0.5"] <= 1.0
    assert [point["step"] for point in saved["curve"]] == [0, 20, 40, 60]
    assert {what for what, _ in seen} == {"caching", "fitting", "judging"}


def test_general_text_teaches_it_when_not_to_believe_the_memory(model: BaseModel, memory: Memory) -> None:
    """Gold tokens the base model likes and the memory does not have: λ must fall on such text."""
    general = [(source, text) for source, _ in make_pairs(20, seed=4) for text in _greedy(model, source)]
    dev = make_pairs(10, seed=9)
    without = fit(model, memory, FitSettings(**QUICK), dev=dev, general=general)  # type: ignore[arg-type]
    assert without.general is None
    mixed = fit(model, memory, FitSettings(**(QUICK | {"general_share": 0.5})), dev=dev, general=general)  # type: ignore[arg-type]
    assert mixed.general is not None
    assert mixed.train_tokens == without.train_tokens < memory.entry_count
    assert mixed.general_tokens > 0
    assert mixed.general.kster < mixed.curve[0].dev_nll * 2 - without.curve[0].dev_nll  # before training


def _greedy(model: BaseModel, source: str) -> list[str]:
    ids = torch.tensor(model.tokenise_source([source]))
    with torch.no_grad():
        tokens = network_of(model).generate(ids, num_beams=1, do_sample=False, max_new_tokens=8)
    return [text for text in model.detokenise(tokens.tolist()) if text.strip()]


def test_an_interrupted_fit_leaves_the_earlier_one_in_use(model: BaseModel, memory: Memory) -> None:
    fit(model, memory, FitSettings(**QUICK))  # type: ignore[arg-type]
    before = {path.name: path.read_bytes() for path in (memory.directory / "smoother").iterdir()}

    def interrupt(what: str, done: int, total: int) -> None:
        if what == "fitting":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(model, memory, FitSettings(**QUICK, seed=2), progress=interrupt)  # type: ignore[arg-type]
    assert before == {path.name: path.read_bytes() for path in (memory.directory / "smoother").iterdir()}


def test_an_empty_memory_cannot_be_fitted(model: BaseModel, tmp_path: Path) -> None:
    with (
        Memory.create(tmp_path / "empty", model) as memory,
        pytest.raises(KsterError, match="the memory is empty"),
    ):
        fit(model, memory)


@pytest.mark.parametrize(
    ("setting", "value", "message"),
    [
        ("dropout", "all", "nearest, provenance, none"),
        ("keep_rate", 1.5, "at least 0 and below 1"),
        ("steps", 0, "at least 1"),
        ("learning_rate", 0.0, "above 0"),
        ("kernel", "cosine", "gaussian, laplacian"),
        ("dev_fraction", 0.0, "above 0"),
        ("start", "random", "paper, tuned"),
        ("learning_rate", float("inf"), "above 0"),
        ("seed", -1, "from 0 to"),
        ("seed", 10**20, "from 0 to"),
        ("bandwidth", 0.0, "above 0"),
        ("mixing_weight", 1.5, "from 0 to 0.999999"),
    ],
)
def test_a_wrong_fit_setting_is_named_with_what_is_accepted(
    setting: str, value: object, message: str
) -> None:
    with pytest.raises(KsterError, match=message) as caught:
        FitSettings(**{setting: value})  # type: ignore[arg-type]
    assert setting in str(caught.value)


def test_with_nothing_to_learn_it_points_to_tune() -> None:
    with pytest.raises(KsterError, match="Use tune"):
        FitSettings(learn_bandwidth=False, learn_weight=False)


def test_enough_neighbours_are_fetched_for_the_papers_dropout() -> None:
    assert over_fetch(FitSettings.paper()) >= 17
    assert over_fetch(FitSettings(k=LARGEST_K, metric=8)) <= LARGEST_SEARCH


def test_a_second_fit_reads_what_the_first_looked_up(
    model: BaseModel, memory: Memory, tmp_path: Path
) -> None:
    said: list[str] = []

    def weights(caches: Path | None) -> dict[str, torch.Tensor]:
        said.clear()
        settings = FitSettings(**QUICK)  # type: ignore[arg-type]
        fit(model, memory, settings, progress=lambda what, _, __: said.append(what), caches=caches)
        return Smoother.load(memory.directory / "smoother").state_dict()

    plain, first = weights(None), weights(tmp_path / "caches")
    assert "caching" in said
    second = weights(tmp_path / "caches")
    assert "caching" not in said
    assert all(torch.equal(plain[name], kept[name]) for kept in (first, second) for name in plain)


def test_text_that_ships_is_the_general_text_unless_told_otherwise(model: BaseModel, memory: Memory) -> None:
    settings = FitSettings(**(QUICK | {"general_share": 0.3, "steps": 2}))  # type: ignore[arg-type]
    shipped = fit(model, memory, settings)
    assert shipped.general is not None
    assert shipped.general.tokens > 100  # a tenth of it is held out
    assert fit(model, memory, settings, general=[]).general is None
    assert fit(model, memory, FitSettings.paper(**(QUICK | {"steps": 2}))).general is None  # type: ignore[arg-type]


def test_a_fit_can_start_from_the_smoother_that_the_model_carries(tiny_marian: Path, tmp_path: Path) -> None:
    directory = shutil.copytree(tiny_marian, tmp_path / "model")
    model = BaseModel.load(directory, device="cpu")
    with Memory.create(tmp_path / "memory", model) as memory:
        memory.import_pairs(Pair(*pair) for pair in make_pairs(20, seed=1))
        settings = FitSettings(
            **(QUICK | {"steps": 1, "learning_rate": 1e-9}), start="carried", similarity=False
        )  # type: ignore[arg-type]
        tuned = fit(model, memory, settings)  # the model carries none
        carried = Smoother(settings.smoother(model.dimension, bandwidth=3.0, mixing_weight=0.9))
        carried.save(directory / "smoother")
        report = fit(model, memory, settings)
        assert report.mixing_weight.mean == pytest.approx(0.9, abs=0.01)
        assert tuned.mixing_weight.mean != pytest.approx(0.9, abs=0.01)
        fit(model, memory, dataclasses.replace(settings, k=4))  # the networks serve any number of neighbours
        started = Smoother.load(memory.directory / "smoother")
        assert started.k == 4
        assert started.settings.mixing_weight == 0.9
        other = FitSettings(**(QUICK | {"steps": 1}), start="carried", kernel="gaussian")  # type: ignore[arg-type]
        fit(model, memory, other)  # of another kind: not started from
        assert Smoother.load(memory.directory / "smoother").settings.kernel == "gaussian"


def test_a_fit_without_a_sure_gain_leaves_what_the_model_carries(
    tiny_marian: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    directory = shutil.copytree(tiny_marian, tmp_path / "model")
    model = BaseModel.load(directory, device="cpu")
    settings = FitSettings(**QUICK, start="carried", similarity=False)  # type: ignore[arg-type]
    with Memory.create(tmp_path / "large", model) as large:
        large.import_pairs(Pair(*pair) for pair in make_pairs(150, seed=1))
        fit(model, large, settings)
        good = Smoother.load(large.directory / "smoother")
        good.save(directory / "smoother")
    bad = Smoother(settings.smoother(model.dimension, bandwidth=3.0, mixing_weight=0.1))
    with Memory.create(tmp_path / "small", model) as small:
        small.import_pairs(Pair(*pair) for pair in make_pairs(6, seed=2))
        fit(model, small, settings)
        kept = Smoother.load(small.directory / "smoother")
        assert all(torch.equal(kept.state_dict()[name], value) for name, value in good.state_dict().items())
        assert "the model's own smoother stays in use" in caplog.text
        caplog.clear()
        bad.save(directory / "smoother")
        fit(model, small, settings)  # a sure gain: anything is better than that one
        assert Smoother.load(small.directory / "smoother").state_dict().keys() == bad.state_dict().keys()
        assert not caplog.text


def test_what_is_not_learned_stays_where_it_was_told_to_start(model: BaseModel, memory: Memory) -> None:
    given = {"start": "carried", "bandwidth": 7.0, "mixing_weight": 0.7, "exact_match": None}
    given |= {"similarity": False}  # words that neighbours lack make λ smaller
    report = fit(model, memory, FitSettings(**QUICK, **given, learn_weight=False))  # type: ignore[arg-type]
    assert report.settings["mixing_weight"] == 0.7
    fitted = Smoother.load(memory.directory / "smoother")
    assert (fitted.settings.bandwidth, fitted.settings.mixing_weight) == (7.0, 0.7)
    assert (
        report.mixing_weight.quantiles["0.0"] == report.mixing_weight.quantiles["1.0"] == pytest.approx(0.7)
    )
    assert "mixing_weight" not in FitSettings().to_json()  # left to `start`


@pytest.mark.parametrize("kind", ["dev", "general"])
def test_text_too_long_for_the_model_is_refused_before_any_work(
    model: BaseModel, memory: Memory, kind: str
) -> None:
    text = {kind: [("house", "Haus"), ("word " * 600, "Wort")]}
    done: list[int] = []
    settings = FitSettings(**(QUICK | {"general_share": 0.3}))  # type: ignore[arg-type]
    with pytest.raises(KsterError, match=r"pair 2 of the text to fit or tune on has \d+ tokens"):
        fit(model, memory, settings, **text, progress=lambda _, tokens, __: done.append(tokens))  # type: ignore[arg-type]
    assert done == []
