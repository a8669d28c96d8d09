"""The next-token distribution a search follows: the base model's, alone or smoothed by a memory."""

from __future__ import annotations

from typing import Literal, Protocol, get_args

import torch
from torch import Tensor

from kster.errors import KsterError
from kster.memory import Neighbours, Provenance
from kster.model import BaseModel
from kster.smoothing import Smoother, mix
from kster.translation.beam import Predict

Method = Literal["base", "knn", "kster"]
METHODS: tuple[Method, ...] = get_args(Method)


class Searchable(Protocol):
    """What translation asks of a memory; `Memory` and `MemoryGroup` are such."""

    @property
    def fingerprint(self) -> str: ...
    @property
    def entry_count(self) -> int: ...
    def search(self, queries: Tensor, k: int) -> Neighbours: ...
    def provenance(self, ids: Tensor) -> list[Provenance]: ...


def require_method(method: str) -> None:
    if method not in METHODS:
        raise KsterError(f"method {method!r} is unknown; accepted: {', '.join(METHODS)}")


def base_predictor(queries: Tensor, logits: Tensor) -> Tensor:
    """queries: (rows, d), logits: (rows, V). Returns log p_m, (rows, V)."""
    return torch.log_softmax(logits.float(), dim=-1)


def smoothed_predictor(memory: Searchable, smoother: Smoother) -> Predict:
    """log p = log((1 − λ) p_m + λ p_e), with the memory looked up at every step."""

    def predict(queries: Tensor, logits: Tensor) -> Tensor:
        base = base_predictor(queries, logits)  # (rows, V)
        neighbours = memory.search(queries, smoother.k)
        at_values = base.gather(-1, neighbours.values)  # (rows, k)
        favourite = base.amax(dim=-1) if smoother.needs_base_log_probs else None
        smoothing = smoother(queries, neighbours, at_values, favourite)
        return mix(base, neighbours, smoothing, out=base)

    return predict


def require_same_model(model: BaseModel, memory: Searchable) -> None:
    if memory.fingerprint != model.fingerprint:
        raise KsterError(
            f"this memory was made with another model (fingerprint {memory.fingerprint[:12]}…, "
            f"{model.name} has {model.fingerprint[:12]}…); build it again with this one, or use its own"
        )
