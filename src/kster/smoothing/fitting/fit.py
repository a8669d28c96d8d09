"""Fit a memory's smoother: cache once, train, keep the best, and say how it went."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from kster.errors import KsterError
from kster.smoothing.defaults import SMOOTHER_DIRECTORY
from kster.smoothing.fitting.cache import FitCache
from kster.smoothing.fitting.dropout import drop, first_k
from kster.smoothing.fitting.general import general_text
from kster.smoothing.fitting.kept_caches import Cacher, Pairs, Progress
from kster.smoothing.fitting.key_table import KeyTable
from kster.smoothing.fitting.lookup import Lookup, count_in_memory, groups_of, require_readable
from kster.smoothing.fitting.metric_fit import learn_metric, steps_of
from kster.smoothing.fitting.needed_keys import make_needed_keys
from kster.smoothing.fitting.optimisation import (
    CurvePoint,
    Optimisation,
    Source,
    evaluate,
    neighbours_without_own,
    surely_better,
)
from kster.smoothing.fitting.report import Calibration, DevResult, Distribution, FitReport
from kster.smoothing.fitting.room import require_room
from kster.smoothing.fitting.settings import FitSettings
from kster.smoothing.fitting.split import split_segments
from kster.smoothing.fitting.start import carried_smoother, start_smoother
from kster.smoothing.fitting.sweep import Grid, Trial, best_of, default_grid, sweep
from kster.smoothing.smoother import Smoother

if TYPE_CHECKING:
    from kster.memory import Entries, Memory
    from kster.model import BaseModel

log = logging.getLogger("kster.smoothing")

MAX_TOKENS = {"cpu": 60_000, "cuda": 1_000_000}
GENERAL_HELD_OUT = 0.1  # of the general-domain pairs
FEW_TOKENS = 800  # trained on: with fewer, a fit that helped held-out text by chance has harmed other text
SURE = 2.0  # standard errors by which such a fit must be better than what the model carries


def over_fetch(settings: FitSettings) -> int:
    """How many neighbours to cache, for enough to be left after dropout: k more, and room for copies."""
    smoother = replace(settings.smoother(dimension=1), metric=settings.metric)
    return smoother.candidates + settings.k + 16


@torch.random.fork_rng(devices=[])  # networks begin with random numbers; the caller's are left alone
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

    dev: (source, target) pairs that decide when to stop; without them some of the memory's own segments do.
    general: (source, target) pairs of general-domain text, from which the smoother learns when not to
    believe the memory; a tenth of them is held out and counts as much as `dev` in stopping. None: the text
    that ships for the model's languages, if any. Not used when `general_share` is 0.
    on_point: called with every point of the learning curve as it is made.
    caches: a directory where what was force-decoded and searched is kept for other fits of this memory.
    directory: another place to save it in, where no memory finds it.
    An earlier fit stays in use until this one is complete.
    """
    settings = settings or FitSettings()
    clock = _Clock()
    limit = settings.max_tokens or MAX_TOKENS.get(model.device.type, MAX_TOKENS["cpu"])
    tell = None if progress is None else partial(progress, "keys")
    make_needed_keys(model, memory, limit, [source for source, _ in dev or []], settings.seed, tell)
    clock.note("keys")
    entries = memory.entries()
    if len(entries) == 0:
        raise KsterError(f"{memory.directory}: the memory is empty; add segments before fitting it")
    if settings.general_share == 0:
        general = []
    elif general is None:
        general = general_text(model.source_lang, model.target_lang)
    for pairs in (dev, general):  # now, not after minutes of looking the memory's own text up
        require_readable(model, pairs or [])
    cacher = Cacher(Lookup(model, memory, entries), over_fetch(settings), progress, caches)
    text = _look_up(cacher, settings, limit, dev or [], general)
    clock.note("caching")

    smoother, curve, stays = _train(model, text, settings, progress, on_point, clock)
    lengths: dict[float, float] = {}
    if settings.length and not stays:
        from kster.translation.length import choose_length  # the room above: see pyproject.toml

        tell = None if progress is None else partial(progress, "translating")
        lengths = choose_length(model, memory, smoother, text.dev_pairs, entries, settings.seed, tell)
    clock.note("length")
    calibration = None
    if settings.calibrate:
        from kster.translation.calibration import calibrate  # the room above

        tell = None if progress is None else partial(progress, "judging")
        calibration = calibrate(model, memory, smoother, dev or [], entries, settings.seed, tell)
    clock.note("calibration")
    report = _report(model, entries, text, smoother, settings, curve, clock, stays, lengths, calibration)
    directory = directory or memory.directory / SMOOTHER_DIRECTORY
    smoother.save(directory)
    report.save(directory)
    return report


class _Clock:
    """How long each part of a fit took."""

    def __init__(self) -> None:
        self._began = self._last = time.monotonic()
        self.seconds: dict[str, float] = {}

    def note(self, part: str) -> None:
        now = time.monotonic()
        self.seconds[part] = round(now - self._last, 2)
        self._last = now

    def total(self) -> dict[str, float]:
        return self.seconds | {"total": round(time.monotonic() - self._began, 2)}


@dataclass(slots=True)
class _Text:
    """What a fit learns from and is judged by, all of it looked up."""

    train: list[Source]  # the memory's own text first
    judged: list[Source]  # of the domain first, then general text if there is any
    train_segments: int
    general_tokens: int  # trained on
    dev_origin: str  # "given" or "held out"
    dev_in_memory: int
    dev_pairs: Pairs


def _look_up(cacher: Cacher, settings: FitSettings, limit: int, dev: Pairs, general: Pairs) -> _Text:
    """Divide the text into what is learned from and what judges, and look all of it up in the memory.

    limit: tokens of the memory to learn from.
    """
    lookup, entries = cacher.lookup, cacher.lookup.entries
    device = lookup.model.device
    table = KeyTable(entries, device)
    held_out = 0.0 if dev else settings.dev_fraction
    split = split_segments(entries, held_out, limit, settings.seed, apart=groups_of(dev) if dev else None)
    require_room(min(limit, len(entries)), cacher.neighbours, lookup.model.dimension)
    cacher.expect([*split.train, *split.held_out], [*dev, *general])
    train = [Source(cacher.segments(split.train), table, 1.0 - settings.general_share)]
    dev_pairs = dev or _pairs_of(lookup.memory, split.held_out)
    text = _Text(train, [], len(split.train), 0, "given" if dev else "held out", 0, dev_pairs)
    if dev:
        text.dev_in_memory = count_in_memory(entries, dev, "development")
        text.judged.append(Source(cacher.pairs(dev), table))
    else:
        text.judged.append(Source(cacher.segments(split.held_out), table))
    if general:
        count_in_memory(entries, general, "general-domain")
        judges = max(1, round(len(general) * GENERAL_HELD_OUT))
        if judges == len(general):
            raise KsterError("general-domain text for a fit needs at least two pairs")
        train.append(Source(cacher.pairs(general[judges:]), table, settings.general_share))
        text.general_tokens = len(train[-1].cache)
        text.judged.append(Source(cacher.pairs(general[:judges]), table))
    return text


def _train(
    model: BaseModel,
    text: _Text,
    settings: FitSettings,
    progress: Progress | None,
    on_point: Callable[[CurvePoint], None] | None,
    clock: _Clock,
) -> tuple[Smoother, list[CurvePoint], bool]:
    """The fitted smoother, its learning curve, and whether it is still the model's own."""

    def look(what: str, total: int, point: CurvePoint, before: int = 0) -> None:
        if progress is not None:
            progress(what, point.step - before, total)
        if on_point is not None:
            on_point(point)

    smoother = start_smoother(model, text.train[0].cache, settings)
    run = Optimisation(smoother, text.train, text.judged, settings, model.vocabulary_size, model.device)
    curve = run.run(lambda point: look("fitting", settings.steps, point))
    stays = keep_what_is_carried(model, run)
    clock.note("fitting")
    if settings.metric:
        steps = curve[-1].step
        total = steps_of(settings)
        smoother, further = learn_metric(run, steps, lambda point: look("measuring", total, point, steps))
        curve += further
        stays = stays and not smoother.settings.metric
    clock.note("measuring")
    return smoother, curve, stays


def _pairs_of(memory: Memory, segment_ids: Sequence[int]) -> Pairs:
    wanted = set(segment_ids)
    return [(segment.source, segment.target) for segment in memory.segments() if segment.id in wanted]


def _report(
    model: BaseModel,
    entries: Entries,
    text: _Text,
    smoother: Smoother,
    settings: FitSettings,
    curve: list[CurvePoint],
    clock: _Clock,
    model_smoother_stays: bool,
    lengths: dict[float, float],
    calibration: Calibration | None,
) -> FitReport:
    """What the fit gained, beside kNN-MT at its best on the same tokens."""
    evaluations = [evaluate(smoother, source, model.device) for source in text.judged]
    tuned = [_tuned_knn(source.cache, model.device) for source in text.judged]
    results = [
        DevResult(len(source.cache), source.cache.base_nll, trial.nll, evaluation.nll)
        for source, trial, evaluation in zip(text.judged, tuned, evaluations, strict=True)
    ]
    own = text.train[0].cache
    return FitReport(
        settings=settings.to_json(),
        seed=settings.seed,
        model=model.name,
        fingerprint=model.fingerprint,
        finished=datetime.now(UTC).isoformat(timespec="seconds"),
        memory_entries=len(entries),
        memory_segments=entries.segment_count,
        newest_segment=entries.newest_segment,
        train_tokens=len(own),
        train_segments=text.train_segments,
        general_tokens=text.general_tokens,
        empty_slots=_empty_slots(own, settings),
        dev_origin=text.dev_origin,
        dev_in_memory=text.dev_in_memory,
        dev=results[0],
        general=results[1] if len(results) > 1 else None,
        knn=tuned[0],
        bandwidth=Distribution.of(evaluations[0].bandwidth),
        mixing_weight=Distribution.of(evaluations[0].mixing_weight, 0.0, 1.0),
        metric=smoother.settings.metric,
        length_penalty=smoother.settings.length_penalty,
        lengths={str(penalty): round(ratio, 4) for penalty, ratio in lengths.items()},
        curve=curve,
        seconds=clock.total(),
        model_smoother_stays=model_smoother_stays,
        calibration=calibration,
    )


def keep_what_is_carried(model: BaseModel, run: Optimisation) -> bool:
    """Undo the fit of a small memory that is not clearly better: with little text, chance decides what is.

    Returns whether it was undone.
    """
    carried = carried_smoother(model, run.settings)
    if carried is None or len(run.sources[0].cache) >= FEW_TOKENS:
        return False
    before, after = ([evaluate(s, source, run.device) for source in run.dev] for s in (carried, run.smoother))
    if surely_better(after, before, SURE):
        return False
    run.smoother.load_state_dict(carried.state_dict())
    tokens = len(before[0].losses)
    log.warning("no clear gain on %d development tokens: the model's own smoother stays in use", tokens)
    return True


def _tuned_knn(cache: FitCache, device: torch.device) -> Trial:
    """kNN-MT at its best on these tokens: Gaussian kernel, nothing learned."""
    seen = neighbours_without_own(cache)
    grid: Grid = default_grid(cache, seen, "gaussian")
    return best_of(sweep(cache, seen, grid, "gaussian", device=device))


def _empty_slots(cache: FitCache, settings: FitSettings) -> float:
    kept = torch.zeros(len(cache), dtype=torch.bool)
    _, found = first_k(drop(cache.ids >= 0, cache.related, kept, settings.dropout), settings.k)
    return float(1.0 - found.double().mean())
