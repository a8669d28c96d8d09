"""One decoding step: our own, over the weights of the `transformers` network.

A static key/value cache, fused projections and cross-attention shared by the beams of a sentence make it
several times faster than the network's own cached forward; every operation stays on the device. The
query handed out is the tap itself, so a step costs nothing extra for retrieval.

Rows are sentences × beam: row r belongs to sentence r // beam.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn import functional as F

from kster.model.forcing import pad

if TYPE_CHECKING:
    from kster.model.checkpoint import BaseModel


@dataclass(slots=True)
class _Layer:
    """The weights of one decoder layer, projections fused where they read the same input."""

    self_qkv: tuple[Tensor, Tensor]  # (3d, d), (3d,)
    self_out: tuple[Tensor, Tensor]
    cross_q: tuple[Tensor, Tensor]
    cross_kv: tuple[Tensor, Tensor]  # (2d, d), (2d,)
    cross_out: tuple[Tensor, Tensor]
    up: tuple[Tensor, Tensor]  # fc1
    down: tuple[Tensor, Tensor]  # fc2
    self_norm: Any
    cross_norm: Any
    feed_forward_norm: Any


@dataclass(slots=True)
class DecodingState:
    """Everything a step reads and writes. s sentences, h heads, T cache capacity, S source tokens."""

    self_kv: list[Tensor]  # per layer (2, rows, h, T, d/h)
    cross_kv: list[Tensor]  # per layer (2, s, h, S, d/h)
    cross_mask: Tensor  # (s, 1, 1, S) bool, True where there is a source token
    position: Tensor  # (1,) int64 on the device: where the next token is written
    length: int  # the same number, known to the host
    beam: int


class StepDecoder:
    """Decodes one token per row and step. Make one per model and reuse it."""

    def __init__(self, model: BaseModel) -> None:
        decoder = model.network.get_decoder()
        self.model = model
        self.heads: int = model.network.config.decoder_attention_heads
        self.pre_norm = model.layout.pre_norm
        self.activation = decoder.layers[0].activation_fn
        self.embedding = decoder.embed_tokens.weight
        self.scale: float = model.dimension**0.5 if model.network.config.scale_embedding else 1.0
        table = decoder.embed_positions
        self.positions = table.weights if hasattr(table, "weights") else table.weight
        self.layers = [_fuse(layer) for layer in decoder.layers]
        self.final_norm = decoder.layer_norm if self.pre_norm else None
        self.output, self.output_bias = model.output_projection()

    @torch.inference_mode()
    def start(self, sources: list[list[int]], beam: int, capacity: int) -> DecodingState:
        """Encode the sources and feed the decoder's prefix except its last token.

        capacity: how many steps there will be at most. The caller's first step passes `first_tokens`.
        """
        model, device = self.model, self.model.device
        source = pad(sources, model.pad_id, device)  # (s, S)
        mask = pad([[1] * len(row) for row in sources], 0, device)  # (s, S)
        states = model.network.get_encoder()(input_ids=source, attention_mask=mask).last_hidden_state
        sentences, length, d = states.shape
        cross = []
        for layer in self.layers:
            kv = F.linear(states, *layer.cross_kv)  # (s, S, 2d)
            cross.append(
                kv.view(sentences, length, 2, self.heads, d // self.heads).permute(2, 0, 3, 1, 4).contiguous()
            )
        prefix = model.layout.prefix
        shape = (2, sentences * beam, self.heads, capacity + len(prefix), d // self.heads)
        state = DecodingState(
            self_kv=[torch.zeros(shape, dtype=states.dtype, device=device) for _ in self.layers],
            cross_kv=cross,
            cross_mask=mask.bool()[:, None, None, :],
            position=torch.zeros(1, dtype=torch.int64, device=device),
            length=0,
            beam=beam,
        )
        for token in prefix[:-1]:
            self.step(state, torch.full((sentences * beam,), token, dtype=torch.int64, device=device))
        return state

    def first_tokens(self, rows: int) -> Tensor:
        """(rows,) the token every translation starts from."""
        return torch.full((rows,), self.model.layout.prefix[-1], dtype=torch.int64, device=self.model.device)

    @torch.inference_mode()
    def step(self, state: DecodingState, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """Read one token per row. tokens: (rows,). Returns queries (rows, d) and logits (rows, V)."""
        offset = self.model.layout.position_offset
        x = self.embedding[tokens] * self.scale + self.positions[state.position + offset].to(self.embedding)
        visible = self._visible(state)
        query = x
        for layer, self_kv, cross_kv in zip(self.layers, state.self_kv, state.cross_kv, strict=True):
            inner = layer.self_norm(x) if self.pre_norm else x
            x = x + self._self_attention(inner, layer, self_kv, state, visible)
            x = x if self.pre_norm else layer.self_norm(x)
            inner = layer.cross_norm(x) if self.pre_norm else x
            x = x + self._cross_attention(inner, layer, cross_kv, state)
            x = x if self.pre_norm else layer.cross_norm(x)
            query = layer.feed_forward_norm(x) if self.pre_norm else x  # the tap
            x = x + F.linear(self.activation(F.linear(query, *layer.up)), *layer.down)
            x = x if self.pre_norm else layer.feed_forward_norm(x)
        if self.final_norm is not None:
            x = self.final_norm(x)
        state.position += 1
        state.length += 1
        return query, F.linear(x, self.output, self.output_bias)

    def _visible(self, state: DecodingState) -> Tensor | None:
        """On a GPU every step attends over the whole cache under a mask, so that shapes never change."""
        if state.position.device.type == "cpu":
            return None
        capacity = state.self_kv[0].shape[3]
        return (torch.arange(capacity, device=state.position.device) <= state.position)[None, None, None]

    def _self_attention(
        self, x: Tensor, layer: _Layer, cache: Tensor, state: DecodingState, visible: Tensor | None
    ) -> Tensor:
        rows, d = x.shape
        q, k, v = F.linear(x, *layer.self_qkv).view(rows, 3, self.heads, 1, d // self.heads).unbind(1)
        cache[0].index_copy_(2, state.position, k)
        cache[1].index_copy_(2, state.position, v)
        seen = cache if visible is not None else cache[:, :, :, : state.length + 1]
        mixed = F.scaled_dot_product_attention(q, seen[0], seen[1], attn_mask=visible)  # (rows, h, 1, d/h)
        return F.linear(mixed.reshape(rows, d), *layer.self_out)

    def _cross_attention(self, x: Tensor, layer: _Layer, cross: Tensor, state: DecodingState) -> Tensor:
        rows, d = x.shape
        q = F.linear(x, *layer.cross_q).view(rows // state.beam, state.beam, self.heads, d // self.heads)
        mixed = F.scaled_dot_product_attention(
            q.transpose(1, 2), cross[0], cross[1], attn_mask=state.cross_mask
        )  # (s, h, beam, d/h)
        return F.linear(mixed.transpose(1, 2).reshape(rows, d), *layer.cross_out)

    @torch.inference_mode()
    def reorder(self, state: DecodingState, rows: Tensor) -> None:
        """Let row i continue what row rows[i] has read so far; rows: (rows,)."""
        used = slice(None) if state.position.device.type != "cpu" else slice(0, state.length)
        for cache in state.self_kv:
            cache[:, :, :, used] = cache[:, :, :, used].index_select(1, rows)

    @torch.inference_mode()
    def keep(self, state: DecodingState, sentences: Tensor) -> None:
        """Drop all sentences but these from the state; sentences: (kept,) ascending indices."""
        beams = torch.arange(state.beam, device=sentences.device)
        rows = (sentences[:, None] * state.beam + beams).flatten()
        state.self_kv = [cache.index_select(1, rows) for cache in state.self_kv]
        state.cross_kv = [cache.index_select(1, sentences) for cache in state.cross_kv]
        state.cross_mask = state.cross_mask.index_select(0, sentences)


def _fuse(layer: Any) -> _Layer:
    def plain(*modules: Any) -> tuple[Tensor, Tensor]:
        weight = torch.cat([module.weight for module in modules])
        bias = torch.cat([module.bias for module in modules])
        return weight.contiguous(), bias.contiguous()

    own, cross = layer.self_attn, layer.encoder_attn
    return _Layer(
        self_qkv=plain(own.q_proj, own.k_proj, own.v_proj),
        self_out=plain(own.out_proj),
        cross_q=plain(cross.q_proj),
        cross_kv=plain(cross.k_proj, cross.v_proj),
        cross_out=plain(cross.out_proj),
        up=plain(layer.fc1),
        down=plain(layer.fc2),
        self_norm=layer.self_attn_layer_norm,
        cross_norm=layer.encoder_attn_layer_norm,
        feed_forward_norm=layer.final_layer_norm,
    )
