"""Noise in English text, word by word: synonyms, insertions, swaps and deletions, as in the paper (§4.2)."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Iterator

RATE = 0.1  # of the words
SEED = 1

Synonyms = Callable[[str], list[str]]


def disturb_lines(lines: Iterable[str], synonyms: Synonyms, rate: float = RATE) -> Iterator[str]:
    """Each line by its own dice, so that a line is disturbed alike however many there are."""
    for number, line in enumerate(lines):
        yield disturb(line, synonyms, random.Random(f"{SEED}:{number}"), rate)


def disturb(line: str, synonyms: Synonyms, dice: random.Random, rate: float = RATE) -> str:
    """Each word is, with this rate, replaced, joined by another, swapped or deleted, with equal chances."""
    words = line.split()
    result: list[str] = []
    swaps: list[int] = []  # places in the result
    for word in words:
        change = dice.choice(("replace", "insert", "swap", "delete")) if dice.random() < rate else None
        if change == "delete" and len(words) > 1:
            continue
        result.append(_synonym(word, synonyms, dice) if change == "replace" else word)
        if change == "insert":
            result.insert(dice.randint(0, len(result)), _synonym(dice.choice(words), synonyms, dice))
        if change == "swap":
            swaps.append(len(result) - 1)
    for place in swaps:
        other = dice.randrange(len(result))
        result[place], result[other] = result[other], result[place]
    return " ".join(result) if result else line


def _synonym(word: str, synonyms: Synonyms, dice: random.Random) -> str:
    """A synonym with the word's punctuation and capital; the word itself when there is none."""
    match = re.fullmatch(r"(\W*)(.*?)(\W*)", word)
    before, core, after = match.groups() if match else ("", word, "")
    choices = synonyms(core) if core else []
    if not choices:
        return word
    chosen = dice.choice(choices)
    return before + (chosen.capitalize() if core[0].isupper() else chosen) + after
