"""The Marian network as one flat vector of weights, and its forward pass for training.

The mathematics are those of `transformers.MarianMTModel` (a test holds the two together); the layout is
ours: the query, key and value projections of a layer lie beside each other and run as one matrix product,
and optimiser, averaging, clipping and all-reduce each touch one tensor instead of three hundred.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
import transformers
from torch import Tensor

from kster.errors import KsterError
from kster.model.layers import ACTIVATIONS, Layer
from kster.training.batching import Batch, round_up

_ALIGNMENT = 64  # elements between beginnings of weights: keeps every matrix aligned for fast kernels


@dataclass(frozen=True)
class Weight:
    """One of our weights: several weights of `transformers` stacked along their first axis."""

    name: str
    parts: tuple[str, ...]  # names in the transformers checkpoint
    shape: tuple[int, ...]
    offset: int  # in the flat vector

    @property
    def size(self) -> int:
        return math.prod(self.shape)


class Layout:
    """Where each weight lies in the flat vector."""

    def __init__(self, config: transformers.MarianConfig) -> None:
        d, v = config.d_model, config.vocab_size
        self.weights: list[Weight] = []
        self.size = 0
        self._add("shared", ["model.shared.weight"], (v, d))
        for i in range(config.encoder_layers):
            place, theirs = f"encoder.{i}", f"model.encoder.layers.{i}"
            self._attention(f"{place}.self", f"{theirs}.self_attn", ["qkv"], d)
            self._norm(f"{place}.self_norm", f"{theirs}.self_attn_layer_norm", d)
            self._feed_forward(place, theirs, d, config.encoder_ffn_dim)
        for i in range(config.decoder_layers):
            place, theirs = f"decoder.{i}", f"model.decoder.layers.{i}"
            self._attention(f"{place}.self", f"{theirs}.self_attn", ["qkv"], d)
            self._norm(f"{place}.self_norm", f"{theirs}.self_attn_layer_norm", d)
            self._attention(f"{place}.cross", f"{theirs}.encoder_attn", ["q", "kv"], d)
            self._norm(f"{place}.cross_norm", f"{theirs}.encoder_attn_layer_norm", d)
            self._feed_forward(place, theirs, d, config.decoder_ffn_dim)

    def _add(self, name: str, parts: list[str], shape: tuple[int, ...]) -> None:
        weight = Weight(name, tuple(parts), shape, self.size)
        self.weights.append(weight)
        self.size += -(-weight.size // _ALIGNMENT) * _ALIGNMENT

    def _linear(self, name: str, theirs: list[str], out: int, into: int) -> None:
        self._add(f"{name}.weight", [f"{part}.weight" for part in theirs], (out, into))
        self._add(f"{name}.bias", [f"{part}.bias" for part in theirs], (out,))

    def _attention(self, name: str, theirs: str, groups: list[str], d: int) -> None:
        for group in groups:
            self._linear(
                f"{name}_{group}", [f"{theirs}.{letter}_proj" for letter in group], len(group) * d, d
            )
        self._linear(f"{name}_out", [f"{theirs}.out_proj"], d, d)

    def _norm(self, name: str, theirs: str, d: int) -> None:
        self._add(f"{name}.weight", [f"{theirs}.weight"], (d,))
        self._add(f"{name}.bias", [f"{theirs}.bias"], (d,))

    def _feed_forward(self, name: str, theirs: str, d: int, inner: int) -> None:
        self._linear(f"{name}.fc1", [f"{theirs}.fc1"], inner, d)
        self._linear(f"{name}.fc2", [f"{theirs}.fc2"], d, inner)
        self._norm(f"{name}.norm", f"{theirs}.final_layer_norm", d)

    def views(self, flat: Tensor) -> dict[str, Tensor]:
        """Our weights as views of a flat vector."""
        return {w.name: flat[w.offset : w.offset + w.size].view(w.shape) for w in self.weights}

    def theirs(self, flat: Tensor) -> Iterator[tuple[str, Tensor]]:
        """The same weights under their names in a transformers checkpoint, as views."""
        for weight, view in zip(self.weights, self.views(flat).values(), strict=True):
            yield from zip(weight.parts, view.chunk(len(weight.parts)), strict=True)

    def load(self, flat: Tensor, state: Mapping[str, Tensor]) -> None:
        for name, view in self.theirs(flat):
            view.copy_(state[name])


Weights = dict[str, Tensor]


class Network:
    """The forward pass over a dictionary of weights."""

    def __init__(self, config: transformers.MarianConfig, *, device: torch.device) -> None:
        self.config = config
        self.heads = (config.encoder_attention_heads, config.decoder_attention_heads)
        self.scale = math.sqrt(config.d_model) if config.scale_embedding else 1.0
        self.activation = ACTIVATIONS[config.activation_function]
        self.positions = sinusoids(round_up(config.max_position_embeddings), config.d_model).to(device)
        self._compiled: tuple[Callable[..., Tensor], Callable[..., Tensor]] | None = None

    def compile(self) -> None:
        """Let torch.compile fuse the layers used in training; batch and lengths stay variable."""
        torch._dynamo.config.recompile_limit = 64
        self._compiled = (torch.compile(encoder_layer), torch.compile(decoder_layer))

    def use_eager(self) -> None:
        self._compiled = None

    def states(self, weights: Weights, batch: Batch, *, training: bool) -> Tensor:
        """The decoder's final states, (B, T, d); those at padding mean nothing."""
        compiled = self._compiled if training else None
        run_encoder, run_decoder = compiled or (encoder_layer, decoder_layer)
        rates = Rates(
            self.config.dropout if training else 0.0, self.config.attention_dropout if training else 0.0
        )
        mask = batch.source_mask[:, None, None, :]  # (B, 1, 1, S): keys that may be looked at
        x = self._embed(weights, batch.source, rates)  # (B, S, d)
        y = self._embed(weights, batch.decoder_input, rates)  # (B, T, d)
        if compiled:
            for tensor, dimensions in ((x, (0, 1)), (y, (0, 1)), (mask, (0, 3))):
                for dimension in dimensions:
                    torch._dynamo.maybe_mark_dynamic(tensor, dimension)
        for i in range(self.config.encoder_layers):
            layer = _layer(weights, f"encoder.{i}.")
            x = run_encoder(layer, x, mask, self.heads[0], self.activation, rates)
        for i in range(self.config.decoder_layers):
            layer = _layer(weights, f"decoder.{i}.")
            y = run_decoder(layer, y, x, mask, self.heads[1], self.activation, rates)
        return y

    def _embed(self, weights: Weights, tokens: Tensor, rates: Rates) -> Tensor:
        embedded = F.embedding(tokens, weights["shared"], padding_idx=self.config.pad_token_id) * self.scale
        positions = self.positions[: tokens.shape[1]].to(embedded.dtype)
        return _dropout(embedded + positions, rates.residual)


@dataclass(frozen=True)
class Rates:
    """Dropout of sublayer outputs and of attention weights; 0 outside training."""

    residual: float
    attention: float


def encoder_layer(
    weights: Weights, x: Tensor, mask: Tensor, heads: int, activation: Layer, rates: Rates
) -> Tensor:
    """Post-norm: x ← norm(x + sublayer(x)), for self-attention and the feed-forward network."""
    q, k, v = _heads(_linear(weights, "self_qkv", x), heads, 3)
    attended = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=rates.attention)
    x = _close(weights, "self_norm", x, _linear(weights, "self_out", _join(attended)), rates)
    return _feed_forward(weights, x, activation, rates)


def decoder_layer(
    weights: Weights,
    y: Tensor,
    encoded: Tensor,
    mask: Tensor,
    heads: int,
    activation: Layer,
    rates: Rates,
) -> Tensor:
    """As above, with causal self-attention and attention to the source. Target padding lies to the right,
    where causal attention never looks, so it needs no mask."""
    q, k, v = _heads(_linear(weights, "self_qkv", y), heads, 3)
    attended = F.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=rates.attention)
    y = _close(weights, "self_norm", y, _linear(weights, "self_out", _join(attended)), rates)
    (q,) = _heads(_linear(weights, "cross_q", y), heads, 1)
    k, v = _heads(_linear(weights, "cross_kv", encoded), heads, 2)
    attended = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=rates.attention)
    y = _close(weights, "cross_norm", y, _linear(weights, "cross_out", _join(attended)), rates)
    return _feed_forward(weights, y, activation, rates)


def _feed_forward(weights: Weights, x: Tensor, activation: Layer, rates: Rates) -> Tensor:
    return _close(weights, "norm", x, _linear(weights, "fc2", activation(_linear(weights, "fc1", x))), rates)


def _linear(weights: Weights, name: str, x: Tensor) -> Tensor:
    return F.linear(x, weights[f"{name}.weight"], weights[f"{name}.bias"])


def _heads(x: Tensor, heads: int, parts: int) -> tuple[Tensor, ...]:
    """(B, L, parts · d) → `parts` tensors (B, heads, L, d / heads), without copying."""
    batch, length, width = x.shape
    split = x.view(batch, length, parts, heads, width // parts // heads)
    return tuple(part.transpose(1, 2) for part in split.unbind(2))


def _join(x: Tensor) -> Tensor:
    """(B, heads, L, d / heads) → (B, L, d)."""
    return x.transpose(1, 2).flatten(2)


def _close(weights: Weights, norm: str, x: Tensor, update: Tensor, rates: Rates) -> Tensor:
    x = x + _dropout(update, rates.residual)
    return F.layer_norm(x, x.shape[-1:], weights[f"{norm}.weight"], weights[f"{norm}.bias"])


def _dropout(x: Tensor, rate: float) -> Tensor:
    return F.dropout(x, rate) if rate else x


def _layer(weights: Weights, prefix: str) -> Weights:
    return {name[len(prefix) :]: value for name, value in weights.items() if name.startswith(prefix)}


def sinusoids(positions: int, dimension: int) -> Tensor:
    """Marian's position embeddings, (positions, d): sines in the first half, cosines in the second."""
    half = dimension // 2
    frequency = torch.pow(10000.0, -torch.arange(half, dtype=torch.float64) * 2 / dimension)
    angle = torch.arange(positions, dtype=torch.float64)[:, None] * frequency  # (positions, half)
    return torch.cat([angle.sin(), angle.cos()], dim=1).float()


def initialise(flat: Tensor, layout: Layout, config: transformers.MarianConfig, seed: int) -> None:
    """Fill the weights for training from scratch.

    Embeddings get unit variance after scaling. Matrices are Glorot-uniform, each projection on its own; what
    closes a residual branch starts smaller by √(sublayers), so that the sum entering each post-norm is
    dominated by the residual at first: without it, six post-norm layers diverge at large learning rates.
    """
    random = torch.Generator().manual_seed(seed)
    sublayers = {"encoder": 2 * config.encoder_layers, "decoder": 3 * config.decoder_layers}
    flat.zero_()
    for weight, view in zip(layout.weights, layout.views(flat).values(), strict=True):
        if weight.name == "shared":
            view.copy_(torch.empty(weight.shape).normal_(0, config.d_model**-0.5, generator=random))
            view[config.pad_token_id].zero_()
        elif weight.name.endswith("norm.weight"):
            view.fill_(1.0)
        elif weight.name.endswith(".weight"):
            rows, columns = weight.shape[0] // len(weight.parts), weight.shape[1]
            bound = math.sqrt(6 / (rows + columns))
            if weight.name.endswith(("_out.weight", "fc2.weight")):
                bound /= math.sqrt(sublayers[weight.name.split(".")[0]])
            view.copy_(torch.empty(weight.shape).uniform_(-bound, bound, generator=random))


def check_trainable(config: Any, name: str, max_tokens: int) -> None:
    """Refuse a checkpoint that this forward pass does not describe, or whose sentences are shorter."""
    problem = None
    if config.model_type != "marian":
        problem = f"it is a {config.model_type} model; only Marian models can be trained"
    elif not config.share_encoder_decoder_embeddings or not config.tie_word_embeddings:
        problem = "its input and output embeddings are not shared"
    elif config.activation_function not in ACTIVATIONS:
        problem = f"its activation {config.activation_function!r} is not one of {', '.join(ACTIVATIONS)}"
    elif config.max_position_embeddings < max_tokens:
        problem = f"it reads {config.max_position_embeddings} tokens, cleaning.max_tokens is {max_tokens}"
    if problem:
        raise KsterError(f"init: {name} cannot be fine-tuned: {problem}; it was left untouched")
