"""What tables are made of: one memory, the systems that use it (rows), the tests they translate (columns)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from experiments.data import Slice
from experiments.engine import MemorySpec
from experiments.scale import Scale
from experiments.systems import Setting, System
from kster.smoothing import FitSettings

DOMAINS = ("koran", "it", "law")
NOISY = "_disturbed"  # ends the name of a corpus whose English side was disturbed
GENERAL = "general"
SPECIFIC_AVERAGE = "average specific"
GENERAL_AVERAGE = "average general"
NOISE = " + 10% noise"  # ends the name of a row or column

NEWS_TRAIN = Slice("newstest", "train_2008_2012")
NEWS_DEV = Slice("newstest", "newstest2013")
NEWS_TEST = Slice("newstest", "newstest2014")
# No training text matches the law test set: three quarters of its dev set are the memory, the rest is dev.
LAW_MEMORY, LAW_DEV = Slice("law", "dev", 1_500), Slice("law", "dev", None, 1_500)


@dataclass(frozen=True, slots=True)
class Block:
    """Rows and columns that share a memory."""

    setting: Setting
    systems: tuple[System, ...]
    tests: tuple[tuple[str, Slice], ...]  # column → test set


@dataclass(frozen=True, slots=True)
class Table:
    """An experiment's blocks; averages: a further column → the columns it is the mean of.

    baseline: the row that others are compared with by paired bootstrap.
    """

    blocks: tuple[Block, ...]
    averages: dict[str, tuple[str, ...]]
    baseline: str = "kNN-MT"


# Corpora and memories ----------------------------------------------------------------------------------


def memory_slice(domain: str, scale: Scale) -> Slice:
    original = domain.removesuffix(NOISY)
    whole = LAW_MEMORY if original == "law" else Slice(original, "train")
    if domain == "it":  # a corpus of its size would take most of the time of all experiments
        whole = replace(whole, every=scale.it_every)
    return replace(whole, corpus=domain).at_most(scale.memory)


def dev_slice(domain: str) -> Slice:
    return LAW_DEV if domain == "law" else Slice(domain, "dev")


def test_slice(domain: str, scale: Scale) -> Slice:
    return (NEWS_TEST if domain == GENERAL else Slice(domain, "test")).at_most(scale.test)


def domain_setting(domain: str, scale: Scale, *, noisy: bool = False) -> Setting:
    name = domain + NOISY if noisy else domain
    memory = MemorySpec(name, (memory_slice(name, scale),))
    return Setting(memory, (dev_slice(domain),), general=(NEWS_DEV,))


def mixed_setting(scale: Scale) -> Setting:
    """One memory of general and domain text; settings are chosen by the mean over all dev sets."""
    slices = (
        NEWS_TRAIN.at_most(scale.memory),
        Slice("europarl", "train", scale.general_memory),
        *(memory_slice(domain, scale) for domain in DOMAINS),
    )
    return Setting(MemorySpec("mixed", slices), (NEWS_DEV, *(dev_slice(domain) for domain in DOMAINS)))


def tests_of(*names: str, scale: Scale) -> tuple[tuple[str, Slice], ...]:
    return tuple((name, test_slice(name, scale)) for name in names)


# Systems -----------------------------------------------------------------------------------------------


def base() -> System:
    return System("Base", "base")


def knn(name: str = "kNN-MT", **changes: Any) -> System:
    return System(name, "knn", **changes)


def kster(scale: Scale, name: str = "KSTER", **changes: Any) -> System:
    return System(name, "kster", fit=(FitSettings(**(scale.fit | changes)),))


def kster_with_learned_distance(scale: Scale, **changes: Any) -> System:
    return kster(scale, "KSTER, learned distance", metric=128, **changes)


def kster_as_published(scale: Scale) -> System:
    return System("KSTER, paper's recipe", "kster", fit=(FitSettings.paper(**scale.fit),))


# Tables ------------------------------------------------------------------------------------------------


def by_domain(systems: tuple[System, ...], scale: Scale) -> Table:
    """A memory for each domain; its test set, and the general one with the same memory."""
    blocks = tuple(
        Block(
            domain_setting(domain, scale),
            systems,
            ((domain, test_slice(domain, scale)), (f"general with {domain}", test_slice(GENERAL, scale))),
        )
        for domain in DOMAINS
    )
    general = tuple(f"general with {domain}" for domain in DOMAINS)
    return Table(blocks, {SPECIFIC_AVERAGE: DOMAINS, GENERAL_AVERAGE: general})


def by_domain_and_mixed(
    single: tuple[System, ...], mixed: tuple[System, ...], scale: Scale, baseline: str
) -> Table:
    """As `by_domain`, and the same tests with one memory for all."""
    table = by_domain(single, scale)
    tests = tuple((f"mixed {name}", test_slice(name, scale)) for name in (GENERAL, *DOMAINS))
    averages = table.averages | {"average mixed specific": tuple(f"mixed {d}" for d in DOMAINS)}
    return Table((*table.blocks, Block(mixed_setting(scale), mixed, tests)), averages, baseline)
