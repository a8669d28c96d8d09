"""Experiments of our own, as data: what the paper leaves open about choices, chance, size and length."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from experiments.blocks import (
    DOMAINS,
    GENERAL,
    GENERAL_AVERAGE,
    NEWS_DEV,
    NOISE,
    SPECIFIC_AVERAGE,
    Block,
    Table,
    base,
    by_domain_and_mixed,
    dev_slice,
    domain_setting,
    knn,
    kster,
    kster_with_learned_distance,
    test_slice,
)
from experiments.scale import Scale
from experiments.systems import System
from kster.smoothing import FitSettings

SEEDS = (1, 2, 3)


def recipes(scale: Scale, unseen: tuple[str, ...] = ()) -> Table:
    """What the defaults of `kster fit` were chosen by, so on development text.

    Each row differs from the default in one thing; the paper's recipe follows with its own variants.
    """

    def paper(name: str, **changes: Any) -> System:
        return System(name, "kster", fit=(FitSettings.paper(**(scale.fit | changes)),))

    systems = (
        base(),
        knn(),
        kster(scale, "default"),
        kster(scale, "default, seed 2", seed=2),
        kster(scale, "default, seed 3", seed=3),
        kster(scale, "nearest dropped", dropout="nearest", keep_rate=0.0),
        kster(scale, "no dropout", dropout="none"),
        kster(scale, "keep rate 0", keep_rate=0.0),
        kster(scale, "label smoothing 0.1", label_smoothing=0.1),
        kster(scale, "no general text", general_share=0.0),
        kster(scale, "start from tuned kNN-MT", start="tuned"),
        kster(scale, "start from tuned kNN-MT, Gaussian kernel", start="tuned", kernel="gaussian"),
        kster(scale, "paper's features", features="paper"),
        kster(scale, "k = 32", k=32),
        paper("paper"),
        paper("paper, seed 2", seed=2),
        paper("paper, label smoothing 0.1", label_smoothing=0.1),
        paper("paper, provenance-aware dropout", dropout="provenance"),
        paper("paper, no dropout", dropout="none"),
    )
    # These learn from development text: not from what they are judged by.
    learners = (
        kster(scale, "default, stopped by other text"),
        kster(scale, "20 % development text in the fit", dev_share=0.2),
        kster(scale, "40 % development text in the fit", dev_share=0.4),
    )
    fitted = ("koran", "law")
    blocks = []
    for domain in fitted:
        setting, dev = domain_setting(domain, scale), dev_slice(domain)
        tests = (
            (f"{domain} dev", dev.at_most(scale.dev_decoded)),
            (f"general dev with {domain}", NEWS_DEV.at_most(scale.dev_decoded)),
        )
        rest = replace(dev, first=dev.first + scale.dev_decoded)
        blocks += [
            Block(setting, systems, tests),
            Block(replace(setting, dev=(rest,)), learners, tests),
        ]
    averages = {
        SPECIFIC_AVERAGE: tuple(f"{domain} dev" for domain in fitted),
        GENERAL_AVERAGE: tuple(f"general dev with {domain}" for domain in fitted),
    }
    return Table(tuple(blocks), averages, baseline="default")


def seeds(scale: Scale, unseen: tuple[str, ...] = ()) -> Table:
    """How much of `damt` and `robustness` is chance: three fits of each memory, as it is and disturbed."""
    fits = tuple(
        replace(fitted(scale, seed=seed), name=f"{name}, seed {seed}")
        for name, fitted in (("KSTER", kster), ("KSTER, learned distance", kster_with_learned_distance))
        for seed in SEEDS
    )
    blocks = tuple(
        Block(
            domain_setting(domain, scale, noisy=bool(noise)),
            (knn(), *fits),
            ((domain + noise, test_slice(domain, scale)),),
        )
        for noise in ("", NOISE)
        for domain in DOMAINS
    )
    averages = {SPECIFIC_AVERAGE + noise: tuple(d + noise for d in DOMAINS) for noise in ("", NOISE)}
    return Table(blocks, averages)


def sizes(scale: Scale, unseen: tuple[str, ...] = ()) -> Table:
    """A memory of IT that grows, against training on the same text."""
    systems = (base(), System("Finetuning", "finetuned"), knn(), kster(scale))
    blocks = tuple(
        Block(
            domain_setting("it", replace(scale, it_every=every)),
            systems,
            tuple((part_of_it(every, test), test_slice(test, scale)) for test in ("it", GENERAL)),
        )
        for every in scale.it_parts
    )
    return Table(blocks, {})


def part_of_it(every: int, test: str) -> str:
    """The name of a column."""
    return f"{test}, all" if every == 1 else f"{test}, 1/{every}"


def lengths(scale: Scale, unseen: tuple[str, ...] = ()) -> Table:
    """The length penalty of beam search: memories make translations shorter, some more than others.

    Fits are calibrated with the middle penalties only, since that takes as long as all else; the largest
    suits hardly any memory.
    """

    def with_each(penalties: tuple[float, ...], *systems: System) -> tuple[System, ...]:
        choices: dict[str, tuple[float, ...]] = {f"α={one}": (one,) for one in penalties}
        return tuple(
            replace(system, name=f"{system.name} {name}", length_penalties=some)
            for name, some in (choices | {"α by dev": penalties}).items()
            for system in systems
        )

    penalties = scale.length_penalties
    calibrated = with_each(penalties[1:3], replace(kster(scale, "KSTER calibrated"), calibrate=True))
    learned = with_each(penalties[:3], kster_with_learned_distance(scale))
    finetuned, joint = System("Finetuning", "finetuned"), System("Joint-training", "joint")
    rows = with_each(penalties, base(), finetuned, knn(), kster(scale)) + calibrated + learned
    mixed_rows = with_each(penalties, joint, knn(), kster(scale)) + calibrated + learned
    return by_domain_and_mixed(rows, mixed_rows, scale, baseline="kNN-MT α by dev")
