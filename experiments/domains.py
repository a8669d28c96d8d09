"""The domains of the experiments: what their memories, development and test sets are made of."""

from __future__ import annotations

from dataclasses import dataclass, replace

from experiments.budget import Budget
from experiments.data import DISTURBED, Slice
from experiments.engine import MemorySpec

GENERAL = "general"
MIXED = "mixed"

NEWS_TRAIN = Slice("newstest", "train_2008_2012")
NEWS_DEV = Slice("newstest", "newstest2013")
NEWS_TEST = Slice("newstest", "newstest2014")
# No training text matches the law test set: three quarters of its dev set are the memory, the rest is dev.
LAW_MEMORY, LAW_DEV = Slice("law", "dev", 1_500), Slice("law", "dev", None, 1_500)


@dataclass(frozen=True, slots=True)
class Setting:
    """What a system may use: a memory (or its text, to train on), and dev sets, whose mean BLEU decides.

    searched: a memory that takes the place of the other one when everything has been learned and chosen.
    """

    memory: MemorySpec
    dev: tuple[Slice, ...]
    searched: MemorySpec | None = None


def memory_slice(domain: str, budget: Budget) -> Slice:
    """domain: may be a disturbed one, which was made of what the memory takes."""
    original = domain.removesuffix(DISTURBED)
    whole = LAW_MEMORY if original == "law" else Slice(original, "train")
    if domain == "it":  # a corpus of its size would take most of the time of all experiments
        whole = replace(whole, every=budget.it_every)
    return replace(whole, corpus=domain).at_most(budget.memory)


def dev_slice(domain: str) -> Slice:
    return LAW_DEV if domain == "law" else Slice(domain, "dev")


def test_slice(domain: str, budget: Budget) -> Slice:
    return (NEWS_TEST if domain == GENERAL else Slice(domain, "test")).at_most(budget.test)


def domain_setting(domain: str, budget: Budget, *, disturbed: bool = False) -> Setting:
    name = domain + DISTURBED if disturbed else domain
    return Setting(MemorySpec(name, (memory_slice(name, budget),)), (dev_slice(domain),))


def mixed_memory(budget: Budget, general: int | None, *, keys_on_demand: bool = False) -> MemorySpec:
    """General and domain text; general: how many pairs of Europarl, None for all."""
    slices = (
        NEWS_TRAIN.at_most(budget.memory),
        Slice("europarl", "train", general),
        *(memory_slice(domain, budget) for domain in budget.domains),
    )
    return MemorySpec(MIXED, slices, keys_on_demand)


def mixed_setting(budget: Budget) -> Setting:
    """One memory of general and domain text; settings are chosen by the mean over all dev sets."""
    dev = (NEWS_DEV, *(dev_slice(domain) for domain in budget.domains))
    return Setting(mixed_memory(budget, budget.general_memory), dev)
