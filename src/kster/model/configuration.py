"""What config.json says about the computation of a network."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from kster.errors import ModelError
from kster.model.files import json_object
from kster.model.layers import ACTIVATIONS

SUPPORTED = {"marian": "Marian / OPUS-MT", "m2m_100": "M2M100 / NLLB"}

# Where config.json says nothing, `transformers` takes these.
_DEFAULTS: dict[str, dict[str, Any]] = {
    "marian": {
        "vocab_size": 58_101,
        "d_model": 1024,
        "activation_function": "gelu",
        "scale_embedding": False,
        "decoder_start_token_id": 58_100,
        "pad_token_id": 58_100,
        "eos_token_id": 0,
    },
    "m2m_100": {
        "vocab_size": 128_112,
        "d_model": 1024,
        "activation_function": "relu",
        "scale_embedding": True,
        "decoder_start_token_id": 2,
        "pad_token_id": 1,
        "eos_token_id": 2,
    },
}
_ALL_DEFAULTS = {
    "encoder_layers": 12,
    "decoder_layers": 12,
    "encoder_attention_heads": 16,
    "decoder_attention_heads": 16,
    "encoder_ffn_dim": 4096,
    "decoder_ffn_dim": 4096,
    "max_position_embeddings": 1024,
    "share_encoder_decoder_embeddings": True,
    "tie_word_embeddings": True,
}


@dataclass(frozen=True, slots=True)
class Configuration:
    """The shape of a network of the BART family, under the names of config.json."""

    model_type: str
    d_model: int
    vocab_size: int
    decoder_vocab_size: int
    encoder_layers: int
    decoder_layers: int
    encoder_attention_heads: int
    decoder_attention_heads: int
    encoder_ffn_dim: int
    decoder_ffn_dim: int
    max_position_embeddings: int
    activation_function: str
    scale_embedding: bool
    share_encoder_decoder_embeddings: bool
    tie_word_embeddings: bool
    pad_token_id: int
    eos_token_id: int
    decoder_start_token_id: int

    @property
    def pre_norm(self) -> bool:
        """Whether layer norms come before each block (M2M100) instead of after it (Marian)."""
        return self.model_type == "m2m_100"

    @property
    def source_embedding(self) -> str:
        return self._embedding("encoder")

    @property
    def target_embedding(self) -> str:
        return self._embedding("decoder")

    @property
    def output_embedding(self) -> str:
        return self.target_embedding if self.tie_word_embeddings else "lm_head.weight"

    def _embedding(self, side: str) -> str:
        return (
            "model.shared.weight"
            if self.share_encoder_decoder_embeddings
            else f"model.{side}.embed_tokens.weight"
        )

    @property
    def output_size(self) -> int:
        """Tokens that can be written."""
        return self.vocab_size if self.share_encoder_decoder_embeddings else self.decoder_vocab_size

    def positions(self) -> Tensor:
        """Position embeddings, (P, d), the first token's first: sines in one half, cosines in the other."""
        half = self.d_model // 2
        if self.model_type == "marian":
            first, step = 0, 2 / self.d_model
        else:  # rows up to the padding's are never used
            first, step = self.pad_token_id + 1, 1 / (half - 1)
        frequency = torch.pow(10000.0, -torch.arange(half, dtype=torch.float64) * step)
        places = torch.arange(first, first + self.max_position_embeddings, dtype=torch.float64)
        angle = places[:, None] * frequency  # (P, half)
        return torch.cat([angle.sin(), angle.cos()], dim=1).float()

    def shapes(self) -> Iterator[tuple[str, tuple[int, ...]]]:
        """The weights of the network: names in the checkpoint and shapes."""
        d = self.d_model
        sizes = {self.source_embedding: self.vocab_size, self.target_embedding: self.output_size}
        for name, size in (sizes | {self.output_embedding: self.output_size}).items():
            yield name, (size, d)
        for side, layers, inner in (
            ("encoder", self.encoder_layers, self.encoder_ffn_dim),
            ("decoder", self.decoder_layers, self.decoder_ffn_dim),
        ):
            attentions = ["self_attn"] if side == "encoder" else ["self_attn", "encoder_attn"]
            for i in range(layers):
                name = f"model.{side}.layers.{i}"
                for attention in attentions:
                    for part in ("q_proj", "k_proj", "v_proj", "out_proj"):
                        yield f"{name}.{attention}.{part}.weight", (d, d)
                        yield f"{name}.{attention}.{part}.bias", (d,)
                for norm in (*(f"{attention}_layer_norm" for attention in attentions), "final_layer_norm"):
                    yield from self._norm(f"{name}.{norm}")
                yield f"{name}.fc1.weight", (inner, d)
                yield f"{name}.fc1.bias", (inner,)
                yield f"{name}.fc2.weight", (d, inner)
                yield f"{name}.fc2.bias", (d,)
            if self.pre_norm:
                yield from self._norm(f"model.{side}.layer_norm")

    def _norm(self, name: str) -> Iterator[tuple[str, tuple[int, ...]]]:
        yield f"{name}.weight", (self.d_model,)
        yield f"{name}.bias", (self.d_model,)


def read_config(directory: Path) -> Configuration:
    """The configuration of a checkpoint of a supported kind; special tokens are in the vocabulary."""
    path = directory / "config.json"
    given = json_object(path)
    model_type = given.get("model_type")
    if not isinstance(model_type, str):
        raise ModelError(f"{path}: names no model_type; is this a Hugging Face model?")
    if model_type not in SUPPORTED:
        known = ", ".join(f"{key} ({value})" for key, value in SUPPORTED.items())
        raise ModelError(f"{directory}: architecture {model_type!r} is not supported; supported are {known}")
    values = _ALL_DEFAULTS | _DEFAULTS[model_type] | given
    values["decoder_vocab_size"] = values.get("decoder_vocab_size") or values["vocab_size"]
    chosen: dict[str, Any] = {}
    for field in fields(Configuration):
        value, wanted = values[field.name], {"int": int, "bool": bool, "str": str}[str(field.type)]
        if not field.name.endswith("_token_id") and type(value) is not wanted:
            raise ModelError(
                f"{path} cannot be read as a model's configuration "
                f"({field.name}: expected {field.type}, got {type(value).__name__})"
            )
        chosen[field.name] = value
    config = Configuration(**chosen)
    _require_tokens(config, path)
    return config


def _require_tokens(config: Configuration, path: Path) -> None:
    size = max(config.vocab_size, config.decoder_vocab_size)
    for name in ("eos_token_id", "pad_token_id", "decoder_start_token_id"):
        token = getattr(config, name)
        if type(token) is not int or not 0 <= token < size:
            raise ModelError(f"{path}: {name} is {token!r}; accepted: the number of a token, 0 to {size - 1}")


def require_computable(config: Configuration, directory: Path) -> None:
    """Refuse what our forward pass does not describe."""
    heads = {config.encoder_attention_heads, config.decoder_attention_heads}
    problem = None
    if any(config.d_model % number for number in heads):
        problem = f"d_model is {config.d_model}, which is not divisible by {max(heads)} heads"
    elif config.activation_function not in ACTIVATIONS:
        accepted = ", ".join(ACTIVATIONS)
        problem = f"activation_function is {config.activation_function!r}; accepted: {accepted}"
    if problem:
        raise ModelError(
            f"the weights in {directory} cannot be loaded as config.json describes them ({problem})"
        )
