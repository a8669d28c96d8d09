"""The command that gives a base model its default smoother."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from experiments import default_smoother
from experiments.data import Slice
from experiments.pipeline import Pipeline

from kster.smoothing import SAFE_KNN, Smoother

DOMAINS = {"it-0": Slice("it", "train", 30), "koran-0": Slice("koran", "train", 30, 30)}


def test_a_model_gets_a_smoother_that_experiments_find(
    tiny_marian: Path,
    data: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(default_smoother, "DOMAINS", DOMAINS)
    model = shutil.copytree(tiny_marian, tmp_path / "model")
    before = Pipeline(model, data, tmp_path / "out", tmp_path / "cache", device="cpu")
    assert before.default_smoother() == SAFE_KNN

    monkeypatch.setattr("sys.argv", ["default_smoother", str(model), "--data", str(data), "--quick"])
    assert default_smoother.main() == 0
    table = capsys.readouterr().out
    assert "it-0" in table
    assert "koran-0" in table
    report = json.loads((model / "smoother" / "report.json").read_text())
    assert {(r["domain"], r["size"]) for r in report["results"]} == {
        (domain, size) for domain in DOMAINS for size in (1, 18)
    }

    after = Pipeline(model, data, tmp_path / "out", tmp_path / "cache", device="cpu")
    found = after.default_smoother()
    assert isinstance(found, Path)
    assert isinstance(after.smoother(found), Smoother)


def test_missing_data_are_named(tiny_marian: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "sys.argv", ["default_smoother", str(tiny_marian), "--data", str(tmp_path / "nowhere")]
    )
    assert default_smoother.main() == 2
