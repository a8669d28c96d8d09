"""Noise in English text, word by word: synonyms, insertions, swaps and deletions, as in the paper (§4.2)."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Iterator

RATE = 0.1  # of the words
SEED = 1
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


def disturb_lines(lines: Iterable[str], synonyms: Synonyms, rate: float = RATE) -> Iterator[str]:
    """Each line by its own dice, so that a line is disturbed alike however many there are."""
    for number, line in enumerate(lines):
        yield disturb(line, synonyms, random.Random(f"{SEED}:{number}"), rate)


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
