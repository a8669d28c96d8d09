"""Whether a text has a negation, in the languages whose words for it are known."""

from __future__ import annotations

import re

_WORDS = {
    "en": re.compile(
        r"\b(?:not|no|never|nobody|none|nothing|nowhere|neither|nor|cannot|without|\w+n['’]t)\b",
        re.IGNORECASE,
    ),
    "de": re.compile(
        r"\b(?:nicht|kein(?:e[mnrs]?)?|nie|niemals|niemand(?:e[mn])?|nichts|nirgend\w*|weder|noch nie|ohne"
        r"|un(?!d\b|s\b|ser|ter|ten|gefähr|iversi|ion)\w+|\w+los(?:e[mnrs]?)?)\b",
        re.IGNORECASE,
    ),
}


def is_negated(text: str, language: str) -> bool | None:
    """None for a language whose words are not known."""
    words = _WORDS.get(language.split("-")[0].lower())
    return None if words is None else words.search(text) is not None


def loses_negation(source: str, target: str, source_language: str, target_language: str) -> bool:
    """Whether a source has a negation and its translation has none; False where that is not known."""
    return is_negated(source, source_language) is True and is_negated(target, target_language) is False
