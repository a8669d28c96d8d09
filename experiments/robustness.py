"""Noise in a memory (`robustness`), and how much of any difference is chance (`seeds`).

Noise changes English text word by word: synonyms, insertions, swaps and deletions, as in the paper (§4.2).
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from experiments.budget import Budget
from experiments.data import DISTURBED, Corpora, Slice, write_lines
from experiments.domains import domain_setting, memory_slice
from experiments.experiment import SPECIFIC_AVERAGE, Block, Experiment, Paper, Table, columns, paper_rows
from experiments.lexicon import WordNet, find_wordnet
from experiments.systems import (
    ADAPTIVE_KNN,
    BASE,
    KNN,
    ROBUST_KNN,
    SK_MT,
    kster,
    kster_with_learned_distance,
)
from kster.errors import KsterError

NOISE = "10% noise"
SEEDS = (1, 2, 3)
RATE = 0.1  # of the words
NOISE_SEED = 1
CHANGES = ("replace", "insert", "swap", "delete")

FUNCTION_WORDS = frozenset(
    """
    a about above after again against all am an and any are as at be because been before being below between
    both but by can could did do does doing don down during each few for from further had has have having he
    her here hers herself him himself his how i if in into is it its itself just may me might more most must
    my myself no nor not now of off on once only or other our ours ourselves out over own same shall she
    should so some such t than that the their theirs them themselves then there these they this those through
    to too under until up upon us very was we were what when where which while who whom whose why will with
    would you your yours yourself yourselves
    """.split()  # noqa: SIM905
)

Synonyms = Callable[[str], list[str]]


class Noisy(Experiment):
    """What experiments with disturbed memories have in common: they make the text first."""

    def prepare(self, corpora: Corpora, budget: Budget) -> list[Path]:
        wanted = [memory_slice(domain + DISTURBED, budget) for domain in budget.domains]
        missing = [slice for slice in wanted if not corpora.has(slice)]
        wordnet = WordNet(find_wordnet()) if missing else None
        for slice in wanted:
            pairs = corpora.learnable_pairs(memory_slice(slice.undisturbed.corpus, budget))
            if wordnet is None or slice not in missing:
                _require_lines(corpora, slice, len(pairs))
                continue
            for side, language in enumerate(corpora.direction):
                lines = (pair[side] for pair in pairs)
                text = disturb_lines(lines, wordnet.synonyms) if language == "en" else lines
                write_lines(corpora.made / slice.corpus / f"{slice.split}.{language}.xz", text)
        return []


def _require_lines(corpora: Corpora, slice: Slice, count: int) -> None:
    found = len(corpora.pairs(slice))
    if found != count:
        raise KsterError(
            f"{corpora.files(slice)[0].parent}: {found:,} pairs, but the memory it disturbs has {count:,}; "
            "it was made for another budget. Remove it, and it is made again"
        )


class Robustness(Noisy):
    """Noise that everything is tuned and fitted with; and noise that comes after all has been learned."""

    name = "robustness"
    summary = "Noise in a tenth of a memory's English words, before it is fitted or after."
    paper: ClassVar[Paper] = {  # English is disturbed: the source side of en-de, the target side of de-en
        "en-de": paper_rows(
            "average specific",
            {
                "kNN-MT": (33.80,),
                "kNN-MT + 10% noise": (31.26,),
                "KSTER": (34.78,),
                "KSTER + 10% noise": (32.89,),
            },
        ),
        "de-en": paper_rows(
            "average specific",
            {
                "kNN-MT": (36.87,),
                "kNN-MT + 10% noise": (33.43,),
                "KSTER": (38.17,),
                "KSTER + 10% noise": (35.67,),
            },
        ),
    }

    def table(self, budget: Budget) -> Table:
        blocks = []
        ours = (KNN, ADAPTIVE_KNN, ROBUST_KNN, SK_MT, kster(budget))
        for domain in budget.domains:
            tests = columns(domain, budget=budget, memory=domain)
            clean = domain_setting(domain, budget)
            noisy = domain_setting(domain, budget, disturbed=True)
            surprised = replace(clean, searched=noisy.memory)
            late = tuple(system.at(noise=f"{NOISE} after learning") for system in ours)
            blocks += [
                Block(clean, (BASE, *ours), tests),
                Block(noisy, tuple(system.at(noise=NOISE) for system in ours), tests),
                Block(surprised, late, tests),
            ]
        return Table(tuple(blocks), {SPECIFIC_AVERAGE: budget.domains}, baseline="kNN-MT")


class Seeds(Noisy):
    """Three fits of each memory, as it is and disturbed."""

    name = "seeds"
    summary = "How much is chance: each memory, as it is and with noise, fitted with three seeds."

    def table(self, budget: Budget) -> Table:
        fits = tuple(
            fitted(budget, seed=seed).at(seed=seed)
            for fitted in (kster, kster_with_learned_distance)
            for seed in SEEDS
        )
        blocks = []
        for disturbed in (False, True):
            systems = tuple(s.at(noise=NOISE) if disturbed else s for s in (KNN, *fits))
            for domain in budget.domains:
                setting = domain_setting(domain, budget, disturbed=disturbed)
                blocks.append(Block(setting, systems, columns(domain, budget=budget, memory=domain)))
        return Table(tuple(blocks), {SPECIFIC_AVERAGE: budget.domains}, baseline="kNN-MT")


def disturb_lines(lines: Iterable[str], synonyms: Synonyms, rate: float = RATE) -> Iterator[str]:
    """Each line by its own dice, so that a line is disturbed alike however many there are."""
    for number, line in enumerate(lines):
        yield disturb(line, synonyms, random.Random(f"{NOISE_SEED}:{number}"), rate)


def disturb(line: str, synonyms: Synonyms, dice: random.Random, rate: float = RATE) -> str:
    """Each word is, with this rate, replaced, joined by another, swapped or deleted, with equal chances."""
    words = line.split()
    changes = [dice.choice(CHANGES) if dice.random() < rate else None for _ in words]
    result = [
        _synonym(word, synonyms, dice) if change == "replace" else word
        for word, change in zip(words, changes, strict=True)
        if change != "delete"
    ]
    if not result:
        return line
    for change in changes:
        if change == "swap":
            one, other = dice.randrange(len(result)), dice.randrange(len(result))
            result[one], result[other] = result[other], result[one]
        if change == "insert":
            result.insert(dice.randint(0, len(result)), _synonym(dice.choice(words), synonyms, dice))
    return " ".join(result)


def _synonym(word: str, synonyms: Synonyms, dice: random.Random) -> str:
    """A synonym with the word's punctuation and capital; the word itself when there is none.

    Function words have none, as in EDA: WordNet would take "he" for helium.
    """
    match = re.fullmatch(r"(\W*)(.*?)(\W*)", word)
    before, core, after = match.groups() if match else ("", word, "")
    choices = synonyms(core) if core and core.lower() not in FUNCTION_WORDS else []
    if not choices:
        return word
    chosen = dice.choice(choices)
    return before + (chosen.capitalize() if core[0].isupper() else chosen) + after
