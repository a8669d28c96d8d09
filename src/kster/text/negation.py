"""Whether a text has a negation, in the languages whose words for it are known."""

from __future__ import annotations

import re

_WORDS = {
    "en": re.compile(
        r"\b(?:not|no|never|nobody|none|nothing|nowhere|neither|nor|cannot|without|\w+n['’]t|invalid|impossible"
        r"|un(?:able|authori[sz]ed|available|changed|committed|defined|expected|known|limited|necessary"
        r"|published|reachable|readable|recogni[sz]ed|safe|saved|specified|supported|trusted|usable|used))\b",
        re.IGNORECASE,
    ),
    "de": re.compile(
        r"\b(?:nicht|kein(?:e[mnrs]?)?|nie|niemals|niemand(?:e[mn])?|nichts|nirgend\w*|weder|noch nie|ohne"
        r"|un(?!d\b|s\b|ser|ter|ten|gefähr|iversi|ion)\w+|\w+los(?:e[mnrs]?)?)\b",
        re.IGNORECASE,
    ),
}
# What German may say with "nicht": "Failed to open", "a missing file", "less than", "only", "until".
_KIN = re.compile(
    r"\b(?:un|in|im|il|ir|dis|de|non|mis)\w{3,}|\w+less\b|\b(?:fail|lack|miss|refus|reject|avoid|prevent|ignor|skip"
    r"|exclud|omit|den[iy]|stop|keep|leav|los[et]|abort|wrong|bad|error|empty|absent|hard|rare|seldom|scarce|zero"
    r"|few|little|less|than|too|only|but|except|unless|until|before|instead|rather|other|else|away|off|out|free)",
    re.IGNORECASE,
)
_NOT = re.compile(r"(?:nicht|kein(?:e[mnrs]?)?)", re.IGNORECASE)


def is_negated(text: str, language: str) -> bool | None:
    """None for a language whose words are not known."""
    words = _WORDS.get(language.split("-")[0].lower())
    return None if words is None else words.search(text) is not None


def loses_negation(source: str, target: str, source_language: str, target_language: str) -> bool:
    """Whether a source has a negation and its translation has none; False where that is not known."""
    return is_negated(source, source_language) is True and is_negated(target, target_language) is False


def adds_negation(source: str, target: str, other: str, source_language: str, target_language: str) -> bool:
    """Whether a German translation is another one with a "nicht" that nothing of an English source says."""
    if not (source_language.startswith("en") and target_language.startswith("de")):
        return False
    words, others = target.split(), other.split()
    added = next((i for i, (a, b) in enumerate(zip(words, [*others, ""], strict=False)) if a != b), None)
    return (
        added is not None
        and _NOT.fullmatch(words[added]) is not None
        and words[:added] + words[added + 1 :] == others
        and not is_negated(source, "en")
        and _KIN.search(source) is None
    )
