"""A decoding step recorded as a CUDA graph: the host launches one thing instead of a hundred.

A small step is mostly launching: on one H200, 64 sentences × beam 4 with 6 decoder layers take 1.95 ms
launched one by one and 0.87 ms replayed. A graph is bound to the memory it was recorded on, so it lives with
the static state it reads and writes, and is replayed whenever a batch of that shape comes along.
"""

from __future__ import annotations

import gc
import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import Tensor

log = logging.getLogger("kster.model")

# tokens (rows,), parents (rows,) → tensors (rows, …)
Decode = Callable[[Tensor, Tensor], tuple[Tensor, ...]]

STEPS_BEFORE_RECORDING = 40  # more than one batch has at one stretch: a shape has to show that it comes back
MOST_GRAPHS = 16  # of one state; a memory that changes needs new ones, and the old ones go

_one_at_a_time = threading.Lock()  # CUDA records one graph at a time


@cache
def _recording_stream(device: torch.device) -> torch.cuda.Stream:
    """One for all: each stream that multiplies matrices keeps a workspace of its own."""
    return torch.cuda.Stream(device)


class RecordedStep:
    """The step of one static state: run as it is at first, replayed once it has run often enough.

    There is a recording for every stretch of the cache that a step looks at, since a longer one costs more,
    and for everything else that is recorded with the step. They share their scratch memory: one state serves
    one batch at a time.
    """

    def __init__(self, rows: int, device: torch.device) -> None:
        self.tokens = torch.zeros(rows, dtype=torch.int64, device=device)
        self.parents = torch.arange(rows, device=device)
        self.themselves = torch.arange(rows, device=device)
        self.possible = device.type == "cuda"
        self._steps: OrderedDict[Hashable, _Step] = OrderedDict()  # used longest ago first
        self._pool: Any = None  # made with the first recording

    @property
    def graphs(self) -> int:
        return sum(step.recording is not None for step in self._steps.values())

    def run(
        self,
        decode: Decode,
        key: Hashable,
        tokens: Tensor,
        parents: Tensor | None,
        patience: int | None = None,
    ) -> tuple[Tensor, ...]:
        """decode: the step itself, over the static state.

        key: tells one step from another; what it is made of may not change. tokens, parents: (r,), r of the
        state's rows; parents None: every row goes on with itself. patience: how often the step is run before
        it is recorded, if not as often as usual. Returns what decode does, (r, …) each, overwritten by the
        next step.
        """
        r = len(tokens)
        self.tokens[:r] = tokens
        self.parents[:r] = self.themselves[:r] if parents is None else parents
        return tuple(output[:r] for output in self.again(decode, key, patience))

    def again(self, decode: Decode, key: Hashable, patience: int | None = None) -> tuple[Tensor, ...]:
        """As `run`, of all rows, where what the step reads is in `tokens` and `parents` already."""
        step = self._step(key)
        step.times += 1
        if step.times > (patience or STEPS_BEFORE_RECORDING) and step.recording is None and self.possible:
            step.recording = self._record(decode)
        if step.recording is None:
            return decode(self.tokens, self.parents)
        step.recording.graph.replay()
        return step.recording.outputs

    def _step(self, key: Hashable) -> _Step:
        step = self._steps.setdefault(key, _Step())
        self._steps.move_to_end(key)
        if len(self._steps) > MOST_GRAPHS:
            self._steps.popitem(last=False)
        return step

    def _record(self, decode: Decode) -> _Recording | None:
        """Nothing else is computed meanwhile, on any stream: matrix products have a workspace for each stream
        and thread, recordings keep theirs, and two of them running at once would spoil each other's. What
        CUDA must have seen before a recording, it saw when the step ran unrecorded."""
        try:
            with _one_at_a_time:
                return self._capture(decode, _recording_stream(self.tokens.device))
        except RuntimeError as error:
            self.possible = False
            reason = str(error).partition("\n")[0]
            log.warning("decoding goes on without CUDA graphs: %s", reason)
            return None

    def _capture(self, decode: Decode, stream: torch.cuda.Stream) -> _Recording:
        """What `torch.cuda.graph` does, less its collecting of garbage and emptying of the allocator's cache.

        Those take a tenth of a second in a large process, and the next allocations as much again. That no
        garbage is collected during the recording has to be seen to instead.
        """
        graph = torch.cuda.CUDAGraph()
        self._pool = self._pool or torch.cuda.graph_pool_handle()
        torch.cuda.synchronize(self.tokens.device)
        collecting = gc.isenabled()
        gc.disable()
        try:
            with torch.cuda.stream(stream):
                graph.capture_begin(pool=self._pool, capture_error_mode="thread_local")
                try:
                    outputs = decode(self.tokens, self.parents)
                finally:
                    graph.capture_end()
        finally:
            if collecting:
                gc.enable()
        torch.cuda.current_stream().wait_stream(stream)
        return _Recording(graph, outputs)


@dataclass(frozen=True, slots=True)
class _Recording:
    graph: torch.cuda.CUDAGraph
    outputs: tuple[Tensor, ...]  # written by a replay


@dataclass(slots=True)
class _Step:
    times: int = 0
    recording: _Recording | None = None
