"""The default smoother of a model: fitted once, over memories of several domains and many sizes.

A customer's first segments should help before anybody fits anything. So a smoother is trained on memories
like the ones it will meet: of each domain one that grows from a single segment to all there are, queried at
every size with text of the same domain that is not in it (believe it) and with general text (leave it
alone). It is saved as `<model>/smoother`, where `resolve_smoother` finds it for memories without a fit of
their own.

`fit_universal` does the same over several models at once, with a smoother that sees no decoder states.
"""

from __future__ import annotations

import multiprocessing
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

import torch
from torch import Tensor

from kster.errors import KsterError
from kster.formats import Pair
from kster.memory import Memory
from kster.memory.adding import plainly_too_long
from kster.smoothing.fitting.cache import FitCache, concatenate
from kster.smoothing.fitting.fit import over_fetch
from kster.smoothing.fitting.key_table import KeyTable
from kster.smoothing.fitting.lookup import Lookup, cache_forced
from kster.smoothing.fitting.optimisation import CurvePoint, Optimisation, Source, evaluate
from kster.smoothing.fitting.settings import FitSettings
from kster.smoothing.fitting.start import start_smoother
from kster.smoothing.smoother import Smoother

if TYPE_CHECKING:
    from kster.model import BaseModel, ForcedSentence

Pairs = Sequence[tuple[str, str]]
Kind = Literal["domain", "general"]
Part = Literal["train", "judged"]
PARTS: tuple[Part, ...] = get_args(Part)

SIZES = (1, 10, 100, 1_000, 10_000, 100_000)
UNIVERSAL_START = 0.1  # σ of a universal smoother before its first step, in units of ‖q‖


@dataclass(frozen=True, slots=True)
class DefaultFitSettings:
    """sizes: segments of the memories, as far as a domain reaches; its last size is all there are.
    queries: pairs of each domain that are looked up in its memories, and as many of general text;
    dev_queries: further ones that judge. general_share: of each batch."""

    sizes: tuple[int, ...] = SIZES
    queries: int = 400
    dev_queries: int = 100
    general_share: float = 0.4
    fit: FitSettings = field(default_factory=lambda: FitSettings(start="tuned", steps=1500, patience=10))


@dataclass(frozen=True, slots=True)
class DefaultFitResult:
    """Loss a token on the judging queries of one memory."""

    domain: str
    size: int
    text: Kind
    base: float
    kster: float


@dataclass(frozen=True, slots=True)
class Training:
    """The text for one model: (source, target) pairs by domain, and general pairs of no domain."""

    model: BaseModel
    domains: Mapping[str, Pairs]
    general: Pairs


Say = Callable[[str], None]
OnPoint = Callable[[CurvePoint], None]


def fit_default(
    training: Training,
    directory: Path,
    *,
    scratch: Path,
    settings: DefaultFitSettings | None = None,
    say: Say = lambda line: None,
    on_point: OnPoint | None = None,
    workers: int = 1,
) -> list[DefaultFitResult]:
    """Fit a default smoother and save it in `directory` (as a rule `<model>/smoother`).

    scratch: an empty directory for the memories; workers: see `look_up`. Returns how it does on each memory.
    """
    settings = settings or DefaultFitSettings()
    if settings.fit.metric:
        raise KsterError(
            "Fit setting metric must be 0 in a default fit: a distance is learned for one memory."
        )
    model = training.model
    text = look_up(training, settings, scratch, say, workers)
    train, judged = (text.sources(part, settings.general_share) for part in PARTS)
    smoother = start_smoother(model, train[0].cache, settings.fit)
    run = Optimisation(smoother, train, judged, settings.fit, model.vocabulary_size, model.device)
    run.run(on_point)
    smoother.save(directory)
    return text.results(smoother)


def fit_universal(
    texts: Sequence[LookedUpText], settings: DefaultFitSettings, on_point: OnPoint | None = None
) -> Smoother:
    """One smoother for several models, and for models that carry none: it sees scale-free evidence alone.

    texts: what `look_up` found for each model, all of them on one device.
    """
    fit = replace(settings.fit, features="scale-free", start="paper", metric=0)
    share = settings.general_share
    train, judged = ([s for text in texts for s in text.sources(part, share)] for part in PARTS)
    start = replace(fit.smoother(dimension=1, bandwidth=UNIVERSAL_START), dimension=None)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(fit.seed)
        smoother = Smoother(start).to(texts[0].device)
    Optimisation(smoother, train, judged, fit, 0, texts[0].device).run(on_point)
    return smoother


def look_up(
    training: Training,
    settings: DefaultFitSettings,
    scratch: Path,
    say: Say = lambda line: None,
    workers: int = 1,
) -> LookedUpText:
    """Queries of every domain, and general ones, looked up in memories of that domain of every size.

    Pairs that are longer than the model reads are left out. workers: processes that share the domains; each
    loads the model anew from its directory.
    """
    model = training.model
    needed = settings.queries + settings.dev_queries
    domains = {name: _readable(model, pairs) for name, pairs in training.domains.items()}
    general = _readable(model, training.general)
    for name, pairs in {**domains, "general text": general}.items():
        if len(pairs) <= needed:
            raise KsterError(f"{name}: {len(pairs)} pairs; a default fit needs more than {needed}")
    jobs = [_Job(name, pairs, general, settings, scratch) for name, pairs in domains.items()]
    if workers < 2:
        parts = []
        for job in jobs:
            say(f"looking up {job.name}")
            parts.append(_look_up_domain(model, job))
        return LookedUpText.of(parts, model.device)
    spawn = multiprocessing.get_context("spawn")  # a forked process cannot use a GPU
    with ProcessPoolExecutor(
        workers,
        spawn,
        initializer=_load_model,
        initargs=(
            model.directory,
            str(model.device),
            model.precision,
            (model.source_lang, model.target_lang),
        ),
    ) as pool:
        files = []
        for job, file in zip(jobs, pool.map(_look_up_in_process, jobs), strict=True):
            say(f"looked up {job.name}")
            files.append(file)
    return LookedUpText.of([torch.load(file, weights_only=False) for file in files], model.device)


@dataclass(frozen=True, slots=True)
class _Job:
    """One domain to look up."""

    name: str
    pairs: Pairs
    general: Pairs
    settings: DefaultFitSettings
    scratch: Path


_model: BaseModel | None = None  # that of a worker process


def _load_model(
    directory: Path, device: str, precision: str, languages: tuple[str | None, str | None]
) -> None:
    from kster.model import BaseModel

    global _model
    torch.set_num_threads(1)
    source, target = languages
    _model = BaseModel.load(
        directory, device=device, precision=precision, source_lang=source, target_lang=target
    )


def _look_up_in_process(job: _Job) -> Path:
    """A file with what was looked up: through a pipe, millions of keys would take longer."""
    assert _model is not None
    file = job.scratch / f"{job.name}.looked-up"
    torch.save(_look_up_domain(_model, job), file)
    return file


def _look_up_domain(model: BaseModel, job: _Job) -> _LookedUpDomain:
    settings = job.settings
    dice = random.Random(settings.fit.seed)  # the same general text for every domain
    needed = settings.queries + settings.dev_queries
    shown = _Queries(model, dice.sample(job.general, needed), settings.queries)
    shuffled = dice.sample(job.pairs, len(job.pairs))
    own = _Queries(model, shuffled[:needed], settings.queries)
    looked_up: list[_LookedUp] = []
    with Memory.create(job.scratch / job.name, model) as memory:
        for size in _grow(memory, shuffled[needed:], settings.sizes):
            lookup = Lookup(model, memory, memory.entries())
            texts: dict[Kind, _Queries] = {"domain": own, "general": shown}
            for text, queries in texts.items():
                found = queries.look_up(lookup, over_fetch(settings.fit))
                looked_up.append(_LookedUp(job.name, size, text, *found))
        entries = memory.entries()
        return _LookedUpDomain(looked_up, entries.ids, entries.keys_of(entries.ids))


def _readable(model: BaseModel, pairs: Pairs) -> list[tuple[str, str]]:
    reasons = plainly_too_long(model, pairs)
    return [pair for pair, reason in zip(pairs, reasons, strict=True) if reason is None]


@dataclass(frozen=True, slots=True)
class LookedUpText:
    """All that was looked up for one model."""

    looked_up: list[_LookedUp]
    table: KeyTable
    device: torch.device

    @classmethod
    def of(cls, domains: Sequence[_LookedUpDomain], device: torch.device) -> LookedUpText:
        """The domains' entries get ids that do not overlap."""
        looked_up: list[_LookedUp] = []
        ids: list[Tensor] = []
        taken = 0
        for domain in domains:
            looked_up += [found.shifted(taken) for found in domain.looked_up]
            ids.append(domain.ids + taken)
            taken = int(ids[-1][-1]) + 1
        keys = torch.cat([domain.keys for domain in domains])
        return cls(looked_up, KeyTable.joined(torch.cat(ids), keys, device), device)

    def sources(self, part: Part, general_share: float) -> list[Source]:
        """The domains' tokens, and the general ones."""
        shares: dict[Kind, float] = {"domain": 1.0 - general_share, "general": general_share}
        return [
            Source(
                concatenate([getattr(x, part) for x in self.looked_up if x.text == text]), self.table, share
            )
            for text, share in shares.items()
        ]

    def results(self, smoother: Smoother) -> list[DefaultFitResult]:
        return [
            DefaultFitResult(
                *(x.domain, x.size, x.text, x.judged.base_nll),
                evaluate(smoother, Source(x.judged, self.table), self.device).nll,
            )
            for x in self.looked_up
        ]


@dataclass(frozen=True, slots=True)
class _LookedUp:
    """One text's tokens with what they found in one memory."""

    domain: str
    size: int
    text: Kind
    train: FitCache
    judged: FitCache

    def shifted(self, by: int) -> _LookedUp:
        """With ids of neighbours that are larger by so much."""
        train, judged = (
            replace(cache, ids=torch.where(cache.ids >= 0, cache.ids + by, -1).int())
            for cache in (self.train, self.judged)
        )
        return replace(self, train=train, judged=judged)


@dataclass(frozen=True, slots=True)
class _LookedUpDomain:
    """What was looked up in the memories of a domain, and the entries of the largest of them."""

    looked_up: list[_LookedUp]
    ids: Tensor  # (N,) ascending
    keys: Tensor  # (N, d) float16


class _Queries:
    """Text to be looked up in many memories, force-decoded once; the first pairs are trained on."""

    def __init__(self, model: BaseModel, pairs: Pairs, training: int) -> None:
        self.pairs = pairs
        self.forced: list[ForcedSentence] = list(model.force_decode(pairs))
        self.training = training

    def look_up(self, lookup: Lookup, neighbours: int) -> tuple[FitCache, FitCache]:
        """Tokens to train on, and to judge by."""
        cache = cache_forced(lookup, self.forced, self.pairs, neighbours)
        tokens = sum(len(sentence.tokens) for sentence in self.forced[: self.training])
        rows, here = torch.arange(len(cache)), torch.device("cpu")
        return cache.take(rows[:tokens], here), cache.take(rows[tokens:], here)


def _grow(memory: Memory, pairs: Pairs, sizes: Sequence[int]) -> Iterator[int]:
    """Let the memory grow to each size in turn, the last being all pairs; yields how many it has.

    Every import has a context of its own: otherwise its pairs would take the place of earlier ones with the
    same source, which a single import of all pairs keeps.
    """
    reached = 0
    for size in [*(size for size in sorted(sizes) if size < len(pairs)), len(pairs)]:
        grown = (Pair(*pair, context=f"up to {size}") for pair in pairs[reached:size])
        memory.import_pairs(grown, at_once=4_096, keys="now")
        reached = size
        yield size
