"""kNN-MT is tuned by BLEU beyond what likelihood would choose."""

from __future__ import annotations

from experiments.budget import FULL
from experiments.knn_tuning import shortlist, tuned, tuned_with

from kster.smoothing import SmootherSettings
from kster.smoothing.fitting.sweep import Trial

# Likelihood likes a bandwidth of 10 and a weight of 0.3, and more neighbours.
TRIALS = [
    Trial(k, bandwidth, weight, abs(bandwidth - 10) + abs(weight - 0.3) - k / 100)
    for k in FULL.ks
    for bandwidth in (5.0, 10.0)
    for weight in (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)
]


def sweep(ks: tuple[int, ...]) -> list[Trial]:
    return [trial for trial in TRIALS if trial.k in ks]


def quality(settings: SmootherSettings) -> float:
    """BLEU, as it were: best with 80, 0.6 and 8: three steps from where likelihood would stop."""
    assert settings.bandwidth is not None
    return -abs(settings.bandwidth - 80) - abs(settings.mixing_weight - 0.6) - abs(settings.k - 8)


def choose(candidates: list[SmootherSettings]) -> SmootherSettings:
    return max(candidates, key=quality)


def test_a_shortlist_has_different_weights_the_most_likely_first() -> None:
    trials = [
        Trial(4, 1.0, 0.1, 3.0),
        Trial(8, 1.0, 0.1, 2.0),
        Trial(4, 2.0, 0.5, 1.5),
        Trial(4, 1.0, 0.9, 9.0),
    ]
    assert shortlist(trials, 2) == [trials[2], trials[1]]


def test_bleu_may_choose_a_wider_kernel_a_larger_weight_and_fewer_neighbours() -> None:
    best = tuned(sweep, choose, FULL)
    assert (best.bandwidth, best.mixing_weight, best.k) == (80.0, 0.6, 8)
    assert best.kernel == "gaussian"
    assert best.exact_match is None  # as published


def test_a_better_setting_is_found_though_every_step_towards_it_is_a_loss() -> None:
    def two_hills(settings: SmootherSettings) -> float:
        likely = settings.bandwidth == 10.0 and settings.mixing_weight == 0.2
        wide = settings.bandwidth == 20.0 and settings.mixing_weight == 0.5
        return 2.0 if wide else 1.0 if likely else 0.0

    best = tuned(sweep, lambda candidates: max(candidates, key=two_hills), FULL)
    assert (best.bandwidth, best.mixing_weight) == (20.0, 0.5)


def test_the_weight_is_chosen_again_for_another_number_of_neighbours() -> None:
    def fewer_want_less(settings: SmootherSettings) -> float:
        return -abs(settings.k - 4) - abs(settings.mixing_weight - (0.4 if settings.k == 4 else 0.6))

    best = tuned(sweep, lambda candidates: max(candidates, key=fewer_want_less), FULL)
    assert (best.k, best.mixing_weight) == (4, 0.4)


def test_more_neighbours_than_the_grid_has_are_tried() -> None:
    best = tuned(sweep, lambda candidates: max(candidates, key=lambda each: each.k), FULL)
    assert best.k == 64


def test_with_a_given_k_the_settings_of_the_best_are_tried_too() -> None:
    best = tuned_with(32, sweep, choose, FULL)
    assert (best.bandwidth, best.mixing_weight, best.k) == (80.0, 0.6, 32)
