"""Tuning kNN-MT: one sweep, equal to trying each combination by itself."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

from kster.errors import KsterError
from kster.memory import Memory
from kster.model import BaseModel
from kster.smoothing import resolve_smoother, tune
from kster.smoothing.fitting.key_table import KeyTable
from kster.smoothing.fitting.lookup import Lookup, cache_pairs
from kster.smoothing.fitting.optimisation import Source, evaluate
from kster.smoothing.fitting.sweep import Grid
from kster.smoothing.smoother import Smoother
from smoothing.conftest import make_pairs


@pytest.mark.parametrize("kernel", ["gaussian", "laplacian"])
@pytest.mark.parametrize("exact_match", [None, 0.98])
def test_the_sweep_equals_a_smoother_per_combination(
    model: BaseModel,
    memory: Memory,
    kernel: str,
    exact_match: float | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    dev = make_pairs(12, seed=9)
    tuning = sys.modules["kster.smoothing.fitting.tune"]
    monkeypatch.setattr(tuning, "default_grid", lambda *_: Grid((1, 5), (0.5, 20.0), (0.2, 0.9)))
    report = tune(model, memory, dev, ks=(1, 5), kernel=kernel, exact_match=exact_match)  # type: ignore[arg-type]
    entries = memory.entries()
    source = Source(
        cache_pairs(Lookup(model, memory, entries), dev, 21), KeyTable(entries, torch.device("cpu"))
    )
    assert len(report.trials) == 8
    for trial in report.trials:
        smoother = Smoother(trial.settings(kernel, exact_match))  # type: ignore[arg-type]
        assert trial.nll == pytest.approx(evaluate(smoother, source, torch.device("cpu")).nll, abs=1e-4)
    assert report.best.nll == min(trial.nll for trial in report.trials)


def test_tuned_settings_are_saved_and_found_by_the_knn_method(model: BaseModel, memory: Memory) -> None:
    report = tune(model, memory, make_pairs(12, seed=9))
    assert report.best.nll < report.base_nll
    assert (memory.directory / "smoother" / "tune.json").is_file()
    resolved = resolve_smoother("knn", [memory.directory], model)
    assert resolved.origin == "memory"
    assert resolved.smoother.settings == report.best.settings("gaussian", 0.98)


def test_without_development_pairs_the_memory_is_searched_as_if_a_segment_were_not_in_it(
    model: BaseModel, memory: Memory, caplog: pytest.LogCaptureFixture
) -> None:
    held_out = tune(model, memory, exact_match=None)
    assert (held_out.dev_origin, held_out.dev_in_memory) == ("held out", 0)
    # The same segments given as text are hidden as well, and somebody should know.
    with caplog.at_level("WARNING", logger="kster.smoothing"):
        given = tune(model, memory, [(s.source, s.target) for s in memory.segments()], exact_match=None)
    assert given.best.nll == pytest.approx(held_out.best.nll, abs=1e-3)
    count = memory.info().segments
    assert (given.dev_origin, given.dev_in_memory) == ("given", count)
    assert f"{count} of {count} development pairs have a target that is in the memory" in caplog.text


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"ks": (0,)}, "each from 1 to 1,024"),
        ({"ks": (8, 1025)}, "each from 1 to 1,024"),
        ({"ks": ()}, "at least one"),
        ({"kernel": "cosine"}, "gaussian or laplacian"),
    ],
)
def test_wrong_grids_are_refused_and_nothing_is_written(
    model: BaseModel, memory: Memory, wrong: dict[str, object], message: str
) -> None:
    with pytest.raises(KsterError, match=message):
        tune(model, memory, make_pairs(2, seed=9), **wrong)  # type: ignore[arg-type]
    assert not (memory.directory / "smoother" / "knn.json").exists()


def test_an_empty_memory_cannot_be_tuned(model: BaseModel, tmp_path: Path) -> None:
    with (
        Memory.create(tmp_path / "empty", model) as memory,
        pytest.raises(KsterError, match="the memory is empty"),
    ):
        tune(model, memory, make_pairs(2, seed=9))
