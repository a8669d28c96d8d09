"""A model at work: loaded once, with the threads that split texts and translate the pieces for everybody."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kster.errors import KsterError
from kster.memory import Memory, MemoryGroup, SearchableMemory
from kster.model import BaseModel
from kster.server.metrics import Metrics
from kster.server.settings import ModelSetting, ServerSettings
from kster.server.work.batching import Batcher
from kster.server.work.compute_queue import ComputeQueue
from kster.server.work.term_guides import TermGuides
from kster.translation import Method, Translation, Translator
from kster.translation.decoding import Decoding
from kster.translation.result import Output
from kster.translation.service import Round, Steps, Text
from kster.translation.term_guide import TermGuide


@dataclass(frozen=True, slots=True)
class Work:
    """What texts must have in common to be translated in one batch."""

    memories: tuple[Memory, ...]
    method: Method
    decoding: Decoding
    terms: TermGuide | None = None

    @property
    def memory(self) -> SearchableMemory | None:
        if self.method == "base" or not self.memories:
            return None
        return self.memories[0] if len(self.memories) == 1 else MemoryGroup(self.memories)


class ServedModel:
    """A base model, loaded, with its language pair and its queue."""

    def __init__(
        self, wanted: ModelSetting, settings: ServerSettings, compute: ComputeQueue, metrics: Metrics
    ) -> None:
        model = BaseModel.load(
            wanted.path,
            device=settings.device,
            precision=settings.precision,
            source_lang=wanted.source,
            target_lang=wanted.target,
        )
        if not model.source_lang or not model.target_lang:
            raise KsterError(
                f"{model.name}: does not say its languages; in the configuration file write "
                "`models: [{path: …, source: en, target: de}]`"
            )
        self.model = model
        self.source: str = model.source_lang
        self.target: str = model.target_lang
        self.translator = Translator(model, split_sentences=settings.split_sentences)
        self.terms = TermGuides(model)
        self._compute, self._metrics = compute, metrics
        self.splitter = ThreadPoolExecutor(1, thread_name_prefix=f"split {self.pair}")
        self.batcher: Batcher[Work, Output] = Batcher(
            self._translate,
            window=settings.batch_window_ms / 1000 if settings.batching else 0.0,
            largest=settings.batch_sentences if settings.batching else 1,
            name=f"translate {self.pair}",
            on_batch=metrics.batches.observe,
        )

    @property
    def pair(self) -> str:
        return f"{self.source}-{self.target}"

    @property
    def name(self) -> str:
        """For people; does not reveal where it lies."""
        return Path(self.model.name).name or self.model.name

    def close(self) -> None:
        self.splitter.shutdown()
        self.batcher.close()

    def steps(
        self,
        work: Work,
        texts: Sequence[Text],
        split_sentences: bool | None = None,
        context: str | None = None,
        exact_matches: bool = True,
    ) -> Steps:
        with _explained(work):
            return self.translator.steps(
                texts,
                work.decoding,
                memory=work.memory,
                context=context,
                exact_matches=exact_matches,
                split_sentences=split_sentences,
            )

    def take_step(self, work: Work, step: Callable[[], Round]) -> Round | list[Translation]:
        """The next round of some `Steps`, or what they have come to."""
        with _explained(work):
            try:
                return step()
            except StopIteration as end:
                done: list[Translation] = end.value
                return done

    def _translate(self, work: Work, pieces: list[str]) -> list[Output]:
        memory = work.memory
        method: Method = "base" if memory is None else work.method
        with _explained(work), self._compute:
            return self.translator.translate_pieces(
                pieces,
                work.decoding,
                memory=memory,
                terms=work.terms,
                method=method,
                on_search=self._metrics.search_seconds.observe,
            )


@contextmanager
def _explained(work: Work) -> Iterator[None]:
    """If a memory is deleted meanwhile, report that, whatever then fails."""
    try:
        yield
    except Exception as error:
        if any(not used.directory.is_dir() for used in work.memories):
            raise KsterError("a memory was deleted while it was being used") from error
        raise
