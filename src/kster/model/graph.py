"""A decoding step recorded as a CUDA graph: the host launches one thing instead of a hundred.

A small step is mostly launching: on one H200, 64 sentences × beam 4 with 6 decoder layers take 1.95 ms
launched one by one and 0.87 ms replayed. A graph is bound to the memory it was recorded on, so it lives with
the static state it reads and writes, and is replayed whenever a batch of that shape comes along.
"""

from __future__ import annotations

import gc
import logging
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor

log = logging.getLogger("kster.model")

# tokens (rows,), parents (rows,) → queries (rows, d), final decoder states (rows, d)
Decode = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]

STEPS_BEFORE_RECORDING = 40  # more than one batch has at one stretch: a shape has to show that it comes back

_one_at_a_time = threading.Lock()  # CUDA records one graph at a time


@cache
def _recording_stream(device: torch.device) -> torch.cuda.Stream:
    """One for all: each stream that multiplies matrices keeps a workspace of its own."""
    return torch.cuda.Stream(device)


class RecordedStep:
    """The step of one static state: run as it is at first, replayed once it has run often enough.

    There is a recording for every stretch of the cache that a step looks at, since a longer one costs more.
    """

    def __init__(self, rows: int, device: torch.device) -> None:
        self.tokens = torch.zeros(rows, dtype=torch.int64, device=device)
        self.parents = torch.arange(rows, device=device)
        self.themselves = torch.arange(rows, device=device)
        self.possible = device.type == "cuda"
        self.graphs: dict[int, _Recording] = {}  # by stretch
        self._steps: Counter[int] = Counter()

    def run(
        self, decode: Decode, position: Tensor, stretch: int, tokens: Tensor, parents: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """decode: the step itself, over the static state; position: (1,) of that state, moved on by decode.

        tokens, parents: (r,), r of the state's rows; parents None: every row goes on with itself. Returns
        queries and final decoder states, (r, d) each; the states are overwritten by the next step.
        """
        r = len(tokens)
        self.tokens[:r] = tokens
        self.parents[:r] = self.themselves[:r] if parents is None else parents
        self._steps[stretch] += 1
        if self._steps[stretch] > STEPS_BEFORE_RECORDING and stretch not in self.graphs and self.possible:
            self._record(decode, position, stretch)
        if stretch not in self.graphs:
            queries, hidden = decode(self.tokens, self.parents)
            return queries[:r], hidden[:r]
        recording = self.graphs[stretch]
        recording.graph.replay()
        return recording.queries[:r].clone(), recording.hidden[:r]

    def _record(self, decode: Decode, position: Tensor, stretch: int) -> None:
        before = position.clone()
        try:
            with _one_at_a_time:
                stream = _recording_stream(position.device)
                self._warm_up(decode, stream)
                position.copy_(before)
                graph, queries, hidden = self._capture(decode, stream)
        except RuntimeError as error:
            self.possible = False
            position.copy_(before)
            reason = str(error).partition("\n")[0]
            log.warning("decoding goes on without CUDA graphs: %s", reason)
        else:
            self.graphs[stretch] = _Recording(graph, queries, hidden)

    def _capture(
        self, decode: Decode, stream: torch.cuda.Stream
    ) -> tuple[torch.cuda.CUDAGraph, Tensor, Tensor]:
        """What `torch.cuda.graph` does, less its collecting of garbage and emptying of the allocator's cache.

        Those take a tenth of a second in a large process, and the next allocations as much again. That no
        garbage is collected during the recording has to be seen to instead.
        """
        graph = torch.cuda.CUDAGraph()
        torch.cuda.synchronize(self.tokens.device)
        collecting = gc.isenabled()
        gc.disable()
        try:
            with torch.cuda.stream(stream):
                graph.capture_begin(capture_error_mode="thread_local")
                try:
                    queries, hidden = decode(self.tokens, self.parents)
                finally:
                    graph.capture_end()
        finally:
            if collecting:
                gc.enable()
        torch.cuda.current_stream().wait_stream(stream)
        return graph, queries, hidden

    def _warm_up(self, decode: Decode, stream: torch.cuda.Stream) -> None:
        """Once on the stream that records, as CUDA asks for. What this writes the real step overwrites."""
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            decode(self.tokens, self.themselves)
        torch.cuda.current_stream().wait_stream(stream)


@dataclass(frozen=True, slots=True)
class _Recording:
    graph: torch.cuda.CUDAGraph
    queries: Tensor  # (rows, d), written by a replay
    hidden: Tensor  # (rows, d), likewise
