"""What a system comes down to, as data: a model, perhaps a memory, and how to believe it.

Nothing here has been made yet; `Pipeline` makes what an engine describes when a translation needs it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from experiments.data import Slice
from experiments.stages import digest
from kster.smoothing import FitSettings, SmootherSettings

LENGTH_PENALTY = 0.6  # the paper's


@dataclass(frozen=True, slots=True)
class MemorySpec:
    """A memory by what is in it. keys_on_demand: translations make the keys they need, the import none."""

    name: str
    slices: tuple[Slice, ...]
    keys_on_demand: bool = False

    @property
    def identity(self) -> list[str]:
        return [*map(str, self.slices), *(["keys on demand"] if self.keys_on_demand else [])]


@dataclass(frozen=True, slots=True)
class Fit:
    """A smoother fitted to a memory and stopped by development text."""

    memory: MemorySpec
    settings: FitSettings
    dev: tuple[Slice, ...]


@dataclass(frozen=True, slots=True)
class RivalFit:
    """Adaptive or Robust kNN-MT (`rivals`), learned from development text with a memory.

    temperature: of Adaptive kNN-MT; Robust kNN-MT learns it.
    """

    kind: Literal["adaptive", "robust"]
    memory: MemorySpec
    dev: tuple[Slice, ...]
    k: int
    steps: int
    temperature: float = 1.0

    @property
    def name(self) -> str:
        settings = (self.k, self.steps, self.temperature, [str(slice) for slice in self.dev])
        return f"{self.kind}-{self.memory.name}-{digest([self.memory.identity, settings])}"


@dataclass(frozen=True, slots=True)
class SentenceSearch:
    """SK-MT (`sentence_knn`): for each sentence only so many of the memory's sentences are searched."""

    sentences: int
    k: int
    temperature: float

    @property
    def name(self) -> str:
        return f"SK-MT {self.sentences} {self.k} {self.temperature}"


@dataclass(frozen=True, slots=True)
class Training:
    """The base model, trained further on the text that a memory is made of.

    epochs: passes over it, but no fewer and no more steps than these, each of so many tokens.
    from_scratch: another model of the same shape and vocabulary, trained on this text alone.
    """

    memory: MemorySpec
    dev: tuple[Slice, ...]
    epochs: int
    batch_tokens: int
    least_steps: int
    most_steps: int
    from_scratch: bool = False

    @property
    def name(self) -> str:
        steps = (self.epochs, self.batch_tokens, self.least_steps, self.most_steps, self.from_scratch)
        return f"{self.memory.name}-{digest([self.memory.identity, steps])}"


@dataclass(frozen=True, slots=True)
class Engine:
    """One way to translate.

    model: None is the base model. smoother: fixed settings (kNN-MT), a fit, or what a memory that nobody has
    fitted uses ("carried": the smoother that the base model carries). length_penalty: of beam search, scores
    divided by length to this power.
    """

    model: Training | None = None
    memory: MemorySpec | None = None
    smoother: SmootherSettings | Fit | RivalFit | SentenceSearch | Literal["carried"] | None = None
    length_penalty: float = LENGTH_PENALTY

    def __str__(self) -> str:
        if self.model is not None:
            return f"trained {self.model.name}"
        if self.memory is None:
            return "base"
        kind = "kNN-MT" if isinstance(self.smoother, SmootherSettings) else "KSTER"
        kind = self.smoother.name if isinstance(self.smoother, RivalFit | SentenceSearch) else kind
        return f"memory {self.memory.name}, {kind}"
