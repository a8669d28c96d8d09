"""Whether the words before a German noun agree with its gender."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from itertools import product

Genders = frozenset[str]  # of m, f, n, and p for the plural of all of them

_ARTICLES = {"der": "mfp", "die": "fp", "das": "n", "den": "mp", "dem": "mn", "des": "mn", "zur": "f"}
_ARTICLES |= dict.fromkeys(("im", "am", "vom", "zum", "beim"), "mn") | dict.fromkeys(("ins", "ans"), "n")
_LIKE_EIN = ("ein", "kein", "mein", "dein", "sein", "ihr", "unser", "euer")
_LIKE_DIESER = ("dies", "jed", "jen", "welch")
_ENDINGS = {"e": "fp", "en": "mp", "em": "mn", "er": "fp", "es": "mn"}

MOST_BETWEEN = 2  # adjectives between the article and the noun


@cache
def _determiners() -> dict[str, Genders]:
    """Every word that shows a gender, and which genders it may show."""
    told = {word: frozenset(genders) for word, genders in _ARTICLES.items()}
    for stem, (ending, genders) in product(_LIKE_EIN, _ENDINGS.items()):
        told["eur" + ending if stem == "euer" else stem + ending] = frozenset(genders)
    for stem, (ending, genders) in product(_LIKE_DIESER, _ENDINGS.items()):
        told[stem + ending] = frozenset({"er": "mfp", "es": "n"}.get(ending, genders))
    return told | dict.fromkeys(_LIKE_EIN, frozenset("mn"))


def genders_of(nouns: Iterable[str], text: str) -> Genders | None:
    """The genders that a noun may have by what stands before it; None where nothing shows them.

    nouns: its forms.
    """
    forms = "|".join(map(re.escape, sorted(nouns, key=len, reverse=True)))
    telling = "|".join(_determiners())
    between = rf"(?:(?!(?:{telling})\b)[a-zäöüß-]+(?:e|en|em|er|es) ){{0,{MOST_BETWEEN}}}"
    found = re.finditer(rf"\b((?i:{telling})) {between}(?:{forms})\b", text)
    # At the beginning of a sentence "Der" is the nominative.
    told = [frozenset("m") if one[1] == "Der" else _determiners()[one[1].lower()] for one in found]
    return frozenset.intersection(*told) if told else None


def agrees(genders: Genders | None, nouns: Iterable[str], text: str) -> bool:
    """Whether nothing before a noun of these genders says that it has another."""
    shown = genders_of(nouns, text)
    return genders is None or shown is None or bool(shown & genders)
