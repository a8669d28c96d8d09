"""Fit a memory's smoother: cache once, train, keep the best, and say how it went."""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from kster.errors import KsterError
from kster.smoothing.defaults import SMOOTHER_DIRECTORY
from kster.smoothing.fitting.cache import FitCache
from kster.smoothing.fitting.dropout import drop, first_k
from kster.smoothing.fitting.general import general_text
from kster.smoothing.fitting.key_table import KeyTable
from kster.smoothing.fitting.lookup import (
    Lookup,
    cache_pairs,
    cache_segments,
    count_in_memory,
    groups_of,
    require_readable,
)
from kster.smoothing.fitting.metric_fit import learn_metric
from kster.smoothing.fitting.optimisation import (
    CurvePoint,
    Evaluation,
    Optimisation,
    Source,
    evaluate,
    neighbours_without_own,
    surely_better,
)
from kster.smoothing.fitting.report import DevResult, Distribution, FitReport
from kster.smoothing.fitting.settings import FitSettings
from kster.smoothing.fitting.split import split_segments
from kster.smoothing.fitting.start import carried_smoother, start_smoother
from kster.smoothing.fitting.sweep import Grid, Trial, best_of, default_grid, sweep
from kster.smoothing.metric import candidates

if TYPE_CHECKING:
    from kster.memory import Memory
    from kster.model import BaseModel

log = logging.getLogger("kster.smoothing")

MAX_TOKENS = {"cpu": 60_000, "cuda": 1_000_000}
GENERAL_HELD_OUT = 0.1  # of the general-domain pairs
DEV_HELD_OUT = 4  # one of so many development pairs, when the others are learned from
FEW_TOKENS = 800  # trained on: with fewer, a fit that helped held-out text by chance has harmed other text
SURE = 2.0  # standard errors by which such a fit must be better than what the model carries

Pairs = Sequence[tuple[str, str]]
Progress = Callable[[str, int], None]
"""Called with what is being done ("caching", "fitting" or "measuring": learning a metric) and how many tokens
or steps are done."""


def over_fetch(k: int, metric: int = 0) -> int:
    """How many neighbours to cache, for enough to be left after dropout: k more, and room for copies."""
    return candidates(k, metric) + k + 16


def fit(
    model: BaseModel,
    memory: Memory,
    settings: FitSettings | None = None,
    dev: Pairs | None = None,
    *,
    general: Pairs | None = None,
    progress: Progress | None = None,
    on_point: Callable[[CurvePoint], None] | None = None,
    caches: Path | None = None,
    directory: Path | None = None,
) -> FitReport:
    """Fit the smoother of a memory and save it in `<memory>/smoother`, where it is used from then on.

    dev: (source, target) pairs to stop by; without them a share of the memory's own segments is held out.
    general: (source, target) pairs of general-domain text, from which the smoother learns when not to
    believe the memory; a tenth of them is held out and counts as much as `dev` in stopping. None: the text
    that ships for the model's languages, if any. Not used when `general_share` is 0.
    on_point: called with every point of the learning curve as it is made.
    caches: a directory where what was force-decoded and searched is kept for other fits of this memory.
    directory: another place to save it in, where no memory finds it.
    An earlier fit stays in use until this one is complete.
    """
    settings = settings or FitSettings()
    device = model.device
    began = time.monotonic()
    entries = memory.entries()
    if len(entries) == 0:
        raise KsterError(f"{memory.directory}: the memory is empty; add segments before fitting it")
    if settings.general_share == 0:
        general = []
    elif general is None:
        general = general_text(model.source_lang, model.target_lang)
    for pairs in (dev, general):  # now, not after minutes of looking the memory's own text up
        require_readable(model, pairs or [])
    limit = settings.max_tokens or MAX_TOKENS.get(device.type, MAX_TOKENS["cpu"])
    held_out = 0.0 if dev else settings.dev_fraction
    split = split_segments(entries, held_out, limit, settings.seed, apart=groups_of(dev) if dev else None)
    neighbours = over_fetch(settings.k, settings.metric)
    cacher = _Cacher(Lookup(model, memory, entries), neighbours, progress, caches)
    table = KeyTable(entries, device)
    dev_share = settings.dev_share if dev and len(dev) > 1 else 0.0
    train = [Source(cacher.segments(split.train), table, 1.0 - settings.general_share - dev_share)]
    dev_in_memory = count_in_memory(entries, dev, "development") if dev else 0
    if dev and dev_share > 0:
        learned = [pair for i, pair in enumerate(dev) if i % DEV_HELD_OUT]
        train.append(Source(cacher.pairs(learned), table, dev_share))
        dev = dev[::DEV_HELD_OUT]
    judged = [Source(cacher.pairs(dev) if dev else cacher.segments(split.held_out), table)]
    general_cache = None
    if general:
        count_in_memory(entries, general, "general-domain")
        judges = max(1, round(len(general) * GENERAL_HELD_OUT))
        if judges == len(general):
            raise KsterError("general-domain text for a fit needs at least two pairs")
        general_cache = cacher.pairs(general[judges:])
        train.append(Source(general_cache, table, settings.general_share))
        judged.append(Source(cacher.pairs(general[:judges]), table))
    cached = time.monotonic()

    smoother = start_smoother(model, train[0].cache, settings)
    run = Optimisation(smoother, train, judged, settings, model.vocabulary_size, device)

    def look(what: str, point: CurvePoint, before: int = 0) -> None:
        if progress is not None:
            progress(what, point.step - before)
        if on_point is not None:
            on_point(point)

    curve = run.run(lambda point: look("fitting", point))
    keep_what_is_carried(model, run)
    fitted = time.monotonic()
    if settings.metric:
        steps = curve[-1].step
        smoother, further = learn_metric(run, steps, lambda point: look("measuring", point, steps))
        curve += further
    measured = time.monotonic()

    evaluations = [evaluate(smoother, source, device) for source in judged]
    tuned = [_tuned_knn(source.cache, device) for source in judged]
    results = [
        _result(source, trial, evaluation)
        for source, trial, evaluation in zip(judged, tuned, evaluations, strict=True)
    ]
    report = FitReport(
        settings=settings.to_json(),
        seed=settings.seed,
        model=model.name,
        fingerprint=model.fingerprint,
        finished=datetime.now(UTC).isoformat(timespec="seconds"),
        memory_entries=len(entries),
        memory_segments=entries.segment_count,
        newest_segment=entries.newest_segment,
        train_tokens=len(train[0].cache),
        train_segments=len(split.train),
        general_tokens=len(general_cache) if general_cache is not None else 0,
        empty_slots=_empty_slots(train[0].cache, settings),
        dev_origin="given" if dev else "held out",
        dev_in_memory=dev_in_memory,
        dev=results[0],
        general=results[1] if len(results) > 1 else None,
        knn=tuned[0],
        bandwidth=Distribution.of(evaluations[0].bandwidth),
        mixing_weight=Distribution.of(evaluations[0].mixing_weight, 0.0, 1.0),
        metric=smoother.settings.metric,
        curve=curve,
        seconds={
            "caching": round(cached - began, 2),
            "fitting": round(fitted - cached, 2),
            "measuring": round(measured - fitted, 2),
            "total": round(time.monotonic() - began, 2),
        },
    )
    directory = directory or memory.directory / SMOOTHER_DIRECTORY
    smoother.save(directory)
    report.save(directory)
    return report


def keep_what_is_carried(model: BaseModel, run: Optimisation) -> None:
    """Undo the fit of a small memory that is no sure gain: chance decides what seems to help it."""
    carried = carried_smoother(model, run.settings)
    if carried is None or len(run.sources[0].cache) >= FEW_TOKENS:
        return
    before, after = ([evaluate(s, source, run.device) for source in run.dev] for s in (carried, run.smoother))
    if not surely_better(after, before, SURE):
        run.smoother.load_state_dict(carried.state_dict())
        tokens = len(before[0].losses)
        log.warning("no sure gain on %d development tokens: the model's own smoother stays in use", tokens)


class _Cacher:
    """Builds the caches of one fit."""

    def __init__(self, lookup: Lookup, neighbours: int, progress: Progress | None, kept: Path | None) -> None:
        self.lookup, self.neighbours, self.progress, self.kept = lookup, neighbours, progress, kept
        self.done = 0  # tokens

    def segments(self, segment_ids: Sequence[int]) -> FitCache:
        return self._once(
            [*segment_ids],
            lambda: cache_segments(self.lookup, segment_ids, self.neighbours, self._report),
        )

    def pairs(self, pairs: Pairs) -> FitCache:
        return self._once([*pairs], lambda: cache_pairs(self.lookup, pairs, self.neighbours, self._report))

    def _once(self, wanted: list[int] | list[tuple[str, str]], build: Callable[[], FitCache]) -> FitCache:
        """What an earlier fit kept of the same tokens, or built now, and kept if there is a place for it."""
        if self.kept is None:
            cache = build()
        else:
            text = repr((self.lookup.model.fingerprint, self.neighbours, wanted))
            place = self.kept / hashlib.sha256(text.encode()).hexdigest()[:16]
            try:
                cache = FitCache.load(place, self.lookup.entries)
            except (KsterError, OSError, ValueError):  # none yet, of another state, or just being replaced
                cache = build()
                self._keep(cache, place)
        self.done += len(cache)
        return cache

    def _keep(self, cache: FitCache, place: Path) -> None:
        """Other fits of this memory may be doing the same at this moment: the place is filled at once."""
        part = place.with_name(f".{place.name}.{os.getpid()}")
        cache.save(part, self.lookup.entries)
        with suppress(OSError):
            shutil.rmtree(place, ignore_errors=True)
            part.rename(place)
        shutil.rmtree(part, ignore_errors=True)

    def _report(self, tokens: int) -> None:
        if self.progress is not None:
            self.progress("caching", self.done + tokens)


def _tuned_knn(cache: FitCache, device: torch.device) -> Trial:
    """kNN-MT at its best on these tokens: Gaussian kernel, nothing learned."""
    seen = neighbours_without_own(cache)
    grid: Grid = default_grid(cache, seen, "gaussian")
    return best_of(sweep(cache, seen, grid, "gaussian", device=device))


def _result(source: Source, trial: Trial, evaluation: Evaluation) -> DevResult:
    return DevResult(len(source.cache), source.cache.base_nll, trial.nll, evaluation.nll)


def _empty_slots(cache: FitCache, settings: FitSettings) -> float:
    kept = torch.zeros(len(cache), dtype=torch.bool)
    _, found = first_k(drop(cache.ids >= 0, cache.related, kept, settings.dropout), settings.k)
    return float(1.0 - found.double().mean())
