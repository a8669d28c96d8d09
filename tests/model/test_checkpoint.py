"""Loading, saving and refusing base models."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file

from kster import KsterError
from kster.model import BaseModel


def test_the_fingerprint_changes_with_weights_and_tokenizer_only(tiny_marian: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(tiny_marian, tmp_path / "copy")
    model = BaseModel.load(tiny_marian)
    (copy / "README.md").write_text("a model card")
    assert BaseModel.load(copy).fingerprint == model.fingerprint
    network = transformers.MarianMTModel.from_pretrained(copy)
    with torch.no_grad():
        network.model.decoder.layers[-1].fc2.bias[0] += 1
    network.save_pretrained(copy)
    assert BaseModel.load(copy).fingerprint != model.fingerprint


def test_texts_in_any_script_survive_the_tokenizer(tiny_marian: Path, tiny_m2m100: Path) -> None:
    texts = ["das Licht 東京 ist grün", "Ünïcödé € 𝄞 🙂", "عربى"]
    marian, m2m100 = BaseModel.load(tiny_marian), BaseModel.load(tiny_m2m100)
    assert marian.detokenise(marian.tokenise_target(texts)) == texts
    assert m2m100.detokenise(m2m100.tokenise_target(texts[:1])) == texts[:1]


def test_targets_end_with_eos_and_carry_no_language_token(tiny_m2m100: Path) -> None:
    model = BaseModel.load(tiny_m2m100)
    (ids,) = model.tokenise_target(["die Taste"])
    assert ids[-1] == model.eos_id
    assert model.layout.prefix[-1] not in ids


def test_an_unsupported_architecture_is_refused_by_name(tmp_path: Path) -> None:
    config = transformers.BartConfig(
        vocab_size=20, d_model=8, encoder_layers=1, decoder_layers=1, encoder_attention_heads=1
    )
    config.save_pretrained(tmp_path)
    with pytest.raises(KsterError, match=r"'bart' is not supported; supported are marian .* m2m_100"):
        BaseModel.load(tmp_path)


def test_a_config_that_cannot_be_used_is_named(tiny_marian: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(tiny_marian, tmp_path / "copy")
    (copy / "config.json").write_text('{"model_type": "foo"}')
    with pytest.raises(KsterError, match="'foo' is not supported; supported are marian"):
        BaseModel.load(copy)
    (copy / "config.json").write_text("{")
    with pytest.raises(KsterError, match="cannot be read as JSON"):
        BaseModel.load(copy)
    (copy / "config.json").write_text("{}")
    with pytest.raises(KsterError, match="names no model_type"):
        BaseModel.load(copy)


def pickled(checkpoint: Path, directory: Path, content: Any = None) -> Path:
    """A copy of a checkpoint with a pytorch_model.bin instead of safetensors."""
    shutil.copytree(checkpoint, directory)
    torch.save(content or load_file(directory / "model.safetensors"), directory / "pytorch_model.bin")
    (directory / "model.safetensors").unlink()
    return directory


def test_a_pickled_checkpoint_of_plain_tensors_is_the_same_model(tiny_marian: Path, tmp_path: Path) -> None:
    model = BaseModel.load(tiny_marian)
    copy = BaseModel.load(pickled(tiny_marian, tmp_path / "copy"))
    pair = [("the red house", "das rote Haus")]
    (ours,), (theirs,) = model.force_decode(pair), copy.force_decode(pair)
    assert torch.equal(ours.keys, theirs.keys)
    assert copy.fingerprint != model.fingerprint  # it is of the files, which differ
    changed = load_file(tiny_marian / "model.safetensors")
    changed["model.shared.weight"] += 1
    other = pickled(tiny_marian, tmp_path / "other", changed)
    assert BaseModel.load(other).fingerprint != copy.fingerprint


def test_a_pickled_checkpoint_from_before_pytorch_1_6_is_the_same_model(
    tiny_marian: Path, tmp_path: Path
) -> None:
    """As the checkpoints of OPUS-MT are saved."""
    copy = pickled(tiny_marian, tmp_path / "copy")
    file = copy / "pytorch_model.bin"
    torch.save(torch.load(file), file, _use_new_zipfile_serialization=False)
    pair = [("the red house", "das rote Haus")]
    (ours,), (theirs,) = (BaseModel.load(place).force_decode(pair) for place in (tiny_marian, copy))
    assert torch.equal(ours.keys, theirs.keys)


def test_a_pickle_that_could_run_code_is_refused_and_runs_none(tiny_marian: Path, tmp_path: Path) -> None:
    class Code:
        def __reduce__(self) -> Any:
            return os.mkdir, (str(tmp_path / "it ran"),)

    copy = pickled(tiny_marian, tmp_path / "copy", {"model.shared.weight": Code()})
    with pytest.raises(KsterError, match=r"pytorch_model\.bin .*not safe to load; nothing was run"):
        BaseModel.load(copy)
    assert not (tmp_path / "it ran").exists()


@pytest.mark.parametrize("content", [["a list"], {"model": {"nested": torch.zeros(1)}}])
def test_a_pickle_of_anything_but_weights_is_named(content: Any, tiny_marian: Path, tmp_path: Path) -> None:
    with pytest.raises(KsterError, match=r"pytorch_model\.bin: accepted: the weights of a network"):
        BaseModel.load(pickled(tiny_marian, tmp_path / "copy", content))


def test_a_pickle_that_is_cut_short_or_lacks_a_weight_is_named(tiny_marian: Path, tmp_path: Path) -> None:
    copy = pickled(tiny_marian, tmp_path / "copy")
    file = copy / "pytorch_model.bin"
    file.write_bytes(file.read_bytes()[:-1000])
    with pytest.raises(KsterError, match=r"pytorch_model\.bin is damaged"):
        BaseModel.load(copy)
    weights = load_file(tiny_marian / "model.safetensors")
    del weights["model.decoder.layers.0.fc1.weight"]
    torch.save(weights, file)
    with pytest.raises(KsterError, match=r"lack model\.decoder\.layers\.0\.fc1\.weight"):
        BaseModel.load(copy)
    file.unlink()
    with pytest.raises(KsterError, match=r"has no weights; accepted: \.safetensors or pytorch_model\.bin"):
        BaseModel.load(copy)


def test_a_model_of_two_languages_cannot_be_asked_for_others(tiny_marian: Path) -> None:
    with pytest.raises(KsterError, match=r"its source language is en; 'fr' was asked for"):
        BaseModel.load(tiny_marian, source_lang="fr")
    with pytest.raises(KsterError, match=r"its target language is de; 'it' was asked for"):
        BaseModel.load(tiny_marian, target_lang="it")
    loaded = BaseModel.load(tiny_marian, source_lang="en-GB", target_lang="deu_Latn")
    assert (loaded.source_lang, loaded.target_lang) == ("en-GB", "deu_Latn")


def test_wrong_paths_languages_and_devices_are_named(tiny_m2m100: Path, tmp_path: Path) -> None:
    with pytest.raises(KsterError, match="no such model directory"):
        BaseModel.load(tmp_path / "nowhere")
    with pytest.raises(KsterError, match=r"no config\.json"):
        BaseModel.load(tmp_path)
    with pytest.raises(KsterError, match="target language 'klingon' is unknown"):
        BaseModel.load(tiny_m2m100, target_lang="klingon")
    with pytest.raises(KsterError, match="device 'tpu9' is unknown"):
        BaseModel.load(tiny_m2m100, device="tpu9")
    with pytest.raises(KsterError, match="neither a directory nor a model that could be fetched"):
        BaseModel.load("nobody/nothing-at-all")
