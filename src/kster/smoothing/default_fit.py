"""The default smoother of a model: fitted once, over memories of several domains and many sizes.

A customer's first segments should help before anybody fits anything. So a smoother is trained on memories
like the ones it will meet: of each domain one with a single segment, one with ten, and so on, each queried
with text of the same domain that is not in it (believe it) and with general text (leave it alone). It is
saved as `<model>/smoother`, where `resolve_smoother` finds it for memories without a fit of their own.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from kster.errors import KsterError
from kster.formats import Pair
from kster.memory import Memory
from kster.smoothing.cache import Lookup, cache_pairs
from kster.smoothing.fit import over_fetch, start_smoother
from kster.smoothing.fit_settings import FitSettings
from kster.smoothing.key_table import KeyTable
from kster.smoothing.optimisation import CurvePoint, Optimisation, Source, evaluate
from kster.smoothing.smoother import Smoother

if TYPE_CHECKING:
    from kster.model import BaseModel

Pairs = Sequence[tuple[str, str]]

SIZES = (1, 10, 100, 1_000, 10_000, 100_000)


@dataclass(frozen=True, slots=True)
class DefaultFitSettings:
    """sizes: segments of the memories, as far as a domain reaches. queries: pairs of each domain that are
    looked up in its memories, and as many of general text; dev_queries: further ones that judge.
    general_share: of each batch."""

    sizes: tuple[int, ...] = SIZES
    queries: int = 400
    dev_queries: int = 100
    general_share: float = 0.4
    fit: FitSettings = field(default_factory=lambda: FitSettings(steps=1500, patience=10))


@dataclass(frozen=True, slots=True)
class DefaultFitResult:
    """Loss a token on the judging queries of one memory."""

    domain: str
    size: int
    text: str  # "domain" or "general"
    base: float
    kster: float


def fit_default(
    model: BaseModel,
    domains: Mapping[str, Pairs],
    general: Pairs,
    directory: Path,
    *,
    scratch: Path,
    settings: DefaultFitSettings | None = None,
    on_point: Callable[[CurvePoint], None] | None = None,
) -> list[DefaultFitResult]:
    """Fit a default smoother and save it in `directory` (as a rule `<model>/smoother`).

    domains: (source, target) pairs by name; general: general-domain pairs, none of them in a domain.
    scratch: an empty directory for the memories. Returns how it does on each memory.
    """
    settings = settings or DefaultFitSettings()
    needed = settings.queries + settings.dev_queries
    for name, pairs in {**domains, "general text": general}.items():
        if len(pairs) <= needed:
            raise KsterError(f"{name}: {len(pairs)} pairs; a default fit needs more than {needed}")
    dice = random.Random(settings.fit.seed)
    shown = dice.sample(list(general), needed)
    train: list[Source] = []
    judged: list[tuple[str, int, str, Source]] = []
    for name, pairs in domains.items():
        shuffled = dice.sample(list(pairs), len(pairs))
        own, rest = shuffled[:needed], shuffled[needed:]
        for size in (size for size in settings.sizes if size <= len(rest)):
            look = _memory(model, rest[:size], scratch / f"{name}-{size}", settings.fit)
            for text, queries in (("domain", own), ("general", shown)):
                share = settings.general_share if text == "general" else 1.0 - settings.general_share
                train.append(look(queries[: settings.queries], share))
                judged.append((name, size, text, look(queries[settings.queries :], share)))
    # The largest memory of the first domain: its tokens say where σ and λ begin.
    first = max((s for s in train if s.share != settings.general_share), key=lambda s: len(s.table.entries))
    smoother = start_smoother(model, first.cache, settings.fit)
    run = Optimisation(
        smoother, train, [source for *_, source in judged], settings.fit, model.vocabulary_size, model.device
    )
    run.run(None if on_point is None else lambda _, point: on_point(point))
    smoother.save(directory)
    return [_result(smoother, model, *row) for row in judged]


def _memory(
    model: BaseModel, pairs: Pairs, directory: Path, settings: FitSettings
) -> Callable[[Pairs, float], Source]:
    """Make a memory of these pairs; returns a function that looks queries up in it."""
    memory = Memory.create(directory, model)
    memory.import_pairs(Pair(source, target) for source, target in pairs)
    entries = memory.entries()
    lookup, table = Lookup(model, memory, entries), KeyTable(entries, model.device)
    return lambda queries, share: Source(cache_pairs(lookup, queries, over_fetch(settings.k)), table, share)


def _result(
    smoother: Smoother, model: BaseModel, domain: str, size: int, text: str, source: Source
) -> DefaultFitResult:
    loss = evaluate(smoother, source, model.device).nll
    return DefaultFitResult(domain, size, text, source.cache.base_nll, loss)
