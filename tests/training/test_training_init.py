"""A model to fine-tune is looked at before any work is done: what cannot be trained on is refused."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file, save_file

from kster.errors import KsterError
from kster.training import load_settings, train

Damage = Callable[[Path], object]


def shorten(path: Path) -> None:
    weights = path / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1000])


def take_a_tensor(path: Path) -> None:
    tensors = load_file(path / "model.safetensors")
    del tensors["model.decoder.layers.0.fc1.weight"]
    save_file(tensors, path / "model.safetensors", metadata={"format": "pt"})


def reshape_a_tensor(path: Path) -> None:
    tensors = load_file(path / "model.safetensors")
    tensors["model.decoder.layers.0.fc1.weight"] = tensors["model.decoder.layers.0.fc1.weight"][:-1]
    save_file(tensors, path / "model.safetensors", metadata={"format": "pt"})


def test_what_cannot_be_fine_tuned_is_refused_before_any_work(
    config: Any, tiny_m2m100: Path, tiny_marian: Path, tmp_path: Path
) -> None:
    with pytest.raises(KsterError, match="it is a m2m_100 model; only Marian models can be trained"):
        train(config(init=str(tiny_m2m100)))
    with pytest.raises(KsterError, match=r"no config\.json"):
        train(config(init=str(tmp_path)))
    longer = {"cleaning": {"max_tokens": 600}, "training": {"batch_tokens": 900}}
    with pytest.raises(KsterError, match=r"reads 512 tokens, cleaning\.max_tokens is 600"):
        train(config(init=str(tiny_marian), **longer))
    assert not (tmp_path / "prepared").exists()


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda path: (path / "config.json").write_text("{"), r"config\.json cannot be read"),
        (lambda path: (path / "model.safetensors").unlink(), r"has no weights; accepted"),
        (lambda path: (path / "model.safetensors").write_bytes(b""), r"model\.safetensors is damaged"),
        (shorten, r"model\.safetensors is damaged or cut short"),
        (lambda path: (path / "vocab.json").unlink(), r"not a Marian vocabulary: vocab\.json missing"),
    ],
)
def test_a_damaged_model_is_refused_before_anything_is_written(
    config: Any, tiny_marian: Path, tmp_path: Path, damage: Damage, said: str
) -> None:
    damage(shutil.copytree(tiny_marian, tmp_path / "damaged"))
    with pytest.raises(KsterError, match=said):
        train(config(init=str(tmp_path / "damaged")))
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["config.yaml", "damaged"]


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (take_a_tensor, r"lack model\.decoder\.layers\.0\.fc1\.weight$"),
        (reshape_a_tensor, "cannot be loaded"),
    ],
)
def test_weights_that_do_not_fit_their_configuration_are_refused(
    config: Any, tiny_marian: Path, tmp_path: Path, damage: Damage, said: str
) -> None:
    damage(shutil.copytree(tiny_marian, tmp_path / "damaged"))
    with pytest.raises(KsterError, match=f"init: the weights in .*damaged {said}"):
        train(config(init=str(tmp_path / "damaged")))


def test_the_shape_of_a_network_that_is_not_made_does_not_matter(config: Any, tiny_marian: Path) -> None:
    ignored = {"cleaning": {"max_tokens": 200}, "network": {"positions": 100, "heads": 5}}
    assert load_settings(config(init=str(tiny_marian), **ignored)).cleaning.max_tokens == 200


def test_a_tokenizer_for_each_language_is_not_exchanged(
    config: Any, tiny_marian: Path, tmp_path: Path
) -> None:
    """Ours are the same for both; many OPUS-MT models have two."""
    copy = shutil.copytree(tiny_marian, tmp_path / "two")
    (copy / "target.spm").write_bytes((copy / "source.spm").read_bytes() + b"\n\0")
    with pytest.raises(KsterError, match="swap would exchange the tokenizers of"):
        train(config(init=str(copy), direction="swap"))
    assert not (tmp_path / "prepared").exists()


def test_a_model_of_the_other_direction_is_not_fine_tuned_without_a_word(
    config: Any, tiny_marian: Path, tmp_path: Path
) -> None:
    log, steps = tmp_path / "run" / "log.txt", {"steps": 1}
    train(config(init=str(tiny_marian), training=steps))
    assert "translates" not in log.read_text()
    back = {"output": str(tmp_path / "back"), "prepared": str(tmp_path / "other")}
    train(config(init=str(tiny_marian), source_lang="de", target_lang="en", training=steps), overrides=back)
    assert f"{tiny_marian} translates en → de; this run trains it for de → en" in (
        tmp_path / "back" / "log.txt"
    ).read_text(encoding="utf-8")
