"""Reading a checkpoint's weights: what is missing, damaged or does not fit together is refused by name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zipfile import is_zipfile

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from kster.errors import ModelError
from kster.model.configuration import Configuration, require_computable
from kster.model.files import refusing, words


def weight_files(directory: Path) -> list[Path]:
    """What a checkpoint's weights are read from: safetensors, and only where there are none, pickled ones."""
    return sorted(directory.glob("*.safetensors")) or sorted(directory.glob("pytorch_model*.bin"))


def require_weights(directory: Path) -> None:
    """Refuse weights that are not there, of an unsafe kind, or not all there."""
    files = weight_files(directory)
    if not files:
        raise ModelError(f"{directory} has no weights; accepted: .safetensors or pytorch_model.bin")
    for file in files:
        if file.suffix == ".bin":
            _require_plain_tensors(file)
            continue
        try:
            with safe_open(file, "pt"):  # reads what is in it, and whether all of that is there
                pass
        except (SafetensorError, OSError) as error:
            raise ModelError(
                f"{file} is damaged or cut short ({words(error)}); accepted: whole safetensors"
            ) from error


def _require_plain_tensors(file: Path) -> None:
    """Refuse a pickle that holds anything but tensors by name; nothing in it is ever executed."""
    with refusing(f"{file} is damaged, or holds more than tensors and is not safe to load; nothing was run"):
        weights = torch.load(file, map_location="cpu", weights_only=True)
    if not isinstance(weights, dict) or not all(isinstance(w, torch.Tensor) for w in weights.values()):
        raise ModelError(f"{file}: accepted: the weights of a network, tensors by name")


def read_weights(directory: Path, config: Configuration) -> dict[str, Tensor]:
    """Every weight that config.json asks for, under its name and in the type it is stored in.

    Safetensors are mapped, not copied: what is not used is not read.
    """
    require_weights(directory)
    require_computable(config, directory)
    weights = {name: tensor for file in weight_files(directory) for name, tensor in _tensors(file)}
    weights |= {
        name: weights[other]
        for name, other in _same_embeddings(config)
        if name not in weights and other in weights
    }
    shapes = dict(config.shapes())
    if missing := sorted(shapes.keys() - weights.keys()):
        raise ModelError(f"the weights in {directory} lack {_some(missing)}")
    for name, shape in shapes.items():
        if weights[name].shape != shape:
            raise ModelError(
                f"the weights in {directory} cannot be loaded: {name} is {_shape(weights[name].shape)}, "
                f"config.json asks for {_shape(shape)}"
            )
    if unread := sorted(name for name in weights.keys() - shapes.keys() if ".layers." in name):
        raise ModelError(f"the weights in {directory} have layers that config.json lacks: {_some(unread)}")
    return weights


def _tensors(file: Path) -> Iterator[tuple[str, Tensor]]:
    if file.suffix == ".bin":
        mapped = is_zipfile(file)  # which PyTorch writes since 1.6, and OPUS-MT is older
        yield from torch.load(file, map_location="cpu", weights_only=True, mmap=mapped).items()
        return
    with safe_open(file, "pt") as tensors:
        for name in tensors.keys():  # noqa: SIM118  # not a dictionary
            yield name, tensors.get_tensor(name)


def _same_embeddings(config: Configuration) -> list[tuple[str, str]]:
    """Weights that are one and the same in a network, of which a file may hold any."""
    tied = ["model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight", "lm_head.weight"]
    if config.share_encoder_decoder_embeddings:
        return [(config.target_embedding, name) for name in tied]
    return [(config.target_embedding, "lm_head.weight")] if config.tie_word_embeddings else []


def _some(names: list[str]) -> str:
    return ", ".join(names[:3]) + (" …" if len(names) > 3 else "")


def _shape(shape: Any) -> str:
    return " × ".join(map(str, shape))
