"""The forward pass of a translation network: our own, over the weights of a checkpoint.

The mathematics are those of `transformers` (tests hold the two together). One decoder layer serves forced
decoding, where a row is a sentence's target tokens, and stepping, where it is the beams of a sentence; what
differs between the two is where attention looks, and is given.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from kster.model.configuration import Configuration
from kster.model.layers import (
    ACTIVATIONS,
    Layer,
    Norm,
    Precision,
    dtype_of,
    linear,
    output_precision,
)

Attend = Callable[[Tensor], Tensor]  # projected (s, l, parts · d) → mixed (s, l, d)
Watch = Callable[[int, Tensor, Tensor], None]  # layer, queries (s, h, l, d/h), keys (s, h, S, d/h)


class EncoderLayer(NamedTuple):
    self_qkv: Layer  # d → 3d
    self_out: Layer
    self_norm: Norm
    up: Layer  # fc1 and the activation
    down: Layer  # fc2
    norm: Norm  # of the feed-forward network


class DecoderLayer(NamedTuple):
    self_qkv: Layer  # d → 3d
    self_out: Layer
    self_norm: Norm
    cross_q: Layer
    cross_kv: Layer  # d → 2d
    cross_out: Layer
    cross_norm: Norm
    up: Layer
    down: Layer
    norm: Norm


class Network:
    """Encoder, decoder and output projection.

    s sentences, S source tokens, d dimension, h heads, V vocabulary.
    """

    def __init__(
        self,
        config: Configuration,
        weights: Mapping[str, Tensor],
        *,
        precision: Precision,
        device: torch.device,
    ) -> None:
        """weights: by their names in the checkpoint, in any floating type."""
        self.config, self.precision, self.device = config, precision, device
        self.dtype = dtype_of(precision, device)
        self.heads = config.decoder_attention_heads
        self.scale = math.sqrt(config.d_model) if config.scale_embedding else 1.0
        self.positions = config.positions().to(device, self.dtype)  # (P, d), first token first
        build = _Builder(weights, precision, device, ACTIVATIONS[config.activation_function])
        self.encoder = [build.encoder_layer(i) for i in range(config.encoder_layers)]
        self.decoder = [
            build.decoder_layer(i, last=i == config.decoder_layers - 1) for i in range(config.decoder_layers)
        ]
        self.encoder_norm = build.norm("model.encoder.layer_norm") if config.pre_norm else None
        self.decoder_norm = build.norm("model.decoder.layer_norm") if config.pre_norm else None
        self.source_embedding = build.table(config.source_embedding)  # (V of the source, d)
        self.target_embedding = build.table(config.target_embedding)  # (V, d)
        self.output_embedding = build.table(config.output_embedding)  # (V, d)
        bias = weights.get("final_logits_bias")
        self.output_bias = None if bias is None else bias[0].to(device, self.dtype)  # (V,)
        self.project = linear(
            output_precision(precision, device),
            [self.output_embedding],
            [] if self.output_bias is None else [self.output_bias],
            device,
        )  # final states (…, d) → logits (…, V)

    def encode(self, tokens: Tensor, mask: Tensor | None) -> Tensor:
        """tokens: (s, S); mask: as `source_mask` makes it. Returns states (s, S, d)."""
        x = self._embed(self.source_embedding, tokens, self.positions[: tokens.shape[1]])
        heads = self.config.encoder_attention_heads

        def attend(projected: Tensor) -> Tensor:
            q, k, v = self.split(projected, 3, heads)
            return join(F.scaled_dot_product_attention(q, k, v, attn_mask=mask))

        for layer in self.encoder:
            x = self._encoder_layer(layer, x, attend)
        return x if self.encoder_norm is None else self.encoder_norm(x)

    def _encoder_layer(self, layer: EncoderLayer, x: Tensor, attend: Attend) -> Tensor:
        x = self._sublayer(layer.self_norm, x, lambda y: layer.self_out(attend(layer.self_qkv(y))))
        return self._sublayer(layer.norm, x, lambda y: self._feed_forward(layer, y))

    def decode(
        self,
        tokens: Tensor,
        states: Tensor,
        mask: Tensor | None,
        watch: Watch | None = None,
        *,
        taps_only: bool = False,
    ) -> tuple[Tensor, Tensor]:
        """Along given tokens, (s, T). Returns taps and final states, (s, T, d) each.

        states: (s, S, d) of the encoder; watch: is shown what attention to the source compares; taps_only:
        final states are not wanted, and what is returned in their place means nothing.
        """
        x = self.embed_target(tokens, self.positions[: tokens.shape[1]])
        tap = x

        def attend_self(projected: Tensor) -> Tensor:
            q, k, v = self.split(projected, 3)
            return join(F.scaled_dot_product_attention(q, k, v, is_causal=True))

        for i, layer in enumerate(self.decoder):

            def attend_source(projected: Tensor, i: int = i, layer: DecoderLayer = layer) -> Tensor:
                (q,) = self.split(projected, 1)
                k, v = self.split(layer.cross_kv(states), 2)
                if watch is not None:
                    watch(i, q, k)
                return join(F.scaled_dot_product_attention(q, k, v, attn_mask=mask))

            x, tap = self.decoder_layer(
                layer, x, attend_self, attend_source, taps_only=taps_only and layer is self.decoder[-1]
            )
        return tap, self.finish(x)

    def decoder_layer(
        self,
        layer: DecoderLayer,
        x: Tensor,
        attend_self: Attend,
        attend_source: Attend,
        *,
        taps_only: bool = False,
    ) -> tuple[Tensor, Tensor]:
        """x: (s, l, d). Returns what the next layer reads, and the tap: the input of its fc1."""
        x = self._sublayer(layer.self_norm, x, lambda y: layer.self_out(attend_self(layer.self_qkv(y))))
        x = self._sublayer(layer.cross_norm, x, lambda y: layer.cross_out(attend_source(layer.cross_q(y))))
        tap = layer.norm(x) if self.config.pre_norm else x
        if taps_only:
            return x, tap
        x = x + self._feed_forward(layer, tap)
        return (x if self.config.pre_norm else layer.norm(x)), tap

    def final_states(self, taps: Tensor) -> Tensor:
        """What the output projection reads, where norms come last: taps (…, d) are all that is needed."""
        layer = self.decoder[-1]
        return layer.norm(taps + self._feed_forward(layer, taps))

    def finish(self, x: Tensor) -> Tensor:
        """What the output projection reads, of what the last layer put out."""
        return x if self.decoder_norm is None else self.decoder_norm(x)

    def embed_target(self, tokens: Tensor, positions: Tensor) -> Tensor:
        """tokens: (…); positions: broadcast to (…, d)."""
        return self._embed(self.target_embedding, tokens, positions)

    def source_mask(self, lengths: list[int]) -> Tensor | None:
        """(s, 1, 1, S), added to attention scores: 0 at source tokens, −∞ behind them.

        None where all have the same length.
        """
        longest = max(lengths)
        if min(lengths) == longest:
            return None
        behind = torch.arange(longest) >= torch.tensor(lengths)[:, None]  # (s, S)
        mask = torch.zeros(behind.shape).masked_fill_(behind, -torch.inf)
        return mask[:, None, None].to(self.device, self.dtype)

    def _embed(self, table: Tensor, tokens: Tensor, positions: Tensor) -> Tensor:
        return torch.add(positions, F.embedding(tokens, table).to(self.dtype), alpha=self.scale)

    def _sublayer(self, norm: Norm, x: Tensor, inner: Callable[[Tensor], Tensor]) -> Tensor:
        """x ← norm(x + inner(x)), or with norms first x ← x + inner(norm(x))."""
        if self.config.pre_norm:
            return x + inner(norm(x))
        return norm(x + inner(x))

    def _feed_forward(self, layer: EncoderLayer | DecoderLayer, x: Tensor) -> Tensor:
        return layer.down(layer.up(x))

    def split(self, projected: Tensor, parts: int, heads: int | None = None) -> Tensor:
        """(s, l, parts · d) → (parts, s, h, l, d/h); the same memory, if it is of the network's type.

        On a CPU attention in bfloat16 takes longer than in float32: it packs keys and values at every call.
        """
        (sentences, length, width), heads = projected.shape, heads or self.heads
        projected = projected.to(self.dtype).view(sentences, length, parts, heads, width // parts // heads)
        return projected.permute(2, 0, 3, 1, 4)


def join(mixed: Tensor) -> Tensor:
    """(s, h, l, d/h) → (s, l, d)."""
    return mixed.transpose(1, 2).flatten(2)


class _Builder:
    """Layers of a network from the weights of a checkpoint."""

    def __init__(
        self, weights: Mapping[str, Tensor], precision: Precision, device: torch.device, activation: Layer
    ) -> None:
        self.weights, self.precision, self.device, self.activation = weights, precision, device, activation

    def encoder_layer(self, i: int) -> EncoderLayer:
        name = f"model.encoder.layers.{i}"
        return EncoderLayer(
            self_qkv=self.linear(f"{name}.self_attn", "q_proj", "k_proj", "v_proj"),
            self_out=self.linear(f"{name}.self_attn", "out_proj"),
            self_norm=self.norm(f"{name}.self_attn_layer_norm"),
            up=self.linear(name, "fc1", activation=self.activation),
            down=self.linear(name, "fc2"),
            norm=self.norm(f"{name}.final_layer_norm"),
        )

    def decoder_layer(self, i: int, *, last: bool) -> DecoderLayer:
        name = f"model.decoder.layers.{i}"
        inner = output_precision(self.precision, self.device) if last else self.precision
        return DecoderLayer(
            self_qkv=self.linear(f"{name}.self_attn", "q_proj", "k_proj", "v_proj"),
            self_out=self.linear(f"{name}.self_attn", "out_proj"),
            self_norm=self.norm(f"{name}.self_attn_layer_norm"),
            cross_q=self.linear(f"{name}.encoder_attn", "q_proj"),
            cross_kv=self.linear(f"{name}.encoder_attn", "k_proj", "v_proj"),
            cross_out=self.linear(f"{name}.encoder_attn", "out_proj"),
            cross_norm=self.norm(f"{name}.encoder_attn_layer_norm"),
            up=self.linear(name, "fc1", precision=inner, activation=self.activation),
            down=self.linear(name, "fc2", precision=inner),
            norm=self.norm(f"{name}.final_layer_norm"),
        )

    def linear(
        self, prefix: str, *names: str, precision: Precision | None = None, activation: Layer | None = None
    ) -> Layer:
        def parts(kind: str) -> list[Tensor]:
            return [self.weights[f"{prefix}.{name}.{kind}"] for name in names]

        precision = precision or self.precision
        return linear(precision, parts("weight"), parts("bias"), self.device, activation)

    def norm(self, name: str) -> Norm:
        dtype = dtype_of(self.precision, self.device)
        weight, bias = (self.weights[f"{name}.{kind}"].to(self.device, dtype) for kind in ("weight", "bias"))
        return Norm(weight, bias)

    def table(self, name: str) -> Tensor:
        """Embeddings: of which a few rows are read at a time, so on a CPU they stay as the file has them."""
        table = self.weights[name]
        return (
            table
            if self.device.type == "cpu"
            else table.to(self.device, dtype_of(self.precision, self.device))
        )
