"""One decoding step of a network.

Fused projections, beams that share what they have read (`state.py`) and cross-attention shared by the beams
of a sentence make it several times faster than the network's own cached forward; every operation stays on the
device, where the whole step is recorded and replayed (`graph.py`). The query handed out is the tap itself, so
a step costs nothing extra for retrieval.

Rows are sentences × beam: row r belongs to sentence r // beam.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

import torch
from torch import Tensor
from torch.nn import functional as F

from kster.model.checkpoint import BaseModel
from kster.model.focus import NO_WORD, attention, by_word, source_words, telling_layer
from kster.model.forcing import pad
from kster.model.network import join
from kster.model.state import DecodingState, Shape, StateMaker


class Candidates(NamedTuple):
    """The tokens that may follow, c of each row, among them the most probable ones; none is there twice."""

    tokens: Tensor  # (rows, c) int64
    log_probs: Tensor  # (rows, c) float32; −∞ where there is no candidate


class Predict(Protocol):
    """Says at every step of a search which tokens may follow."""

    def __call__(
        self,
        queries: Tensor,
        logits: Tensor,
        count: int,
        wanted: Tensor | None = None,
        focus: Tensor | None = None,
        /,
    ) -> Candidates:
        """queries: (rows, d), logits: (rows, V).

        The candidates have the `count` most probable tokens among them. First of all come those wanted,
        (rows, w), with −∞ for what stands there again. focus: (rows, WORDS) how much of the attention goes to
        each word of the source; None where nobody watches.
        """


@dataclass(frozen=True, slots=True, eq=False)
class Wanting:
    """A predictor whose candidates have some tokens among them, besides the most probable ones."""

    predict: Predict
    wanted: Tensor  # (rows, w)

    def __call__(
        self,
        queries: Tensor,
        logits: Tensor,
        count: int,
        _: Tensor | None = None,
        focus: Tensor | None = None,
    ) -> Candidates:
        return self.predict(queries, logits, count, self.wanted, focus)


ENCODED_AT_ONCE = 8  # sentences, on a CPU
STEPS_BEFORE_RECORDING_BOTH = 8  # recording costs about as much as launching these few times


@runtime_checkable
class Freezable(Protocol):
    """A predictor of which a step can be recorded."""

    def frozen(self, state: DecodingState) -> FrozenPredict | None:
        """A predictor for all rows of a state, valid as long as nothing changes; None where recording would
        not pay."""


class FrozenPredict(Protocol):
    """Equal to another as long as it predicts by the same data; nothing it does waits for the device."""

    def __call__(
        self,
        queries: Tensor,
        logits: Tensor,
        count: int,
        wanted: Tensor | None = None,
        focus: Tensor | None = None,
        /,
    ) -> Candidates: ...
    def __hash__(self) -> int: ...


class StepDecoder:
    """Decodes one token per row and step. Make one per model and reuse it."""

    def __init__(self, model: BaseModel, *, static: bool | None = None) -> None:
        """static: round batches up to a few shapes, so that steps can be recorded; by default on a GPU."""
        self.model, self.network = model, model.network
        on_gpu = model.device.type == "cuda"
        self.states = StateMaker(
            len(self.network.decoder),
            self.network.heads,
            model.dimension,
            self.network.dtype,
            model.device,
            static=on_gpu if static is None else static,
        )

    @torch.inference_mode()
    def start(self, sources: list[list[int]], beam: int, capacity: int) -> DecodingState:
        """Encode the sources and feed the decoder's prefix except its last token.

        capacity: how many steps there will be at most. The caller's first step passes `first_tokens`.
        """
        model, network = self.model, self.network
        prefix = model.layout.prefix
        longest = max(len(row) for row in sources)
        state = self.states.get(Shape(len(sources), beam, longest, capacity + len(prefix)))
        for first, some in self._alike(sources):
            mask = network.source_mask([len(row) for row in some])  # (s, 1, 1, S)
            states = network.encode(pad(some, model.pad_id, model.device), mask)  # (s, S, d)
            numbers = pad([source_words(model, row).numbers for row in some], NO_WORD, model.device)
            cross_kv = [network.split(layer.cross_kv(states), 2) for layer in network.decoder]
            state.begin(cross_kv, mask, numbers, first)
        for token in prefix[:-1]:
            self.step(
                state, torch.full((len(sources) * beam,), token, dtype=torch.int64, device=model.device)
            )
        return state

    def _alike(self, sources: list[list[int]]) -> Iterator[tuple[int, list[list[int]]]]:
        """Neighbouring sources that are encoded together, and the number of the first.

        On a CPU a few, so that little is padded and what passes between layers stays in its caches.
        """
        at_once = ENCODED_AT_ONCE if self.model.device.type == "cpu" else len(sources)
        for first in range(0, len(sources), at_once):
            yield first, sources[first : first + at_once]

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
        queries, logits, _ = self._step(state, tokens, parents, watch=False)
        return queries, logits

    def _step(
        self, state: DecodingState, tokens: Tensor, parents: Tensor | None, watch: bool
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """`step`, and with `watch` what the rows look at in the source, (rows, WORDS)."""

        def decode(tokens: Tensor, parents: Tensor | None) -> tuple[Tensor, ...]:
            return self._decode(state, tokens, parents, watch)

        if state.recorded is None:
            queries, hidden, *focus = decode(tokens, parents)
        else:
            queries, hidden, *focus = state.recorded.run(decode, (state.stretch, watch), tokens, parents)
            queries = queries.clone()  # it outlives the step
        state.length += 1
        return queries, self.network.project(hidden), focus[0] if watch else None

    @torch.inference_mode()
    def predict(
        self,
        state: DecodingState,
        tokens: Tensor,
        parents: Tensor | None,
        predict: Predict,
        count: int,
        *,
        watch: bool = False,
    ) -> Candidates:
        """A step, and the candidates that `predict` makes of it, to be used at once; count: see `Predict`.

        watch: whether `predict` is told what the rows look at in the source.

        Where both can be recorded they are, as one: looking up and mixing is more to launch than a step of a
        shallow decoder.
        """
        frozen, inner = None, predict.predict if isinstance(predict, Wanting) else predict
        if state.recorded is not None and isinstance(inner, Freezable):
            frozen = inner.frozen(state)
        if state.recorded is None or frozen is None:
            queries, logits, focus = self._step(state, tokens, parents, watch)
            return predict(queries, logits, count, None, focus)
        fixed = frozen
        wanted = None
        if isinstance(predict, Wanting):
            wanted = state.wanted(predict.wanted, self.model.pad_id)

        def decode(tokens: Tensor, parents: Tensor | None) -> tuple[Tensor, ...]:
            queries, logits, focus = self.decoded(state, tokens, parents, watch)
            return state.predicted(fixed(queries, logits, count, wanted, focus))

        width = 0 if wanted is None else wanted.shape[1]
        found = state.recorded.run(
            decode, (state.stretch, watch, fixed, width), tokens, parents, STEPS_BEFORE_RECORDING_BOTH
        )
        state.length += 1
        return Candidates(*found)

    def decoded(
        self, state: DecodingState, tokens: Tensor, parents: Tensor | None, watch: bool
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """`step` of a state as it is, for recordings, which count its steps themselves; focus: see `Predict`,
        None unless `watch`."""
        queries, hidden, *focus = self._decode(state, tokens, parents, watch)
        return queries, self.network.project(hidden), focus[0] if watch else None

    def _decode(
        self, state: DecodingState, tokens: Tensor, parents: Tensor | None, watch: bool
    ) -> tuple[Tensor, ...]:
        """All of a step but the output projection: queries (rows, d) and final decoder states (rows, d).

        With `watch` also what the rows look at in the source, (rows, WORDS).
        """
        network, beam = self.network, state.shape.beam
        watched = telling_layer(network) if watch else -1
        focus: list[Tensor] = []
        path = state.extend_paths(parents)  # (s, 1, b, nodes)
        x = network.embed_target(tokens.view(-1, beam), state.positions(network.positions))  # (s, b, d)
        tap = x
        for i, layer in enumerate(network.decoder):

            def attend_self(projected: Tensor, i: int = i) -> Tensor:
                qkv = network.split(projected, 3)  # (3, s, h, b, d/h)
                keys, values = state.write(i, qkv.narrow(0, 1, 2))  # (s, h, nodes, d/h)
                return join(F.scaled_dot_product_attention(qkv[0], keys, values, attn_mask=path))

            def attend_source(projected: Tensor, i: int = i) -> Tensor:
                (q,) = network.split(projected, 1)
                keys, values = state.cross_kv[i]  # (s, h, S, d/h)
                if i == watched:
                    attended = attention(q, keys, state.cross_mask)  # (s, h, b, S)
                    focus.append(by_word(attended.mean(1), state.word_numbers).flatten(0, 1))
                    if not q.is_cuda:  # where it is in less than float32
                        return join(attended @ values)
                return join(F.scaled_dot_product_attention(q, keys, values, attn_mask=state.cross_mask))

            x, tap = network.decoder_layer(layer, x, attend_self, attend_source)
        if state.recorded is not None:
            state.position += 1
        return tap.flatten(0, 1), network.finish(x).flatten(0, 1), *focus

    @torch.inference_mode()
    def keep(self, state: DecodingState, sentences: Tensor) -> DecodingState:
        """The state of these sentences alone, to go on with; sentences: (kept,) ascending indices."""
        return self.states.shrunk(state, sentences)

    def finish(self, state: DecodingState) -> None:
        """The batch is translated: another may have its state."""
        self.states.give_back(state)
