"""The next-token distribution a search follows: the base model's, alone or smoothed by a memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol, get_args, runtime_checkable

import torch
from torch import Tensor

from kster.errors import KsterError
from kster.memory import Neighbours, Provenance
from kster.memory.index import Index
from kster.model import BaseModel
from kster.smoothing import Smoother, mix

Method = Literal["base", "knn", "kster"]
WORTH_RECORDING = 1 << 29
"""Rows × entries up to which a search is recorded: about a millisecond of one H200."""

METHODS: tuple[Method, ...] = get_args(Method)


class Searchable(Protocol):
    """What translation asks of a memory; `Memory` and `MemoryGroup` are such."""

    @property
    def fingerprint(self) -> str: ...
    @property
    def entry_count(self) -> int: ...
    def search(self, queries: Tensor, k: int) -> Neighbours: ...
    def provenance(self, ids: Tensor) -> list[Provenance]: ...


@runtime_checkable
class Indexed(Protocol):
    """A memory that says by what it searches."""

    def index_on(self, device: torch.device) -> Index | None: ...


def require_method(method: str) -> None:
    if method not in METHODS:
        raise KsterError(f"method {method!r} is unknown; accepted: {', '.join(METHODS)}")


def base_predictor(queries: Tensor, logits: Tensor) -> Tensor:
    """queries: (rows, d), logits: (rows, V). Returns log p_m, (rows, V)."""
    return torch.log_softmax(logits.float(), dim=-1)


@dataclass(frozen=True, slots=True)
class SmoothedPredictor:
    """log p = log((1 − λ) p_m + λ p_e), with the memory looked up at every step.

    memory: or an index, which is one state of a memory; two predictors by the same state are equal.
    """

    memory: Searchable | Index
    smoother: Smoother

    def __call__(self, queries: Tensor, logits: Tensor) -> Tensor:
        base = base_predictor(queries, logits)  # (rows, V)
        neighbours = self.smoother.neighbours(self.memory, queries)
        at_values = base.gather(-1, neighbours.values)  # (rows, k)
        favourite = base.amax(dim=-1) if self.smoother.needs_base_log_probs else None
        smoothing = self.smoother(queries, neighbours, at_values, favourite)
        return mix(base, neighbours, smoothing, out=base)

    def frozen(self, rows: int, device: torch.device) -> SmoothedPredictor | None:
        """With the memory's index as it is now. A search that takes long anyway is not worth recording: a
        recorded one looks up rows that are not in use, too."""
        index = self.memory.index_on(device) if isinstance(self.memory, Indexed) else None
        if index is None or rows * index.snapshot.live_count > WORTH_RECORDING:
            return None
        return SmoothedPredictor(index, self.smoother)


def require_same_model(model: BaseModel, memory: Searchable) -> None:
    if memory.fingerprint != model.fingerprint:
        raise KsterError(
            f"this memory was made with another model (fingerprint {memory.fingerprint[:12]}…, "
            f"{model.name} has {model.fingerprint[:12]}…); build it again with this one, or use its own"
        )
