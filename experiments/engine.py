"""What a system comes down to: a model, perhaps a memory, and how to believe it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.data import Slice
from kster.smoothing import SmootherSettings

LENGTH_PENALTY = 0.6  # the paper's


@dataclass(frozen=True, slots=True)
class MemorySpec:
    """A memory by what is in it."""

    name: str
    slices: tuple[Slice, ...]

    @property
    def identity(self) -> list[str]:
        return [str(slice) for slice in self.slices]


@dataclass(frozen=True, slots=True)
class Engine:
    """One way to translate: a model, perhaps a memory, and how to believe it.

    model: a fine-tuned model's directory; None is the base model. smoother: fixed settings (kNN-MT) or the
    directory of a fit. length_penalty: of beam search, scores divided by length to this power.
    """

    model: Path | None = None
    memory: MemorySpec | None = None
    smoother: SmootherSettings | Path | None = None
    length_penalty: float = LENGTH_PENALTY

    @property
    def identity(self) -> dict[str, Any]:
        smoother: Any = self.smoother
        if isinstance(smoother, SmootherSettings):
            smoother = smoother.to_json()
        elif smoother is not None:
            smoother = f"fit {smoother.name}"
        return {
            "model": None if self.model is None else self.model.parent.name,
            "memory": None if self.memory is None else self.memory.identity,
            "smoother": smoother,
        } | ({} if self.length_penalty == LENGTH_PENALTY else {"length_penalty": self.length_penalty})

    def __str__(self) -> str:
        if self.model is not None:
            return self.model.parent.name
        if self.memory is None:
            return "base"
        kind = f"fit {self.smoother.name}" if isinstance(self.smoother, Path) else "kNN-MT"
        return f"memory {self.memory.name}, {kind}"
