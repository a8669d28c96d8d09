"""What is refused before anything is done: another model's place, a full result, text that is missing."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from kster.errors import KsterError
from kster.experiments.command import Request, carry_out
from kster.experiments.data import Slice
from kster.experiments.engine import Engine, MemorySpec
from kster.experiments.pipeline import Pipeline
from kster.experiments.run import result_file
from kster.experiments.scale import Scale
from kster.experiments.stages import read_json, write_json
from kster.experiments.systems import choose
from kster.smoothing.sweep import Trial


@pytest.fixture(scope="module")
def turned(taught_marian: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same weights, said to translate from German into English."""
    model = Path(shutil.copytree(taught_marian, tmp_path_factory.mktemp("turned") / "de-en"))
    config = json.loads((model / "tokenizer_config.json").read_text())
    (model / "tokenizer_config.json").write_text(
        json.dumps(config | {"source_lang": "de", "target_lang": "en"})
    )
    return model


@pytest.fixture(scope="module")
def another(taught_marian: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Another model of the same direction: its vocabulary file differs, if only by a space."""
    model = Path(shutil.copytree(taught_marian, tmp_path_factory.mktemp("another") / "en-de"))
    with (model / "vocab.json").open("a") as file:
        file.write("\n")
    return model


def ask(name: str, data: Path, models: list[Path], out: Path, **others: Any) -> Request:
    return Request(name, data, [str(model) for model in models], out, stage="run", device="cpu", **others)


def test_two_models_of_one_direction_are_refused(
    taught_marian: Path, another: Path, data: Path, tmp_path: Path
) -> None:
    with pytest.raises(KsterError, match=r"another model for en → de, .*its own --out"):
        carry_out(ask("unseen", data, [taught_marian, another], tmp_path, quick=True))


def test_results_of_another_model_are_not_replaced(
    taught_marian: Path,
    another: Path,
    data: Path,
    tmp_path: Path,
    scale: Scale,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("kster.experiments.command.QUICK", scale)
    assert carry_out(ask("unseen", data, [taught_marian], tmp_path, quick=True))
    assert carry_out(ask("unseen", data, [taught_marian], tmp_path, quick=True))  # its own place
    for name in ("unseen", "mdmt"):  # one report has one model
        with pytest.raises(KsterError, match=r"unseen/en-de\.run\.json: made with another model"):
            carry_out(ask(name, data, [another], tmp_path, quick=True))


def test_a_quick_look_does_not_replace_a_full_result(taught_marian: Path, data: Path, tmp_path: Path) -> None:
    result = result_file(tmp_path, "unseen", "en-de")
    write_json(result, {"scale": "full"})
    with pytest.raises(KsterError, match=r"unseen/en-de\.run\.json: a full result"):
        carry_out(ask("unseen", data, [taught_marian], tmp_path, quick=True))
    assert read_json(result) == {"scale": "full"}


def test_missing_text_is_named_before_anything_is_done(
    taught_marian: Path, data: Path, tmp_path: Path
) -> None:
    broken, out = Path(shutil.copytree(data, tmp_path / "data")), tmp_path / "out"
    (broken / "law" / "test.de.xz").unlink()  # damt comes to Law last
    with pytest.raises(KsterError, match=r"law/test\.de\.xz: no such file"):
        carry_out(ask("damt", broken, [taught_marian], out, quick=True))
    with pytest.raises(KsterError, match=r"bible/test\.en\.xz: no such file"):
        carry_out(ask("unseen", data, [taught_marian], out, quick=True, unseen=["bible"]))
    assert not out.exists()


def test_a_choice_made_with_another_model_is_made_again(
    taught_marian: Path, another: Path, data: Path, tmp_path: Path, scale: Scale
) -> None:
    memory = MemorySpec("koran", (Slice("koran", "train", 40),))
    helpful = Trial(4, 1.0, 0.9, 0.0).settings("gaussian", None)
    candidates = [Engine(), Engine(memory=memory, smoother=helpful)]
    for model in (taught_marian, another):
        pipeline = Pipeline(model, data, tmp_path, tmp_path / "cache", device="cpu", say=lambda line: None)
        assert choose(pipeline, candidates, [Slice("koran", "dev")], scale) == candidates[1]
        pipeline.close()
        (choice,) = (tmp_path / "choices" / "en-de").iterdir()
        write_json(choice, read_json(choice) | {"chosen": 0})  # as if the first model had liked the other


def test_word_senses_of_the_other_direction_are_found_by_several_processes(
    turned: Path, data: Path, tmp_path: Path
) -> None:
    assert carry_out(ask("wsd", data, [turned], tmp_path, quick=True, workers=2))
    assert read_json(result_file(tmp_path, "wsd", "de-en"))["statistics"]["rows"]


def test_a_model_that_does_not_say_its_languages_is_named(
    taught_marian: Path, data: Path, tmp_path: Path
) -> None:
    silent = Path(shutil.copytree(taught_marian, tmp_path / "silent"))
    config = json.loads((silent / "tokenizer_config.json").read_text())
    (silent / "tokenizer_config.json").write_text(
        json.dumps({key: value for key, value in config.items() if not key.endswith("_lang")})
    )
    with pytest.raises(KsterError, match=r"silent: does not say which languages it translates"):
        carry_out(ask("unseen", data, [silent], tmp_path / "out", quick=True))
