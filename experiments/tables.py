"""The paper's experiments as data: which systems meet which test sets with which memory.

Every table of the paper, and most of its figures, is a list of blocks: one memory, the systems that use it
(rows), the test sets they translate (columns). Those of our own are in `further`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from experiments.blocks import (
    DOMAINS,
    GENERAL,
    NOISE,
    SPECIFIC_AVERAGE,
    Block,
    Table,
    base,
    by_domain,
    by_domain_and_mixed,
    domain_setting,
    knn,
    kster,
    kster_as_published,
    kster_with_learned_distance,
    mixed_setting,
    test_slice,
    tests_of,
)
from experiments.further import lengths, recipes, seeds, sizes
from experiments.scale import Scale
from experiments.systems import System
from kster.smoothing import FitSettings, SmootherSettings

SURPRISE = f"{NOISE} after learning"
UNSEEN = ("ted",)  # and what the command line adds

# Experiments -------------------------------------------------------------------------------------------


def damt(scale: Scale, unseen: tuple[str, ...] = ()) -> Table:
    systems = (
        base(),
        System("Finetuning", "finetuned"),
        knn(),
        kster(scale),
        kster_with_learned_distance(scale),
        _best_of_several_fits(scale),
        kster(scale, "KSTER, no general text in fit", general_share=0.0),
        kster_as_published(scale),
    )
    return by_domain(systems, scale)


def _best_of_several_fits(scale: Scale) -> System:
    """Chosen by BLEU on dev, as kNN-MT's settings are, if from far fewer."""
    changes: tuple[dict[str, Any], ...] = ({}, {"seed": 2}, {"k": 8}, {"label_smoothing": 0.1})
    fits = tuple(FitSettings(**(scale.fit | change)) for change in changes)
    return System("KSTER, best of four fits", "kster", fit=fits)


def mdmt(scale: Scale, unseen: tuple[str, ...] = ()) -> Table:
    systems = (
        base(),
        System("Joint-training", "joint"),
        knn(),
        kster(scale),
        kster_as_published(scale),
    )
    return _mixed(systems, scale)


def _mixed(systems: tuple[System, ...], scale: Scale, baseline: str = "kNN-MT") -> Table:
    tests = tests_of(GENERAL, *DOMAINS, scale=scale)
    return Table((Block(mixed_setting(scale), systems, tests),), {SPECIFIC_AVERAGE: DOMAINS}, baseline)


def unseen(scale: Scale, unseen: tuple[str, ...] = ()) -> Table:
    names = (*UNSEEN, *unseen)
    systems = (base(), System("Joint-training", "joint"), knn(), kster(scale))
    block = Block(mixed_setting(scale), systems, tests_of(*names, scale=scale))
    return Table((block,), {"average": names} if len(names) > 1 else {}, baseline="Base")


def tradeoff(scale: Scale, unseen: tuple[str, ...] = ()) -> Table:
    """kNN-MT over a grid; bandwidths are relative to ‖q‖², so that they mean the same for every model."""
    grid = [
        System(f"kNN-MT σ={bandwidth}‖q‖² λ={weight}", "fixed", fixed=_fixed(bandwidth, weight))
        for bandwidth in scale.tradeoff_bandwidths
        for weight in scale.tradeoff_weights
    ]
    return _mixed(
        (base(), knn(), *grid, kster(scale, "KSTER", kernel="gaussian", start="tuned")), scale.for_grid
    )


def _fixed(bandwidth: float, weight: float) -> SmootherSettings:
    return SmootherSettings(
        kernel="gaussian",
        k=16,
        learn_bandwidth=False,
        learn_weight=False,
        bandwidth=bandwidth,
        mixing_weight=weight,
        relative=True,
    )


def robustness(scale: Scale, unseen: tuple[str, ...] = ()) -> Table:
    """Noise that everything is tuned and fitted with; and noise that comes after all has been learned."""
    blocks = []
    for domain in DOMAINS:
        tests = tests_of(domain, scale=scale)
        clean, noisy = domain_setting(domain, scale), domain_setting(domain, scale, noisy=True)
        surprised = replace(clean, searched=noisy.memory)
        blocks += [
            Block(clean, (base(), knn(), kster(scale)), tests),
            Block(noisy, (knn(f"kNN-MT{NOISE}"), kster(scale, f"KSTER{NOISE}")), tests),
            Block(surprised, (knn(f"kNN-MT{SURPRISE}"), kster(scale, f"KSTER{SURPRISE}")), tests),
        ]
    return Table(tuple(blocks), {SPECIFIC_AVERAGE: DOMAINS})


def ablation(scale: Scale, unseen: tuple[str, ...] = ()) -> Table:
    """All begin with the k, σ and λ of the first row, without the exact-match rule: only learning differs."""

    def learned(name: str, bandwidth: bool, weight: bool) -> System:
        system = kster(scale, name, exact_match=None, learn_bandwidth=bandwidth, learn_weight=weight)
        return replace(system, from_knn=True)

    systems = (
        knn("None"),
        learned("Kernel", True, False),
        learned("Weight", False, True),
        learned("Both", True, True),
    )
    return _mixed(systems, scale.for_figures, baseline="None")


def k(scale: Scale, unseen: tuple[str, ...] = ()) -> Table:
    scale = scale.for_figures
    systems = tuple(
        system for k in scale.ks for system in (knn(f"kNN-MT k={k}", k=k), kster(scale, f"KSTER k={k}", k=k))
    )
    mixed = Block(
        mixed_setting(scale),
        systems,
        tuple((f"mixed {name}", test_slice(name, scale)) for name in (GENERAL, *DOMAINS)),
    )
    domains = tuple(
        Block(domain_setting(domain, scale), systems, tests_of(domain, scale=scale)) for domain in DOMAINS
    )
    averages = {
        "average DAMT": DOMAINS,
        "average MDMT": tuple(f"mixed {name}" for name in (GENERAL, *DOMAINS)),
    }
    return Table((*domains, mixed), averages, baseline=f"kNN-MT k={scale.ks[-1]}")


def dropout(scale: Scale, unseen: tuple[str, ...] = ()) -> Table:
    systems = (
        kster(scale, "no dropout", dropout="none"),
        kster(scale, "nearest dropped", dropout="nearest", keep_rate=0.0),
        kster(scale, "provenance-aware", dropout="provenance"),
    )
    return _mixed((base(), *systems), scale.for_figures, baseline="nearest dropped")


def kernels(scale: Scale, unseen: tuple[str, ...] = ()) -> Table:
    # Both from the same start: the smoother that the models carry is Laplacian.
    systems = tuple(
        kster(scale, kernel.capitalize(), kernel=kernel, start="tuned")
        for kernel in ("gaussian", "laplacian")
    )
    return by_domain_and_mixed(systems, systems, scale.for_figures, baseline="Gaussian")


TABLES: dict[str, Callable[..., Table]] = {
    "damt": damt,
    "mdmt": mdmt,
    "tradeoff": tradeoff,
    "robustness": robustness,
    "unseen": unseen,
    "ablation": ablation,
    "k": k,
    "dropout": dropout,
    "kernels": kernels,
    "recipes": recipes,
    "seeds": seeds,
    "sizes": sizes,
    "lengths": lengths,
}
