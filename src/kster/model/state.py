"""What a decoding step reads and writes, and static ones of a few shapes that serve batch after batch.

What the beams of a sentence have read is kept once, as nodes that only grow in number: a step adds one for
each beam. Which of them a beam has come along is a mask, `path`. Beams that change places copy their row of
the mask, a few hundred bytes, instead of everything they have read. Most nodes are soon on nobody's path;
states that are not static leave those behind whenever they make room for more.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor

from kster.model.focus import NO_WORD
from kster.model.graph import RecordedStep

ROOM = 16  # steps that a state makes room for at a time, if it is not static
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
    """Of one batch: L layers, h heads, b beam, S = source, room for N nodes.

    In a static state, which may have more rows than are in use, N = capacity · b, and what beam j read at
    position p is node p · b + j. In others N grows, and nodes lie closer together.
    """

    shape: Shape
    self_kv: Tensor  # (L, 2, sentences, h, N, d/h)
    path: Tensor  # (rows, N) added to attention scores: 0 at nodes a row has come along, −∞ elsewhere
    own_path: Tensor  # (rows, b) the same for the b nodes of a step: 0 at the row's own
    cross_kv: Tensor  # (L, 2, sentences, h, S, d/h)
    cross_mask: Tensor  # (sentences, 1, 1, S) added to attention scores: 0 at source tokens, −∞ elsewhere
    word_numbers: Tensor  # (sentences, S) int64: of the word each source token belongs to (`focus.py`)
    position: Tensor  # (1,) int64 on the device: where the next token of a static state is written
    length: int = 0  # tokens read
    written: int = 0  # nodes in use, unless the state is static
    recorded: RecordedStep | None = None  # of static states
    room: dict[str, object] = field(default_factory=dict)  # what else its recordings read and write
    _wanted: dict[int, Tensor] = field(default_factory=dict)  # by width
    _predicted: dict[int, tuple[Tensor, ...]] = field(default_factory=dict)  # by width, for all recordings

    @property
    def stretch(self) -> int:
        """How many positions the next step of a static state looks at: those there are, rounded up."""
        return -(-(self.length + 1) // LENGTHS) * LENGTHS

    def positions(self, table: Tensor) -> Tensor:
        """(1, d) of this step, from all of them, (P, d)."""
        return table.narrow(0, self.length, 1) if self.recorded is None else table[self.position]

    def extend_paths(self, parents: Tensor | None) -> Tensor:
        """Row i goes on from where row parents[i] is, by a node of its own.

        Returns the paths as attention takes them, (sentences, 1, b, nodes).
        """
        beam = self.shape.beam
        if self.recorded is None:
            if parents is not None:
                self.path = self.path.index_select(0, parents)
            if self.written + beam > self.path.shape[1]:
                self._make_room(None)
            self.path.narrow(1, self.written, beam).copy_(self.own_path)
            self.written += beam
            path = self.path.narrow(1, 0, self.written)
        else:
            path = self.path[:, : self.stretch * beam]
            if parents is not None:
                path.copy_(path.index_select(0, parents))
            path.index_copy_(1, self._places(), self.own_path)
        return path.view(self.shape.sentences, 1, beam, -1)

    def write(self, layer: int, new: Tensor) -> tuple[Tensor, ...]:
        """Keys and values of a step's own nodes, (2, sentences, h, b, d/h); returns those of all nodes."""
        beam, cache = self.shape.beam, self.self_kv[layer]
        if self.recorded is None:
            cache.narrow(3, self.written - beam, beam).copy_(new)
            return cache.narrow(3, 0, self.written).unbind(0)
        cache.index_copy_(3, self._places(), new)  # where is known to the device alone
        return cache.narrow(3, 0, self.stretch * beam).unbind(0)

    def _places(self) -> Tensor:
        """(b,) the nodes of a static state's next step."""
        beam = self.shape.beam
        return self.position * beam + torch.arange(beam, device=self.position.device)

    def _make_room(self, sentences: Tensor | None) -> None:
        """Leave behind what is on no path, and, if sentences are given, (kept,), all others."""
        beam, (_, _, every, heads, old, _) = self.shape.beam, self.self_kv.shape
        path = self.path.view(every, beam, -1).narrow(2, 0, self.written)
        if sentences is not None:
            path = path.index_select(0, sentences)
        live = (path == 0.0).any(1)  # (s, written)
        self.written = int(live.sum(1).max())
        # Behind those in use any others do: nobody looks at them before they are written.
        kept = live.int().argsort(dim=1, descending=True, stable=True)[:, : self.written]  # (s, written)
        nodes = torch.nn.functional.pad(kept, (0, ROOM * beam))  # (s, N)
        self.path = path.gather(2, nodes[:, None].expand(-1, beam, -1)).flatten(0, 1)
        own = torch.arange(every, device=path.device) if sentences is None else sentences
        head = (own[:, None] * heads + torch.arange(heads, device=path.device)) * old  # (s, h)
        rows = (head[:, :, None] + nodes[:, None]).flatten()  # of (every · h · N, d/h)
        size = self.self_kv.shape[-1]
        flat = self.self_kv.view(-1, every * heads * old, size).index_select(1, rows)
        self.self_kv = flat.view(*self.self_kv.shape[:2], len(own), heads, -1, size)

    @property
    def bytes(self) -> int:
        return self.self_kv.nbytes + self.cross_kv.nbytes

    def begin(
        self, cross_kv: Sequence[Tensor], mask: Tensor | None, word_numbers: Tensor, first: int = 0
    ) -> None:
        """Read these sources from now on, s of them from the one numbered `first`.

        cross_kv: per layer keys and values, (2, s, h, S', d/h); mask: (s, 1, 1, S') added to scores, None
        where all sources have S' tokens; word_numbers: (s, S').
        """
        _, sentences, _, source, _ = cross_kv[0].shape
        here = slice(first, first + sentences)
        for cache, given in zip(self.cross_kv, cross_kv, strict=True):
            cache[:, here, :, :source] = given
        self.cross_mask[here] = -torch.inf
        self.cross_mask[here, :, :, :source] = 0.0 if mask is None else mask
        self.word_numbers[here, :source] = word_numbers

    def predicted(self, outputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """A copy of (rows, width) each where every step of this state leaves it."""
        width = outputs[0].shape[-1]
        if width not in self._predicted:
            self._predicted[width] = tuple(torch.empty_like(output) for output in outputs)
        return tuple(kept.copy_(output) for kept, output in zip(self._predicted[width], outputs, strict=True))

    def wanted(self, tokens: Tensor, filler: int) -> Tensor:
        """(rows, w) where every step of this static state finds its own, with some columns of filler.

        tokens: (r, v), of the rows in use.
        """
        width = -(-tokens.shape[1] // LENGTHS) * LENGTHS
        kept = self._wanted.get(width)
        if kept is None:
            kept = self._wanted[width] = tokens.new_empty((self.shape.rows, width))
        kept.fill_(filler)
        kept[: len(tokens), : tokens.shape[1]] = tokens
        return kept

    def only(self, sentences: Tensor) -> DecodingState:
        """This state, which is not static, with these sentences and no more: (kept,) ascending indices."""
        self._make_room(sentences)
        self.shape = self.shape._replace(sentences=len(sentences))
        self.own_path = self.own_path[: self.shape.rows]
        self.cross_kv = self.cross_kv.index_select(2, sentences)
        self.cross_mask = self.cross_mask.index_select(0, sentences)
        self.word_numbers = self.word_numbers.index_select(0, sentences)
        return self

    def take(self, other: DecodingState, sentences: Tensor) -> None:
        """Go on, in a static state, with these sentences of another, perhaps of this very one."""
        beams = torch.arange(self.shape.beam, device=sentences.device)
        rows = (sentences[:, None] * self.shape.beam + beams).flatten()
        used = other.path.shape[1] if other.recorded is not None else other.written
        kept = other.self_kv.narrow(4, 0, used).index_select(2, sentences)
        self.self_kv[:, :, : len(sentences), :, :used] = kept
        self.path[: len(rows), :used] = other.path.narrow(1, 0, used).index_select(0, rows)
        self.begin(
            other.cross_kv.index_select(2, sentences).unbind(0),
            other.cross_mask.index_select(0, sentences),
            other.word_numbers.index_select(0, sentences),
        )
        self.position.fill_(other.length)
        self.length = other.length

    def clear(self) -> None:
        """Ready for another batch. What is masked must still be a number, so nothing old is left."""
        self.self_kv.zero_()
        self.cross_kv.zero_()
        self.path.fill_(-torch.inf)
        self.position.zero_()
        self.length = 0


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
        static = self._is_static(shape)
        nodes = shape.beam * (shape.capacity if static else ROOM)

        def cache(length: int) -> Tensor:
            whole = (self.layers, 2, shape.sentences, self.heads, length, self.dimension // self.heads)
            return torch.zeros(whole, dtype=self.dtype, device=self.device)

        def masked(*size: int) -> Tensor:
            return torch.full(size, -torch.inf, dtype=self.dtype, device=self.device)

        mask = masked(shape.sentences, 1, 1, shape.source)
        mask[..., 0] = 0.0  # rows that are not in use attend to something, too: to nothing is not a number
        recorded = None
        if static:
            recorded = RecordedStep(shape.rows, self.device)
            recorded.possible &= self.record
        return DecodingState(
            shape=shape,
            self_kv=cache(nodes),
            path=masked(shape.rows, nodes),
            own_path=masked(shape.beam, shape.beam).fill_diagonal_(0.0).repeat(shape.sentences, 1),
            cross_kv=cache(shape.source),
            cross_mask=mask,
            word_numbers=torch.full((shape.sentences, shape.source), NO_WORD, device=self.device),
            position=torch.zeros(1, dtype=torch.int64, device=self.device),
            recorded=recorded,
        )
