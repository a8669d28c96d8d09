"""Everything behind the APIs: models and memories loaded once, translation in batches, jobs."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from kster.errors import KsterError
from kster.formats import Pair
from kster.memory import Memory, Segment
from kster.server.auth.keys import Keys
from kster.server.database import ServerDatabase
from kster.server.errors import TooLarge, TooSlow
from kster.server.metrics import Metrics
from kster.server.settings import ModelSetting, ServerSettings
from kster.server.work.catalogue import Catalogue, ServerMemory
from kster.server.work.compute_queue import ComputeQueue
from kster.server.work.import_and_fit import JobRunners
from kster.server.work.jobs import FINISHED, Jobs
from kster.server.work.key_worker import KeyWorker
from kster.server.work.served_model import ServedModel, Work
from kster.server.work.term_catalogue import TermCatalogue
from kster.server.work.voices import Voices
from kster.terms import Term
from kster.text.detection import Detector
from kster.text.languages import match_rank
from kster.translation import Method, Translation
from kster.translation.decoding import Decoding
from kster.translation.service import Round, Steps, Text

UPLOADS = "uploads"


class Engine:
    """One per server; `close` finishes what was begun."""

    def __init__(self, settings: ServerSettings) -> None:
        self.settings = settings
        self.idle = True  # after `close`: whether nothing is being computed any more
        self._key_worker: KeyWorker | None = None
        self.metrics = Metrics()
        self.database = self._open_database()
        self.keys = Keys(self.database)
        self.keys.require_some(settings)
        self.compute = ComputeQueue()
        self.models = _load_models(settings, self.compute, self.metrics)
        self.catalogue = self._open_catalogue()
        self.terms = TermCatalogue(settings.data, self.database)
        self.voices = Voices()
        self.detector = Detector({code for m in self.models for code in (m.source, m.target)})
        self.uploads = settings.data / UPLOADS
        self.uploads.mkdir(exist_ok=True)
        self.metrics.waiting_texts.set_function(lambda: sum(m.batcher.waiting for m in self.models))
        self.metrics.waiting_requests.set_function(
            lambda: sum(m.batcher.waiting_requests for m in self.models)
        )
        self.jobs = self._start_jobs()
        self._sweep_uploads()

    # A single server keeps these itself; the servers of a cluster (`kster.cluster`) share theirs.

    def _open_database(self) -> ServerDatabase:
        return ServerDatabase(self.settings.data)

    def _open_catalogue(self) -> Catalogue:
        catalogue = Catalogue(self.settings.data, self.database, self.models)
        for directory in self.settings.memories:
            catalogue.share(directory)
        return catalogue

    def _start_jobs(self) -> Jobs:
        jobs = Jobs(self.database)
        self._key_worker = worker = KeyWorker(self.catalogue, self.compute)
        runners = JobRunners(self.catalogue, jobs, self.uploads, self.model_by_pair, worker.wake)
        jobs.start({"import": runners.run_import, "fit": runners.run_fit}, runners.discard_upload)
        return jobs

    def _sweep_uploads(self) -> None:
        """Delete files whose request died before its job was written down."""
        for upload in self.uploads.iterdir():
            job = self.jobs.get(upload.name)
            if job is None or job.state in FINISHED:
                shutil.rmtree(upload, ignore_errors=True)

    def close(self) -> None:
        for model in self.models:
            model.close()
        self.idle = self.jobs.stop()
        if self._key_worker is not None:
            self.idle &= self._key_worker.stop()
        if self.idle:  # else a job still uses them
            self.catalogue.close()
            self.terms.close()
            self.database.close()

    # Languages ---------------------------------------------------------------------------------------

    def model_for(self, source: str, target: str) -> ServedModel:
        ranked = [(min(match_rank(source, m.source), match_rank(target, m.target)), m) for m in self.models]
        rank, best = max(ranked, key=lambda item: item[0])
        if not rank:
            pairs = ", ".join(f"{m.source} → {m.target}" for m in self.models)
            raise KsterError(f"{source} → {target} is not supported; available: {pairs}")
        return best

    def model_by_pair(self, pair: str) -> ServedModel:
        """pair: "en-de", as `ServedModel.pair` says it."""
        for model in self.models:
            if model.pair == pair:
                return model
        raise KsterError(f"no model for {pair}; available: {', '.join(m.pair for m in self.models)}")

    # Translating -------------------------------------------------------------------------------------

    async def translate(
        self,
        served: ServedModel,
        texts: Sequence[Text],
        memories: Sequence[Memory],
        *,
        method: Method | None = None,
        n_best: int = 1,
        explain: bool = False,
        confidence: bool = False,
        split_sentences: bool | None = None,
        context: str | None = None,
        exact_matches: bool = True,
        terms: Sequence[Term] = (),
        patience: float = 1.0,
        key: str | None = None,
    ) -> list[Translation]:
        """Translate texts, together with whatever other clients ask for in these milliseconds.

        split_sentences: None for the server's setting. context: where the texts stand. exact_matches: whether
        a text that was taught comes back as taught. terms: must be kept.
        patience: how many times `timeout_seconds` it may take. key: the name of the client's key, for
        metrics.
        """
        method = method or ("kster" if memories else "base")
        used = tuple(memories) if method != "base" else ()
        decoding = Decoding(
            beam=max(self.settings.beam, n_best), n_best=n_best, explain=explain, confidence=confidence
        )
        guide = await asyncio.to_thread(served.terms.get, terms) if terms else None
        work = Work(used, method, decoding, guide)
        self.metrics.count_characters(sum(map(len, texts)), key)
        seconds = self.settings.timeout_seconds * patience
        try:
            async with asyncio.timeout(seconds):
                split = served.splitter.submit(
                    served.steps, work, texts, split_sentences, context, exact_matches
                )
                return await self._take_steps(served, work, await asyncio.wrap_future(split))
        except TimeoutError:
            what = (
                f"{len(texts):,} {'text' if len(texts) == 1 else 'texts'} {served.source} → {served.target}"
            )
            raise TooSlow(
                f"translating {what} took longer than {seconds:g} s and was stopped; send less at "
                "once, or try again"
            ) from None

    async def _take_steps(self, served: ServedModel, work: Work, steps: Steps) -> list[Translation]:
        step: Callable[[], Round] = partial(next, steps)
        while True:
            wanted = await asyncio.wrap_future(served.splitter.submit(served.take_step, work, step))
            if isinstance(wanted, list):
                return wanted
            kind = replace(work, decoding=replace(work.decoding, align=wanted.align))
            futures = [asyncio.wrap_future(future) for future in served.batcher.submit(kind, wanted.texts)]
            try:
                step = partial(steps.send, await asyncio.gather(*futures))
            finally:
                for future in futures:
                    future.cancel()  # those that nobody waits for any more

    def require_size(self, texts: Sequence[str]) -> None:
        """Raises when a request has more text than is allowed."""
        if len(texts) > self.settings.max_texts:
            raise KsterError(f"{len(texts)} texts; at most {self.settings.max_texts} are accepted at once")
        characters = sum(map(len, texts))
        if characters > self.settings.max_characters:
            raise KsterError(
                f"{characters:,} characters; at most {self.settings.max_characters:,} are accepted at once"
            )

    # Teaching ----------------------------------------------------------------------------------------

    def teach(
        self,
        memory: ServerMemory,
        served: ServedModel,
        pairs: Sequence[Pair],
        origin: str,
        *,
        replace_unit: bool = False,
        author: str | None = None,
    ) -> list[Segment]:
        """Add examples; the next translation knows them. replace_unit: each replaces those with its id.

        Not for the event loop: it waits for the disk and perhaps for other writers.
        """
        for pair in pairs:
            self.require_size([pair.source, pair.target])
        part = self.catalogue.part(memory, served, create=True)
        assert part is not None
        if replace_unit:
            segments = [
                part.replace(pair.id, pair.source, pair.target, origin=origin, author=author)
                for pair in pairs
                if pair.id is not None
            ]
        else:
            segments = part.add_many(pairs, origin=origin, author=author)
        self.metrics.taught.inc(len(segments))
        return segments

    @property
    def upload_limit(self) -> int:
        return int(self.settings.max_upload_mb * 1_000_000)

    def require_upload_size(self, size: int) -> None:
        if size > self.upload_limit:
            raise TooLarge(f"the file has more than {self.settings.max_upload_mb:g} MB; nothing was imported")


def _load_models(settings: ServerSettings, compute: ComputeQueue, metrics: Metrics) -> list[ServedModel]:
    """The models named, and those of memories whose model was not."""
    models = [ServedModel(wanted, settings, compute, metrics) for wanted in settings.models]
    for directory in settings.memories:
        with Memory.open(directory) as opened:
            description = opened.description
        if all(model.model.fingerprint != description.fingerprint for model in models):
            setting = ModelSetting(
                path=description.model_location(directory),
                source=description.source_lang,
                target=description.target_lang,
            )
            models.append(ServedModel(setting, settings, compute, metrics))
    if not models:
        raise KsterError("nothing to serve: give --model MODEL or --memory DIR")
    pairs = [model.pair for model in models]
    if len(set(pairs)) < len(pairs):
        raise KsterError(f"two models for one language pair ({', '.join(pairs)}); serve one of them")
    return models
