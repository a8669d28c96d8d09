"""Learning a measure of distance, when all else of a smoother has been fitted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch

from kster.smoothing.cache import Examples
from kster.smoothing.dropout import first_k
from kster.smoothing.fit_settings import FitSettings
from kster.smoothing.optimisation import CurvePoint, Optimisation, Source, neighbours_without_own
from kster.smoothing.smoother import Smoother

PASSES = 2  # as many steps as the fit before, times this
BATCH_TOKENS = {"cpu": 1024}  # at most: W reads all candidates' keys, 64 kB a token
START_TOKENS = 2048  # whose neighbours W starts from


def steps_of(settings: FitSettings) -> int:
    """How many there are at most."""
    return PASSES * settings.steps


def learn_metric(
    fitted: Optimisation, steps: int, progress: Callable[[CurvePoint], None] | None = None
) -> tuple[Smoother, list[CurvePoint]]:
    """The fitted smoother with a measure of its own, trained on together; or as it was, if that is no better.

    Also returns how it went, steps counted on from those of the fit.
    """
    settings, device = fitted.settings, fitted.device
    tokens = min(settings.batch_tokens, BATCH_TOKENS.get(device.type, settings.batch_tokens))
    settings = replace(settings, steps=steps_of(settings), batch_tokens=tokens)
    measured = with_metric(fitted.smoother, fitted.sources[0], settings.metric, settings.seed, device)
    run = Optimisation(measured, fitted.sources, fitted.dev, settings, fitted.vocabulary_size, device)

    def counted_on(point: CurvePoint) -> CurvePoint:
        return replace(point, step=steps + point.step)

    curve = run.run(None if progress is None else lambda point: progress(counted_on(point)))
    better = run.dev_nll() < fitted.dev_nll()
    return measured if better else fitted.smoother, [counted_on(point) for point in curve]


def with_metric(smoother: Smoother, source: Source, rank: int, seed: int, device: torch.device) -> Smoother:
    """The same smoother with a W of so many rows, which loses little of the distances in the source."""
    rank = min(rank, smoother.settings.dimension or rank)
    with torch.random.fork_rng(devices=[]):  # what it begins with is replaced at once
        measured = Smoother(replace(smoother.settings, metric=rank)).to(device)
    measured.load_state_dict(smoother.state_dict(), strict=False)
    generator = torch.Generator().manual_seed(seed)
    rows = torch.randperm(len(source.cache), generator=generator)[:START_TOKENS]
    part = source.cache.take(rows, device)
    examples = Examples.choose(part, *first_k(neighbours_without_own(part), smoother.k))
    differences = examples.queries.float().unsqueeze(1) - source.table.gather(examples.ids).float()
    assert measured.metric is not None
    measured.metric.begin(differences[examples.found])
    return measured
