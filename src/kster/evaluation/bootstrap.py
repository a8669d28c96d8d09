"""Paired bootstrap resampling (Koehn, 2004), drawn and counted as sacreBLEU does.

A test set is drawn anew many times, with replacement, and every system is scored on the same draws. The
same seed and number of resamples give the draws of `sacrebleu --paired-bs`; here they are made in blocks,
so that memory stays small however many sentences there are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

BLOCK = 2_000_000  # sentences drawn at a time, over all resamples of a block


@dataclass(frozen=True, slots=True)
class Sample:
    """A system's score on the whole test set and on every resample of it."""

    score: float
    resampled: Sequence[float]

    def interval(self) -> tuple[float, float]:
        """Mean, and half the width of the interval that holds 95 % of the resamples."""
        ordered = np.sort(np.asarray(self.resampled))
        cut = len(ordered) // 40  # 2.5 % on either side
        return float(ordered.mean()), float(ordered[-1 - cut] - ordered[cut]) / 2

    def p_value(self, baseline: Sample) -> float:
        """How often chance makes a difference as large as the one between these two, as sacreBLEU counts.

        It counts one tail: about a tenth of all pairs of equally good systems have p < 0.05. It also counts
        larger differences only, and so calls two equal outputs significantly different; without ties the two
        agree.
        """
        difference = abs(baseline.score - self.score)
        drawn = np.abs(np.asarray(self.resampled) - np.asarray(baseline.resampled))
        centred = drawn - drawn.mean()
        return (int((centred >= difference).sum()) + 1) / (len(drawn) + 1)


def resampled_totals(
    statistics: Sequence[Sequence[float]], resamples: int, seed: int
) -> Iterator[NDArray[np.float64]]:
    """The statistics of each resampled test set, summed over its sentences; one (m,) array each.

    statistics: (n, m), a row for each sentence.
    """
    rows = np.asarray(statistics, dtype=np.float64)  # (n, m)
    sentences = len(rows)
    generator = np.random.default_rng(seed)
    block = max(1, BLOCK // sentences)
    for first in range(0, resamples, block):
        draws = generator.choice(sentences, size=(min(block, resamples - first), sentences), replace=True)
        for draw in draws:  # (n,)
            yield np.bincount(draw, minlength=sentences) @ rows  # how often each sentence came, (n,) @ (n, m)
