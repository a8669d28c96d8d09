"""A data directory and a scale small enough for tests."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from experiments.budget import QUICK, Budget

from experiment_tables.worlds import make_data, make_wordnet


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_data(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="session")
def budget() -> Budget:
    fit = QUICK.fit | {"steps": 6, "batch_tokens": 256, "evaluate_every": 3, "max_tokens": 200, "k": 4}
    small = replace(QUICK, memory=30, test=3, dev=6, dev_decoded=2, fit=fit, sizes=(5, 20), online=4)
    small = replace(small, published_fit=fit, general_memory=20)
    return replace(small, ks=(4,), climbs=0, domains=("koran", "law"))


@pytest.fixture(scope="session")
def wordnet_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_wordnet(tmp_path_factory.mktemp("wordnet"))


@pytest.fixture(autouse=True)
def own_wordnet(monkeypatch: pytest.MonkeyPatch, wordnet_directory: Path) -> None:
    """Tests do not depend on what is installed."""
    monkeypatch.setenv("WNSEARCHDIR", str(wordnet_directory))
    monkeypatch.setattr("experiments.contrastive.thesaurus_of", lambda language: None)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch, budget: Budget) -> None:
    monkeypatch.setattr("experiments.command.QUICK", budget)
    monkeypatch.setattr("experiments.results.RESAMPLES", 20)
    monkeypatch.setattr("experiments.robustness.SEEDS", (1, 2))
