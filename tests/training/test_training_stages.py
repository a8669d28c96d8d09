"""The stages around training, each on a model that trains in seconds: vocabulary, scores."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from trained import weights

from kster.errors import KsterError
from kster.model import BaseModel
from kster.training import load_settings, train
from kster.training.prepared import PreparedData
from kster.training.scoring import kept, score, scores_file
from kster.training.scoring import main as score_main
from kster.training.vocabulary import Vocabulary


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory, corpus: Path) -> Path:
    """A recipe that has been trained, so that others may begin where it ended."""
    from trained import write_config

    path = write_config(tmp_path_factory.mktemp("first"), corpus)
    train(path)
    return path


def model_of(recipe: Path) -> Path:
    return load_settings(recipe).output_directory / "model"


def test_a_model_takes_a_new_vocabulary_and_keeps_what_it_knows(config: Any, first: Path) -> None:
    """One more step at a rate of almost nothing: the embeddings are those that were carried over."""
    still = {"steps": 1, "learning_rate": 1e-9, "warmup_steps": 0, "average_decay": 0.0, "batch_tokens": 600}
    report = train(
        config(
            init=str(model_of(first)),
            vocabulary={"size": 390, "transplant": True},
            training=still,
            augmentation={"share": 0.5},
        )
    )
    old, new = Vocabulary.load(model_of(first)), Vocabulary.load(report.model)  # type: ignore[arg-type]
    assert new.size < old.size
    before, after = (
        weights(model)["model.shared.weight"].float() for model in (model_of(first), report.model)
    )
    common = [piece for piece in new.ids if piece in old.ids]
    assert len(common) > 300
    torch.testing.assert_close(
        after[[new.ids[p] for p in common]], before[[old.ids[p] for p in common]], atol=1e-6, rtol=0
    )
    for piece in new.ids.keys() - old.ids.keys():
        mean = before[old.spelling(piece)].mean(dim=0)
        torch.testing.assert_close(after[new.ids[piece]], mean, atol=1e-6, rtol=0)
    config_after = json.loads((report.model / "config.json").read_text())  # type: ignore[operator]
    assert config_after["decoder_start_token_id"] == config_after["pad_token_id"] == new.pad_id
    BaseModel.load(str(report.model))


def test_a_model_trained_from_prepared_data_is_trained_on_with_them(config: Any, first: Path) -> None:
    """It brings its own vocabulary, which is the one that was learned when the data were prepared."""
    settings = load_settings(first)
    still = {"steps": 1, "warmup_steps": 0, "batch_tokens": 600}
    assert train(config(prepared=settings.prepared, init=str(model_of(first)), training=still)).finished


def test_a_transplant_without_a_model_is_refused(config: Any) -> None:
    with pytest.raises(KsterError, match=r"vocabulary\.transplant: needs `init`"):
        load_settings(config(vocabulary={"size": 400, "transplant": True}))


def test_scores_are_the_models_own_losses(first: Path) -> None:
    settings = load_settings(first)
    scores = score(settings, model_of(first))
    prepared = PreparedData.open(settings.prepared_directory)
    vocabulary = prepared.vocabulary()
    sides = prepared.split("train")
    model = BaseModel.load(model_of(first))
    for i in (0, 7, len(scores) - 1):
        pair = [
            vocabulary.decode(side.tokens[side.offsets[i] : side.offsets[i + 1]], n)
            for n, side in enumerate(sides)
        ]
        (forced,) = model.force_decode([(pair[0], pair[1])])
        assert scores[i] == pytest.approx(-float(forced.log_probs.mean()), abs=1e-3)


def test_the_worst_pairs_of_a_corpus_are_not_trained_on(
    first: Path, config: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = load_settings(first)
    keeping = config(prepared=settings.prepared, corpora=[{**CORPUS, "keep": 0.75}])
    scores_file(settings).unlink(missing_ok=True)
    with pytest.raises(KsterError, match="`keep` needs scores"):
        train(keeping)
    assert score_main([str(first), "--model", str(model_of(first))]) == 0
    assert "pairs scored" in capsys.readouterr().out
    scores = np.load(scores_file(settings))
    used = kept(load_settings(keeping), [len(scores)])
    assert used is not None
    assert 0.7 < used.mean() < 0.8
    assert scores[used].max() < scores[~used].min()
    assert train(keeping).finished


CORPUS = {"name": "train", "source": "train.en", "target": "train.de"}


def test_another_vocabulary_cannot_score(first: Path, tiny_marian: Path) -> None:
    with pytest.raises(KsterError, match="has another vocabulary than"):
        score(load_settings(first), tiny_marian)
