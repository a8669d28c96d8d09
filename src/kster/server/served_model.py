"""A model at work: loaded once, with the thread that translates for everybody."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from kster.errors import KsterError
from kster.memory import Memory, MemoryGroup
from kster.model import BaseModel
from kster.server.batching import Batcher
from kster.server.settings import ModelSetting, ServerSettings
from kster.server.turns import Turns
from kster.translation import Method, Translation, Translator


@dataclass(frozen=True, slots=True)
class Work:
    """What texts must have in common to be translated in one batch."""

    memories: tuple[Memory, ...]
    method: Method
    beam: int
    n_best: int
    explain: bool


class ServedModel:
    """A base model, its language pair and its queue."""

    def __init__(
        self,
        model: BaseModel,
        settings: ServerSettings,
        turns: Turns,
        on_batch: Callable[[int], None] | None = None,
    ) -> None:
        if not model.source_lang or not model.target_lang:
            raise KsterError(
                f"{model.name}: does not say its languages; in the configuration file write "
                "`models: [{path: …, source: en, target: de}]`"
            )
        self.model = model
        self.source: str = model.source_lang
        self.target: str = model.target_lang
        self.translator = Translator(model, split_sentences=settings.split_sentences)
        self._turns = turns
        self.batcher: Batcher[Work, Translation] = Batcher(
            self._translate,
            window=settings.batch_window_ms / 1000 if settings.batching else 0.0,
            largest=settings.batch_sentences if settings.batching else 1,
            name=f"translate {self.pair}",
            on_batch=on_batch,
        )

    @classmethod
    def load(
        cls,
        wanted: ModelSetting,
        settings: ServerSettings,
        turns: Turns,
        on_batch: Callable[[int], None] | None = None,
    ) -> ServedModel:
        model = BaseModel.load(
            wanted.path, device=settings.device, source_lang=wanted.source, target_lang=wanted.target
        )
        return cls(model, settings, turns, on_batch)

    @property
    def pair(self) -> str:
        return f"{self.source}-{self.target}"

    @property
    def name(self) -> str:
        """For people; says nothing about where it lies."""
        return Path(self.model.name).name or self.model.name

    def _translate(self, work: Work, texts: list[str]) -> list[Translation]:
        memory: Memory | MemoryGroup | None = None
        if work.memories and work.method != "base":
            memory = work.memories[0] if len(work.memories) == 1 else MemoryGroup(work.memories)
        try:
            with self._turns:
                return self.translator.translate(
                    texts,
                    memory=memory,
                    method=work.method if memory is not None else "base",
                    beam=work.beam,
                    n_best=work.n_best,
                    explain=work.explain,
                )
        except Exception as error:
            if any(not used.directory.is_dir() for used in work.memories):
                raise KsterError("a memory was deleted while it was being used") from error
            raise
