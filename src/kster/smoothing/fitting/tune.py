"""Tune kNN-MT: the number of neighbours, the temperature and the weight that suit a development set best."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from kster.errors import KsterError
from kster.limits import LARGEST_K
from kster.smoothing.defaults import KNN_FILE, SAFE_KNN, SMOOTHER_DIRECTORY
from kster.smoothing.exact_match import exact_match_rule
from kster.smoothing.fitting.lookup import Counted, Lookup, cache_pairs, cache_segments, count_in_memory
from kster.smoothing.fitting.needed_keys import make_needed_keys
from kster.smoothing.fitting.optimisation import neighbours_without_own
from kster.smoothing.fitting.report import TuneReport, write_json
from kster.smoothing.fitting.split import HELD_OUT_LIMIT, split_segments
from kster.smoothing.fitting.sweep import DEFAULT_K, best_of, default_grid, sweep
from kster.smoothing.kernels import KERNELS, Kernel

if TYPE_CHECKING:
    from kster.memory import Memory
    from kster.model import BaseModel

ROOM_FOR_COPIES = 16  # neighbours fetched beyond the largest k when held-out segments must be left out


def tune(
    model: BaseModel,
    memory: Memory,
    dev: Sequence[tuple[str, str]] | None = None,
    *,
    ks: Sequence[int] = DEFAULT_K,
    kernel: Kernel = "gaussian",
    exact_match: float | None = SAFE_KNN.exact_match,
    progress: Counted | None = None,
    save: bool = True,
) -> TuneReport:
    """Try every combination on the development pairs; save the most likely as `<memory>/smoother/knn.json`.

    dev: (source, target) pairs; without them up to 10,000 tokens of the memory's own segments. Each searches
    the memory as if its target text were not in it.
    exact_match: see `SmootherSettings`; None is kNN-MT as published.
    progress: called with the number of tokens looked up, and of how many.
    save: False only reports.
    """
    if kernel not in KERNELS:
        raise KsterError(f"kernel {kernel!r} is unknown; accepted: {' or '.join(KERNELS)}")
    if not ks or min(ks) < 1 or max(ks) > LARGEST_K:
        raise KsterError(
            f"the numbers of neighbours to try are {list(ks)}; accepted: at least one, each from 1 to "
            f"{LARGEST_K:,}"
        )
    began = time.monotonic()
    make_needed_keys(model, memory, HELD_OUT_LIMIT, [source for source, _ in dev or []], seed=1)
    entries = memory.entries()
    if len(entries) == 0:
        raise KsterError(f"{memory.directory}: the memory is empty; add segments before tuning")
    neighbours = max(ks) + ROOM_FOR_COPIES
    if dev:
        cache = cache_pairs(Lookup(model, memory, entries), dev, neighbours, progress)
    else:
        segments = split_segments(entries, 0.0, HELD_OUT_LIMIT, seed=1).train
        cache = cache_segments(Lookup(model, memory, entries), segments, neighbours, progress)
    seen = neighbours_without_own(cache)
    rule = exact_match_rule(exact_match, SAFE_KNN.exact_tolerance)
    trials = sweep(cache, seen, default_grid(cache, seen, kernel, ks), kernel, rule, model.device)
    best = best_of(trials)
    settings = best.settings(kernel, exact_match)
    report = TuneReport(
        kernel=kernel,
        best=best,
        base_nll=cache.base_nll,
        tokens=len(cache),
        dev_origin="given" if dev else "held out",
        dev_in_memory=count_in_memory(entries, dev, "development") if dev else 0,
        trials=trials,
        seconds=round(time.monotonic() - began, 2),
    )
    if save:
        directory = memory.directory / SMOOTHER_DIRECTORY
        report.save(directory)
        write_json(directory / KNN_FILE, settings.to_json())
    return report
