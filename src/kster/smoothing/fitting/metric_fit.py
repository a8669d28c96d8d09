"""Learning a measure of distance, once everything else of a smoother has been fitted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch

from kster.smoothing.fitting.cache import Examples
from kster.smoothing.fitting.dropout import first_k
from kster.smoothing.fitting.optimisation import (
    CurvePoint,
    Optimisation,
    Source,
    evaluate,
    neighbours_without_own,
    surely_better,
)
from kster.smoothing.fitting.settings import FitSettings
from kster.smoothing.metric import tokens_at_once
from kster.smoothing.smoother import Smoother

PASSES = 2  # as many steps as the fit before, times this
BATCH_TOKENS = {"cpu": 1024}  # at most
START_TOKENS = 2048  # whose neighbours W starts from
SURE = 3.0  # standard errors: the tokens that judge it have also stopped it, and searching gets slower


def steps_of(settings: FitSettings) -> int:
    """How many steps learning a metric takes at most."""
    return PASSES * settings.steps


def learn_metric(
    fitted: Optimisation, before: int, progress: Callable[[CurvePoint], None] | None = None
) -> tuple[Smoother, list[CurvePoint]]:
    """The fitted smoother, trained on with a learned distance; or as it was, if that is better.

    before: how many steps it has had. Also returns how its curve went on; nothing if the metric is not used.
    """
    settings, device = fitted.settings, fitted.device
    dimension = fitted.sources[0].cache.queries.shape[1]
    most = tokens_at_once(settings.k, dimension, device)
    tokens = min(settings.batch_tokens, BATCH_TOKENS.get(device.type, most), most)
    settings = replace(settings, steps=steps_of(settings), batch_tokens=tokens)
    rank = min(settings.metric, dimension)
    measured = with_metric(fitted.smoother, fitted.sources[0], rank, settings.seed, device)
    run = Optimisation(measured, fitted.sources, fitted.dev, settings, fitted.vocabulary_size, device)

    def counted_on(point: CurvePoint) -> CurvePoint:
        return replace(point, step=before + point.step)

    curve = run.run(None if progress is None else lambda point: progress(counted_on(point)))
    plain = [evaluate(fitted.smoother, source, device) for source in fitted.dev]
    learned = [evaluate(measured, source, device) for source in fitted.dev]
    if not surely_better(learned, plain, SURE):
        return fitted.smoother, []
    return measured, [counted_on(point) for point in curve[1:]]


def with_metric(smoother: Smoother, source: Source, rank: int, seed: int, device: torch.device) -> Smoother:
    """The same smoother with a W of so many rows, which changes little of the distances in the source."""
    dimension = source.cache.queries.shape[1]
    with torch.random.fork_rng(devices=[]):  # what it begins with is replaced at once
        measured = Smoother(replace(smoother.settings, metric=rank, dimension=dimension)).to(device)
    measured.load_state_dict(smoother.state_dict(), strict=False)
    generator = torch.Generator().manual_seed(seed)
    count = min(START_TOKENS, tokens_at_once(smoother.k, dimension, device))
    rows = torch.randperm(len(source.cache), generator=generator)[:count]
    part = source.cache.take(rows, device)
    examples = Examples.choose(part, *first_k(neighbours_without_own(part), smoother.k))
    differences = examples.queries.float().unsqueeze(1) - source.table.gather(examples.ids).float()
    assert measured.metric is not None
    measured.metric.begin(differences[examples.found])
    return measured
