"""What a decoding step reads and writes, and static ones of a few shapes that serve batch after batch.

What the beams of a sentence have read is kept once, as nodes that only grow in number: a step adds one for
each beam. Which of them a beam has come along is a mask, `path`. Beams that change places copy their row of
the mask, a few hundred bytes, instead of everything they have read.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor

from kster.model.focus import NO_WORD
from kster.model.graph import RecordedStep

LENGTHS = 32  # static states round lengths up to multiples of this, and sentences to powers of two

# Larger than this a step is busy moving its own cache: launching is no longer what it waits for.
LARGEST_STATIC = 512 << 20  # bytes
KEPT = 2 << 30  # bytes of static states kept for later batches …
MOST_KEPT = 32  # … and how many


class Shape(NamedTuple):
    sentences: int
    beam: int
    source: int  # tokens of the longest source
    capacity: int  # tokens the decoder may read, its prefix included

    @property
    def rows(self) -> int:
        return self.sentences * self.beam

    def rounded(self) -> Shape:
        """The shape of a static state that has room for this one."""
        return Shape(
            sentences=1 << (self.sentences - 1).bit_length(),
            beam=self.beam,
            source=-(-self.source // LENGTHS) * LENGTHS,
            capacity=-(-self.capacity // LENGTHS) * LENGTHS,
        )


@dataclass(slots=True)
class DecodingState:
    """Of one batch: h heads, b beam, T = capacity, S = source.

    What beam j read at position p is node p · b + j. A static state may have more rows than are in use.
    """

    shape: Shape
    self_kv: list[Tensor]  # per layer (2, sentences, h, T · b, d/h)
    path: Tensor  # (rows, T · b) added to attention scores: 0 at nodes a row has come along, −∞ elsewhere
    own_node: Tensor  # (rows,) int64: which of the b nodes of a step is a row's own
    cross_kv: list[Tensor]  # per layer (2, sentences, h, S, d/h)
    cross_mask: Tensor  # (sentences, 1, 1, S) added to attention scores: 0 at source tokens, −∞ elsewhere
    word_numbers: Tensor  # (sentences, S) int64: of the word each source token belongs to (`focus.py`)
    position: Tensor  # (1,) int64 on the device: where the next token is written
    length: int = 0  # the same number, known to the host
    recorded: RecordedStep | None = None  # of static states
    _predicted: dict[int, tuple[Tensor, ...]] = field(default_factory=dict)  # by width, for all recordings

    @property
    def stretch(self) -> int:
        """How many positions the next step looks at: those there are, or that rounded up, under the mask."""
        return self.length + 1 if self.recorded is None else -(-(self.length + 1) // LENGTHS) * LENGTHS

    @property
    def nodes(self) -> int:
        """How many nodes the next step looks at."""
        return self.stretch * self.shape.beam

    def extend_paths(self, parents: Tensor | None) -> Tensor:
        """Row i goes on from where row parents[i] is, by a node of its own.

        Returns the paths as attention takes them, (sentences, 1, b, nodes).
        """
        path = self.path[:, : self.nodes]
        if parents is not None:
            path.copy_(path.index_select(0, parents))
        own = self.own_node + self.position * self.shape.beam  # (rows,)
        path.scatter_(1, own[:, None], 0.0)
        return path.view(self.shape.sentences, 1, self.shape.beam, self.nodes)

    def write(self, layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values of a step's own nodes, (sentences, h, b, d/h) each; returns those of all nodes."""
        beam, cache = self.shape.beam, self.self_kv[layer]
        if self.recorded is None:
            new = slice(self.length * beam, (self.length + 1) * beam)
            cache[0, :, :, new], cache[1, :, :, new] = keys, values
        else:  # where is known to the device alone
            places = self.position * beam + torch.arange(beam, device=keys.device)
            cache[0].index_copy_(2, places, keys)
            cache[1].index_copy_(2, places, values)
        return cache[0, :, :, : self.nodes], cache[1, :, :, : self.nodes]

    @property
    def bytes(self) -> int:
        return sum(cache.nbytes for cache in (*self.self_kv, *self.cross_kv))

    def begin(self, cross_kv: list[tuple[Tensor, ...]], mask: Tensor | None, word_numbers: Tensor) -> None:
        """Read these sources from now on.

        cross_kv: per layer keys and values, (s, h, S', d/h) each; mask: (s, 1, 1, S') added to scores, None
        where all sources have S' tokens; word_numbers: (s, S').
        """
        sentences, _, source, _ = cross_kv[0][0].shape
        for cache, given in zip(self.cross_kv, cross_kv, strict=True):
            for own, part in zip(cache, given, strict=True):
                own[:sentences, :, :source] = part
        self.cross_mask[:sentences] = -torch.inf
        self.cross_mask[:sentences, :, :, :source] = 0.0 if mask is None else mask
        self.word_numbers[:sentences, :source] = word_numbers

    def predicted(self, outputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """A copy of (rows, width) each where every step of this state leaves it."""
        width = outputs[0].shape[-1]
        if width not in self._predicted:
            self._predicted[width] = tuple(torch.empty_like(output) for output in outputs)
        return tuple(kept.copy_(output) for kept, output in zip(self._predicted[width], outputs, strict=True))

    def only(self, sentences: Tensor) -> DecodingState:
        """A state of these sentences and no more; sentences: (kept,) ascending indices."""
        rows = self._rows(sentences)
        return DecodingState(
            shape=self.shape._replace(sentences=len(sentences)),
            self_kv=[cache.index_select(1, sentences) for cache in self.self_kv],
            path=self.path.index_select(0, rows),
            own_node=self.own_node[: len(rows)],
            cross_kv=[cache.index_select(1, sentences) for cache in self.cross_kv],
            cross_mask=self.cross_mask.index_select(0, sentences),
            word_numbers=self.word_numbers.index_select(0, sentences),
            position=self.position,
            length=self.length,
        )

    def take(self, other: DecodingState, sentences: Tensor) -> None:
        """Go on with these of a state's sentences, perhaps of this very state's; they fit in here."""
        rows = self._rows(sentences)
        for cache, old in zip(self.self_kv, other.self_kv, strict=True):
            cache[:, : len(sentences), :, : old.shape[3]] = old.index_select(1, sentences)
        self.path[: len(rows), : other.path.shape[1]] = other.path.index_select(0, rows)
        self.begin(
            [tuple(cache.index_select(1, sentences)) for cache in other.cross_kv],
            other.cross_mask.index_select(0, sentences),
            other.word_numbers.index_select(0, sentences),
        )
        self.position.copy_(other.position)
        self.length = other.length

    def clear(self) -> None:
        """Ready for another batch. What is masked must still be a number, so nothing old is left."""
        for cache in (*self.self_kv, *self.cross_kv):
            cache.zero_()
        self.path.fill_(-torch.inf)
        self.position.zero_()
        self.length = 0

    def _rows(self, sentences: Tensor) -> Tensor:
        beams = torch.arange(self.shape.beam, device=sentences.device)
        return (sentences[:, None] * self.shape.beam + beams).flatten()


class StateMaker:
    """Makes states for one decoder; static ones are kept and given out again, each to one batch at a time."""

    def __init__(
        self, layers: int, heads: int, dimension: int, dtype: torch.dtype, device: torch.device, static: bool
    ) -> None:
        self.layers, self.heads, self.dimension = layers, heads, dimension
        self.dtype, self.device, self.static = dtype, device, static
        self.record = True  # whether static states record their steps as CUDA graphs, where there is CUDA
        self._free: OrderedDict[Shape, DecodingState] = OrderedDict()  # used longest ago first
        self._lock = threading.Lock()

    def get(self, wanted: Shape) -> DecodingState:
        """An empty state with room for this shape."""
        shape = self._served(wanted)
        with self._lock:
            state = self._free.pop(shape, None)
        if state is None:
            return self._new(shape)
        state.clear()
        return state

    def give_back(self, state: DecodingState) -> None:
        """The batch is done with it."""
        if state.recorded is None:
            return
        with self._lock:
            self._free[state.shape] = state
            self._free.move_to_end(state.shape)
            while len(self._free) > MOST_KEPT or sum(free.bytes for free in self._free.values()) > KEPT:
                self._free.popitem(last=False)

    def shrunk(self, state: DecodingState, sentences: Tensor) -> DecodingState:
        """A state for these sentences alone; sentences: (kept,) ascending indices. The old one is used up."""
        wanted = state.shape._replace(sentences=len(sentences))
        if not self._is_static(wanted):
            return state.only(sentences)
        smaller = state if self._served(wanted) == state.shape else self.get(wanted)
        smaller.take(state, sentences)
        if smaller is not state:
            self.give_back(state)
        return smaller

    @property
    def graphs(self) -> int:
        """How many steps are recorded in the states that are free now."""
        with self._lock:
            return sum(state.recorded.graphs for state in self._free.values() if state.recorded)

    def _is_static(self, wanted: Shape) -> bool:
        return self.static and self._bytes(wanted.rounded()) <= LARGEST_STATIC

    def _served(self, wanted: Shape) -> Shape:
        """The shape of the state that a wanted shape gets."""
        return wanted.rounded() if self._is_static(wanted) else wanted

    def _bytes(self, shape: Shape) -> int:
        tokens = shape.rows * shape.capacity + shape.sentences * shape.source
        return 2 * self.layers * tokens * self.dimension * self.dtype.itemsize

    def _new(self, shape: Shape) -> DecodingState:
        size = self.dimension // self.heads

        def caches(rows: int, length: int) -> list[Tensor]:
            one = (2, rows, self.heads, length, size)
            return [torch.zeros(one, dtype=self.dtype, device=self.device) for _ in range(self.layers)]

        mask = torch.full(
            (shape.sentences, 1, 1, shape.source), -torch.inf, dtype=self.dtype, device=self.device
        )
        mask[..., 0] = 0.0  # rows that are not in use attend to something, too: to nothing is not a number
        recorded = None
        if self._is_static(shape):
            recorded = RecordedStep(shape.rows, self.device)
            recorded.possible &= self.record
        return DecodingState(
            shape=shape,
            self_kv=caches(shape.sentences, shape.capacity * shape.beam),
            path=torch.full(
                (shape.rows, shape.capacity * shape.beam), -torch.inf, dtype=self.dtype, device=self.device
            ),
            own_node=torch.arange(shape.beam, device=self.device).repeat(shape.sentences),
            cross_kv=caches(shape.sentences, shape.source),
            cross_mask=mask,
            word_numbers=torch.full((shape.sentences, shape.source), NO_WORD, device=self.device),
            position=torch.zeros(1, dtype=torch.int64, device=self.device),
            recorded=recorded,
        )
