"""Amounts keep their currency: models that have read localised text write "$5" for "5 €"."""

from __future__ import annotations

import re
from collections.abc import Callable

_EURO = re.compile(r"€|\bEUR\b|\b[Ee]uros?\b")
_DOLLAR = re.compile(r"\$|\bUSD\b|\b(?:US-)?[Dd]ollars?\b")
_AS_EURO = {
    "$": "€",
    "USD": "EUR",
    "dollar": "euro",
    "dollars": "euros",
    "Dollar": "Euro",
    "US-Dollar": "Euro",
}
_AS_DOLLAR = {"€": "$", "EUR": "USD", "euro": "dollar", "euros": "dollars", "Euro": "Dollar"}


def currencies(text: str) -> set[str]:
    """Which of those that are confused a text names."""
    named = (("euro", _EURO), ("dollar", _DOLLAR))
    return {name for name, pattern in named if pattern.search(text)}


def with_currency_of(source: str, translation: str) -> str:
    """A translation that names the one currency instead of the other, with that of its source."""
    own, said = currencies(source), currencies(translation)
    if own == {"euro"} and said == {"dollar"}:
        return _DOLLAR.sub(_instead(_AS_EURO), translation)
    if own == {"dollar"} and said == {"euro"}:
        return _EURO.sub(_instead(_AS_DOLLAR), translation)
    return translation


def _instead(names: dict[str, str]) -> Callable[[re.Match[str]], str]:
    return lambda found: names.get(found[0], found[0])
