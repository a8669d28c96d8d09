"""kNN-MT tuned in earnest: k, bandwidth and mixing weight by BLEU on development text.

Likelihood, which one sweep gives for thousands of settings, narrows the choice down; but BLEU likes other
bandwidths and larger weights than likelihood does, so they are tried out from there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from experiments.budget import Budget
from kster.smoothing import SmootherSettings
from kster.smoothing.fitting.sweep import Trial

Sweep = Callable[[tuple[int, ...]], list[Trial]]
"""All settings with one of these numbers of neighbours, with their likelihood on development text."""

Choose = Callable[[list[SmootherSettings]], SmootherSettings]
"""The settings with the highest BLEU on development text; among equals the first."""


def _climb(best: SmootherSettings, choose: Choose, steps: int) -> SmootherSettings:
    """From setting to neighbouring setting, as long as one of them is better."""
    for _ in range(steps):
        before, best = best, choose([best, *_around(best)])
        if best == before:
            break
    return best


def tuned(sweep: Sweep, choose: Choose, budget: Budget) -> SmootherSettings:
    """First the weight, each with its most likely bandwidth and with twice that; then k.

    Before k is chosen and after it climbs, step by step, until no neighbouring setting is better.
    """
    likely = [as_published(trial) for trial in shortlist(sweep(budget.ks), budget.shortlist)]
    best = _climb(choose([*likely, *map(_widened, likely)]), choose, budget.climbs)
    ks = (*budget.ks, 2 * max(budget.ks))
    best = choose([best, *(replace(best, k=k) for k in ks if k != best.k)])
    return _climb(best, choose, budget.climbs)


def _widened(settings: SmootherSettings) -> SmootherSettings:
    assert settings.bandwidth is not None
    return replace(settings, bandwidth=2.0 * settings.bandwidth)


def tuned_with(k: int, sweep: Sweep, choose: Choose, budget: Budget) -> SmootherSettings:
    """For one k: the most likely settings, or those of the best k."""
    listed = [as_published(trial) for trial in shortlist(sweep((k,)), budget.shortlist_of_k)]
    return choose([*listed, replace(tuned(sweep, choose, budget), k=k)])


def as_published(trial: Trial) -> SmootherSettings:
    return trial.settings("gaussian", exact_match=None)


def shortlist(trials: Sequence[Trial], count: int) -> list[Trial]:
    """For each mixing weight the most likely trial, then the most likely of these.

    Likelihood alone would fill the list with near copies of one setting; BLEU tends to like larger weights.
    """
    best: dict[float, Trial] = {}
    for trial in trials:
        known = best.get(trial.mixing_weight)
        if known is None or trial.nll < known.nll:
            best[trial.mixing_weight] = trial
    return sorted(best.values(), key=lambda trial: trial.nll)[:count]


def _around(best: SmootherSettings) -> list[SmootherSettings]:
    """Kernels half and twice as wide, and as they are; the weight a little less and a little more."""
    assert best.bandwidth is not None
    weights = [round(best.mixing_weight + step, 2) for step in (0.0, 0.1, -0.1)]
    return [
        replace(best, bandwidth=best.bandwidth * factor, mixing_weight=weight)
        for factor in (0.5, 1.0, 2.0)
        for weight in weights
        if 0.0 < weight < 1.0 and (factor, weight) != (1.0, best.mixing_weight)
    ]
