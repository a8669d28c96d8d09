"""A checkpoint whose files are missing, damaged or of different minds is refused in one clear line."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file, save_file
from torch import Tensor

from kster import KsterError
from kster.model import BaseModel

FC1 = "model.decoder.layers.0.fc1.weight"
Change = Callable[[dict[str, Any]], object]


def unlink(path: Path) -> None:
    path.unlink()


def empty(path: Path) -> None:
    path.write_bytes(b"")


def garbage(path: Path) -> None:
    path.write_bytes(b"garbage" * 99)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-10])


def a_list(path: Path) -> None:
    path.write_text("[]")


def an_empty_object(path: Path) -> None:
    path.write_text("{}")


DAMAGES = [
    ("tiny_marian", "model.safetensors", empty, r"model\.safetensors is damaged or cut short"),
    ("tiny_marian", "model.safetensors", garbage, r"model\.safetensors is damaged or cut short"),
    ("tiny_marian", "model.safetensors", cut, r"model\.safetensors is damaged .*; accepted: whole safetens"),
    ("tiny_marian", "vocab.json", unlink, r"no vocab\.json; the tokenizer is read from vocab\.json, source"),
    ("tiny_marian", "vocab.json", cut, r"vocab\.json cannot be read as JSON"),
    ("tiny_marian", "vocab.json", a_list, r"vocab\.json: holds a JSON list; accepted: an object"),
    ("tiny_marian", "vocab.json", an_empty_object, r"tokenizer cannot be loaded .*<unk> token must be in"),
    ("tiny_marian", "source.spm", unlink, r"no source\.spm; the tokenizer is read from"),
    ("tiny_marian", "source.spm", empty, r"source\.spm is damaged; accepted: a SentencePiece model"),
    ("tiny_marian", "source.spm", cut, r"source\.spm is damaged; accepted: a SentencePiece model"),
    ("tiny_marian", "target.spm", unlink, r"no target\.spm; the tokenizer is read from"),
    ("tiny_marian", "target.spm", garbage, r"target\.spm is damaged; accepted: a SentencePiece model"),
    ("tiny_marian", "tokenizer_config.json", cut, r"tokenizer_config\.json cannot be read as JSON"),
    ("tiny_marian", "tokenizer_config.json", a_list, r"tokenizer_config\.json: holds a JSON list"),
    ("tiny_marian", "config.json", unlink, r"it has no config\.json"),
    ("tiny_marian", "config.json", cut, r"config\.json cannot be read as JSON"),
    ("tiny_m2m100", "model.safetensors", cut, r"model\.safetensors is damaged or cut short"),
    ("tiny_m2m100", "vocab.json", unlink, r"no vocab\.json; the tokenizer is read from"),
    ("tiny_m2m100", "vocab.json", an_empty_object, r"tokenizer cannot be loaded \(unknown: '<unk>'"),
    ("tiny_m2m100", "sentencepiece.bpe.model", unlink, r"no sentencepiece\.bpe\.model"),
    ("tiny_m2m100", "sentencepiece.bpe.model", cut, r"sentencepiece\.bpe\.model is damaged"),
]


@pytest.mark.parametrize(("model", "name", "damage", "said"), DAMAGES)
def test_a_damaged_file_is_named(
    model: str,
    name: str,
    damage: Callable[[Path], None],
    said: str,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    copy = shutil.copytree(request.getfixturevalue(model), tmp_path / "copy")
    damage(copy / name)
    with pytest.raises(KsterError, match=said) as caught:
        BaseModel.load(copy, source_lang="en", target_lang="de")
    assert str(copy) in str(caught.value)


@pytest.mark.parametrize("model", ["tiny_marian", "tiny_m2m100"])
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda tensors: tensors.pop(FC1), f"lack {FC1}"),
        (lambda tensors: shorten(tensors, FC1), f"{FC1} is 63 × 32, config.json asks for 64 × 32"),
    ],
)
def test_weights_that_are_missing_or_misshapen_are_not_made_up(
    model: str, change: Change, said: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    copy = shutil.copytree(request.getfixturevalue(model), tmp_path / "copy")
    tensors = load_file(copy / "model.safetensors")
    change(tensors)
    save_file(tensors, copy / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(KsterError, match=said):
        BaseModel.load(copy)


def shorten(tensors: dict[str, Tensor], name: str) -> None:
    tensors[name] = tensors[name][:-1].clone()


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("d_model", "x", r"config\.json cannot be read as a model's configuration .*expected int, got str"),
        ("decoder_layers", 3, r"lack model\.decoder\.layers\.2"),
        ("decoder_layers", 1, r"have layers that config\.json lacks: model\.decoder\.layers\.1"),
        ("decoder_attention_heads", 5, r"cannot be loaded as config\.json describes them .*divisible"),
        ("activation_function", "nope", r"cannot be loaded as config\.json describes them .*nope"),
        ("eos_token_id", 99_999, r"eos_token_id is 99999; accepted: the number of a token, 0 to 420"),
        ("pad_token_id", None, r"pad_token_id is None; accepted: the number of a token"),
    ],
)
def test_a_configuration_that_does_not_fit_is_refused(
    name: str, value: object, said: str, tiny_marian: Path, tmp_path: Path
) -> None:
    copy = shutil.copytree(tiny_marian, tmp_path / "copy")
    config = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps({**config, name: value}))
    with pytest.raises(KsterError, match=said):
        BaseModel.load(copy)


def test_tokens_beyond_the_networks_vocabulary_are_refused(tiny_marian: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(tiny_marian, tmp_path / "copy")
    vocabulary = json.loads((copy / "vocab.json").read_text())
    (copy / "vocab.json").write_text(json.dumps({**vocabulary, "▁new": 421}))
    with pytest.raises(KsterError, match=r"vocab\.json: '▁new' is 421; accepted: .*0 to 420"):
        BaseModel.load(copy)


def test_a_multilingual_tokenizer_need_not_name_languages(tiny_m2m100: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(tiny_m2m100, tmp_path / "copy")
    (copy / "tokenizer_config.json").unlink()
    model = BaseModel.load(copy, source_lang="en", target_lang="de")
    assert (model.source_lang, model.target_lang) == ("en", "de")
