"""One decoding step: our own, over the weights of the `transformers` network.

Fused projections, beams that share what they have read (`state.py`) and cross-attention shared by the beams
of a sentence make it several times faster than the network's own cached forward; every operation stays on the
device, where the whole step is recorded and replayed (`graph.py`). The query handed out is the tap itself, so
a step costs nothing extra for retrieval.

Rows are sentences × beam: row r belongs to sentence r // beam.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

import torch
from torch import Tensor
from torch.nn import functional as F

from kster.model.forcing import pad
from kster.model.state import DecodingState, Shape, StateMaker

if TYPE_CHECKING:
    from kster.model.checkpoint import BaseModel


class Candidates(NamedTuple):
    """The tokens that may follow, c of each row, among them the most probable ones; none is named twice."""

    tokens: Tensor  # (rows, c) int64
    log_probs: Tensor  # (rows, c) float32; −∞ where there is no candidate


# queries (rows, d), logits (rows, V), n → candidates, the n most probable tokens among them
Predict = Callable[[Tensor, Tensor, int], Candidates]

STEPS_BEFORE_RECORDING_BOTH = 8  # recording costs about as much as launching these few times


@runtime_checkable
class Freezable(Protocol):
    """A predictor of which a step can be recorded."""

    def frozen(self, rows: int, device: torch.device) -> FrozenPredict | None:
        """What predicts for as long as nothing changes; None where recording would not pay."""


class FrozenPredict(Protocol):
    """Equal to another as long as it predicts by the same data; nothing it does waits for the device."""

    def __call__(self, queries: Tensor, logits: Tensor, count: int) -> Candidates: ...
    def __hash__(self) -> int: ...


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


class StepDecoder:
    """Decodes one token per row and step. Make one per model and reuse it."""

    def __init__(self, model: BaseModel, *, static: bool | None = None) -> None:
        """static: round batches up to a few shapes, so that steps can be recorded; by default on a GPU."""
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
        on_gpu = model.device.type == "cuda"
        self.states = StateMaker(
            len(self.layers),
            self.heads,
            model.dimension,
            model.dtype,
            model.device,
            static=on_gpu if static is None else static,
        )

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
            cross.append(kv.view(sentences, length, 2, self.heads, d // self.heads).permute(2, 0, 3, 1, 4))
        prefix = model.layout.prefix
        state = self.states.get(Shape(sentences, beam, length, capacity + len(prefix)))
        state.begin(cross, mask.bool())
        for token in prefix[:-1]:
            self.step(state, torch.full((sentences * beam,), token, dtype=torch.int64, device=device))
        return state

    def first_tokens(self, rows: int) -> Tensor:
        """(rows,) the token every translation starts from."""
        return torch.full((rows,), self.model.layout.prefix[-1], dtype=torch.int64, device=self.model.device)

    @torch.inference_mode()
    def step(
        self, state: DecodingState, tokens: Tensor, parents: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Read one token per row. Returns queries (rows, d) and logits (rows, V).

        tokens: (rows,); parents: (rows,), row i first takes over what row parents[i] has read so far.
        """

        def decode(tokens: Tensor, parents: Tensor | None) -> tuple[Tensor, Tensor]:
            return self._decode(state, tokens, parents)

        if state.recorded is None:
            queries, hidden = decode(tokens, parents)
        else:
            queries, hidden = state.recorded.run(decode, state.stretch, tokens, parents)
            queries = queries.clone()  # it outlives the step
        state.length += 1
        return queries, F.linear(hidden, self.output, self.output_bias)

    @torch.inference_mode()
    def predict(
        self, state: DecodingState, tokens: Tensor, parents: Tensor | None, predict: Predict, count: int
    ) -> Candidates:
        """A step, and the candidates that `predict` makes of it, to be used at once; count: see `Predict`.

        Where both can be recorded they are, as one: looking up and mixing is more to launch than a step of a
        shallow decoder.
        """
        frozen = None
        if state.recorded is not None and isinstance(predict, Freezable):
            frozen = predict.frozen(state.shape.rows, self.model.device)
        if state.recorded is None or frozen is None:
            return predict(*self.step(state, tokens, parents), count)
        fixed = frozen

        def decode(tokens: Tensor, parents: Tensor | None) -> tuple[Tensor, ...]:
            queries, hidden = self._decode(state, tokens, parents)
            candidates = fixed(queries, F.linear(hidden, self.output, self.output_bias), count)
            return state.predicted(candidates)

        found = state.recorded.run(
            decode, (state.stretch, fixed), tokens, parents, STEPS_BEFORE_RECORDING_BOTH
        )
        state.length += 1
        return Candidates(*found)

    def _decode(self, state: DecodingState, tokens: Tensor, parents: Tensor | None) -> tuple[Tensor, Tensor]:
        """All of a step but the output projection: queries (rows, d) and final decoder states (rows, d)."""
        path = state.extend_paths(parents)  # (s, 1, b, nodes)
        offset = self.model.layout.position_offset
        x = self.embedding[tokens] * self.scale + self.positions[state.position + offset].to(self.embedding)
        query = x
        for i, layer in enumerate(self.layers):
            inner = layer.self_norm(x) if self.pre_norm else x
            x = x + self._self_attention(inner, i, state, path)
            x = x if self.pre_norm else layer.self_norm(x)
            inner = layer.cross_norm(x) if self.pre_norm else x
            x = x + self._cross_attention(inner, i, state)
            x = x if self.pre_norm else layer.cross_norm(x)
            query = layer.feed_forward_norm(x) if self.pre_norm else x  # the tap
            x = x + F.linear(self.activation(F.linear(query, *layer.up)), *layer.down)
            x = x if self.pre_norm else layer.feed_forward_norm(x)
        if self.final_norm is not None:
            x = self.final_norm(x)
        state.position += 1
        return query, x

    def _self_attention(self, x: Tensor, i: int, state: DecodingState, path: Tensor) -> Tensor:
        rows, d = x.shape
        beam, layer = state.shape.beam, self.layers[i]
        qkv = F.linear(x, *layer.self_qkv).view(rows // beam, beam, 3, self.heads, d // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)  # (s, h, b, d/h) each
        keys, values = state.write(i, k, v)  # (s, h, nodes, d/h)
        mixed = F.scaled_dot_product_attention(q, keys, values, attn_mask=path)  # (s, h, b, d/h)
        return F.linear(mixed.transpose(1, 2).reshape(rows, d), *layer.self_out)

    def _cross_attention(self, x: Tensor, i: int, state: DecodingState) -> Tensor:
        rows, d = x.shape
        beam, layer, cross = state.shape.beam, self.layers[i], state.cross_kv[i]
        q = F.linear(x, *layer.cross_q).view(rows // beam, beam, self.heads, d // self.heads)
        mixed = F.scaled_dot_product_attention(
            q.transpose(1, 2), cross[0], cross[1], attn_mask=state.cross_mask
        )  # (s, h, b, d/h)
        return F.linear(mixed.transpose(1, 2).reshape(rows, d), *layer.cross_out)

    @torch.inference_mode()
    def keep(self, state: DecodingState, sentences: Tensor) -> DecodingState:
        """The state of these sentences alone, to go on with; sentences: (kept,) ascending indices."""
        return self.states.shrunk(state, sentences)

    def finish(self, state: DecodingState) -> None:
        """The batch is translated: another may have its state."""
        self.states.give_back(state)


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
