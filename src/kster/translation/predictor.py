"""What a search is told at every step: which tokens may follow, by the base model alone or with a memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter
from typing import Literal, Protocol, get_args, runtime_checkable

import torch
from torch import Tensor

from kster.errors import KsterError
from kster.memory import SearchableMemory
from kster.memory.search.block_index import BlockIndex
from kster.memory.search.device_shortlists import DeviceShortlists
from kster.memory.search.retriever import Batch, Retriever, RowsOf, Searcher
from kster.model import BaseModel
from kster.model.focus import source_words
from kster.model.state import DecodingState
from kster.model.step import Candidates
from kster.smoothing import Smoother
from kster.smoothing.mixing import mix_candidates

Method = Literal["base", "knn", "kster"]
WORTH_RECORDING = 1 << 29
"""Rows × entries up to which a search is recorded: about a millisecond of one H200."""

BLOCK = 128  # tokens of which only the best is compared at first

LEAST_MATCH = 30  # per cent of a source; what has less in common with it says nothing

METHODS: tuple[Method, ...] = get_args(Method)


@dataclass(slots=True)
class SearchClock:
    """How long some sentences' examples were searched for. On a GPU it sees only how searches are
    launched."""

    seconds: float = 0.0

    @contextmanager
    def running(self) -> Iterator[None]:
        began = perf_counter()
        yield
        self.seconds += perf_counter() - began


@dataclass(frozen=True, slots=True)
class LookedUp:
    """A memory, and what searches it for some sentences."""

    memory: SearchableMemory
    searcher: Searcher

    @classmethod
    def of(
        cls,
        memory: SearchableMemory,
        smoother: Smoother,
        texts: Sequence[str],
        model: BaseModel,
        sources: Iterable[list[int]],
    ) -> LookedUp:
        """texts: the sentences' sources; sources: as the model reads them."""
        similarity = smoother.settings.similarity
        words = [source_words(model, ids).words for ids in sources] if similarity else None
        return cls(memory, memory.retriever(Batch(texts, model.device, similarity, words)))

    def best_match(self, source: str) -> int:
        """The percentage of the best fuzzy match; 0 if none is good enough."""
        best = self.memory.matches(source, 1, least=LEAST_MATCH)
        return best[0].percentage if best else 0

    def tokens_of(self, sentences: Sequence[int], lengths: Sequence[int]) -> Searcher:
        """A searcher for queries of these sentences, one after the other; lengths: how many each has."""
        if not isinstance(self.searcher, Retriever):
            return self.searcher
        rows = torch.tensor(sentences).repeat_interleave(torch.tensor(lengths))
        return RowsOf(self.searcher, rows)


@runtime_checkable
class Indexed(Protocol):
    """A memory that says by what it searches."""

    def index_on(self, device: torch.device) -> BlockIndex | None: ...


def require_method(method: str) -> None:
    if method not in METHODS:
        raise KsterError(f"method {method!r} is unknown; accepted: {', '.join(METHODS)}")


@dataclass(frozen=True, slots=True)
class BasePredictor:
    """log p_m alone."""

    def __call__(
        self,
        queries: Tensor,
        logits: Tensor,
        count: int,
        wanted: Tensor | None = None,
        focus: Tensor | None = None,
    ) -> Candidates:
        """The `count` best. queries: (rows, d), logits: (rows, V), wanted: (rows, w), also included."""
        log_probs = torch.log_softmax(logits, dim=-1, dtype=torch.float32)
        return with_wanted(best_tokens(log_probs, count), log_probs, wanted)

    def frozen(self, _: DecodingState) -> BasePredictor:
        return self


base_predictor = BasePredictor()


def with_wanted(best: Candidates, log_probs: Tensor, wanted: Tensor | None) -> Candidates:
    """The tokens that are wanted, and behind them the best of each row; log_probs: (rows, V).

    What is among the best has −∞ where it is wanted.
    """
    if wanted is None or not wanted.shape[1]:
        return best
    known = (wanted[:, :, None] == best.tokens[:, None, :]).any(-1)  # (rows, w)
    more = log_probs.gather(1, wanted).masked_fill(known, -torch.inf)
    return Candidates(torch.cat((wanted, best.tokens), dim=1), torch.cat((more, best.log_probs), dim=1))


def best_tokens(log_probs: Tensor, count: int) -> Candidates:
    """The `count` largest of each row, best first; log_probs: (rows, V).

    On a CPU `topk` looks at one number after the other, so it is shown only the blocks with the largest ones.
    """
    rows, vocabulary = log_probs.shape
    blocks = vocabulary // BLOCK
    if log_probs.device.type != "cpu" or blocks <= count:
        best, tokens = log_probs.topk(min(count, vocabulary))
        return Candidates(tokens, best)
    whole = blocks * BLOCK
    maxima = log_probs[:, :whole].unflatten(1, (blocks, BLOCK)).amax(-1)  # (rows, blocks)
    chosen = maxima.topk(count, sorted=False).indices  # (rows, count)
    tokens = (chosen[:, :, None] * BLOCK + torch.arange(BLOCK)).flatten(1)  # (rows, count · BLOCK)
    if whole < vocabulary:  # the last tokens are not a whole block, and always looked at
        rest = torch.arange(whole, vocabulary).expand(rows, -1)
        tokens = torch.cat([tokens, rest], dim=1)
    best, places = log_probs.gather(1, tokens).topk(count)  # (rows, count)
    return Candidates(tokens.gather(1, places), best)


@dataclass(frozen=True, slots=True)
class SmoothedPredictor:
    """log p = log((1 − λ) p_m + λ p_e), with the memory looked up at every step.

    memory: a memory, a retriever for a batch of sentences, or an index, which is one state of a memory;
    predictors with the same state are equal.
    """

    memory: Searcher
    smoother: Smoother
    clock: SearchClock = field(default_factory=SearchClock, compare=False)

    @property
    def watches(self) -> bool:
        """Whether it wants to know which source words are looked at."""
        return self.smoother.settings.similarity

    def __call__(
        self,
        queries: Tensor,
        logits: Tensor,
        count: int,
        wanted: Tensor | None = None,
        focus: Tensor | None = None,
    ) -> Candidates:
        """The `count` best of the mixture are among the base model's `count` best and the neighbours' values:
        the other tokens keep their order, and only values rise above them."""
        base = torch.log_softmax(logits, dim=-1, dtype=torch.float32)  # (rows, V)
        best = best_tokens(base, count)
        with self.clock.running():
            neighbours = self.smoother.neighbours(self.memory, queries)
        at_values = base.gather(-1, neighbours.values)  # (rows, k)
        smoothing = self.smoother(queries, neighbours, at_values, best.log_probs[:, 0], focus)
        best = with_wanted(best, base, wanted)
        return Candidates(*mix_candidates(*best, at_values, neighbours.values, smoothing))

    def keep(self, sentences: Tensor) -> SmoothedPredictor:
        """For the sentences that go on; sentences: (kept,) ascending."""
        if not isinstance(self.memory, Retriever):
            return self
        return SmoothedPredictor(self.memory.keep(sentences), self.smoother, self.clock)

    def settled(self, state: DecodingState) -> SmoothedPredictor:
        """With what it searches where the recorded steps of this state look for it."""
        if state.recorded is None or not isinstance(self.memory, DeviceShortlists) or not self.memory.lasting:
            return self
        settled = self.memory.settled_in(state.room, state.shape.sentences, state.shape.beam)
        return SmoothedPredictor(settled, self.smoother, self.clock)

    def frozen(self, state: DecodingState) -> SmoothedPredictor | None:
        """With the memory's index as it is now. A search that takes long anyway is not worth recording, since
        a recorded one also looks up rows that are not in use."""
        if isinstance(self.memory, DeviceShortlists):
            return self if self.memory.is_settled_in(state.room) else None
        if not isinstance(self.memory, Indexed):
            return None
        index = self.memory.index_on(state.position.device)
        if index is None or state.shape.rows * index.snapshot.live_count > WORTH_RECORDING:
            return None
        return SmoothedPredictor(index, self.smoother)


def require_same_model(model: BaseModel, memory: SearchableMemory) -> None:
    if memory.fingerprint != model.fingerprint:
        raise KsterError(
            f"this memory was made with another model (fingerprint {memory.fingerprint[:12]}…, "
            f"{model.name} has {model.fingerprint[:12]}…); build it again with this one, or use its own"
        )
