"""What is refused before anything is done: another model's place, a full result, text that is missing."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from experiments.command import Request, carry_out
from experiments.data import write_lines
from experiments.experiment import result_file
from experiments.stages import read_json, write_json

from kster.errors import KsterError


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
) -> None:
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


@pytest.mark.parametrize(
    ("split", "english", "german", "message"),
    [
        ("test", 8, None, r"law/test\.de\.xz: the compressed data is damaged"),
        ("test", 8, 1, r"not line-aligned: .*law/test\.de\.xz ends after 1 lines"),
        ("test", 0, 0, r"law/test\.en\.xz: no lines in it"),
        ("dev", 1_500, 1_500, r"law/dev\.en\.xz: no lines from 1,501 on in it"),  # all of them are memory
    ],
)
def test_text_that_cannot_be_used_is_named_before_anything_is_done(
    taught_marian: Path,
    data: Path,
    tmp_path: Path,
    split: str,
    english: int,
    german: int | None,
    message: str,
) -> None:
    broken, out = Path(shutil.copytree(data, tmp_path / "data")), tmp_path / "out"
    for side, count in (("en", english), ("de", german)):  # damt comes to Law last
        path = broken / "law" / f"{split}.{side}.xz"
        if count is None:
            path.write_bytes(path.read_bytes()[:50])
        else:
            write_lines(path, ["one"] * count)
    with pytest.raises(KsterError, match=message):
        carry_out(ask("damt", broken, [taught_marian], out, quick=True))
    assert not out.exists()


@pytest.mark.parametrize("option", ["out", "cache"])
def test_a_place_that_cannot_be_written_to_is_named_before_anything_is_done(
    option: str, taught_marian: Path, data: Path, tmp_path: Path
) -> None:
    file = tmp_path / "file"
    file.write_text("")
    places = {"out": tmp_path / "out", option: file / "below"}
    request = ask("unseen", data, [taught_marian], places["out"], quick=True, cache=places.get("cache"))
    with pytest.raises(KsterError, match=rf"--{option} .*file/below: cannot be written to .*accepted"):
        carry_out(request)


def test_what_preparations_need_is_missed_before_the_first_experiment(
    taught_marian: Path, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("WNSEARCHDIR")
    monkeypatch.setattr("experiments.lexicon.WORDNET_PLACES", ())
    with pytest.raises(KsterError, match="WordNet is not installed"):
        carry_out(ask("all", data, [taught_marian], tmp_path, quick=True))
    assert not (tmp_path / "translations").exists()


@pytest.mark.parametrize(
    ("name", "unseen", "message"),
    [
        ("damt", ["bible"], "--unseen is for the experiments unseen and all; damt does not use it"),
        ("unseen", ["koran"], "--unseen koran: is not unseen, the memory has text of it"),
        ("unseen", ["ted"], "--unseen ted: is among the unseen domains already"),
        ("all", ["bible", "bible"], "--unseen bible: is among the unseen domains already"),
    ],
)
def test_a_domain_that_is_not_unseen_is_refused(
    name: str, unseen: list[str], message: str, taught_marian: Path, data: Path, tmp_path: Path
) -> None:
    with pytest.raises(KsterError, match=message):
        carry_out(ask(name, data, [taught_marian], tmp_path, quick=True, unseen=unseen))


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
