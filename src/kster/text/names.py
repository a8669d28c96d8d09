"""Names and numbers of a source that stand in its translation as they are."""

from __future__ import annotations

import re
from collections import Counter

_WORD = re.compile(r"\w+(?:[-'’]\w+)*")


def lost_names(source: str, translation: str) -> set[str]:
    """What may be a name or a number, and is not in the translation; much of it is translated."""
    _, *words = _WORD.findall(source) or [""]
    names = {word for word in words if len(word) > 1 and (word[0].isupper() or word[0].isdecimal())}
    return names - set(_WORD.findall(translation)) if names else names


def says_more(translation: str, other: str, names: set[str]) -> bool:
    """Whether another translation has all words of this one, and one of these names."""
    own, words = Counter(_WORD.findall(translation)), Counter(_WORD.findall(other))
    return own < words and not names.isdisjoint(words)
