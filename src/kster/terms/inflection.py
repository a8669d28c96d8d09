"""The forms a term may take in a text: English and German inflect, others are taken as they are written."""

from __future__ import annotations

from functools import lru_cache

from kster.terms import english, german
from kster.terms.term import PartOfSpeech
from kster.text.languages import match_rank

Form = tuple[str, ...]
"""The parts of a form in their order: one, or two with other words between them ("zieht … fest")."""

COMPOUNDING = ("de", "nl", "sv", "da", "nb", "fi")
"""Languages that write compounds as one word."""


@lru_cache(maxsize=65_536)
def forms_of(phrase: str, language: str | None, part_of_speech: PartOfSpeech | None) -> tuple[Form, ...]:
    """The forms of a word or of several, the one given first."""
    own: list[Form] = [(phrase,)]
    if part_of_speech == "proper noun":
        return (*own, (phrase + "s",)) if language and match_rank(language, "de") else tuple(own)
    for code, rules in (("en", english), ("de", german)):
        if language and match_rank(code, language):
            own += rules.phrase_forms(phrase, part_of_speech)
    return tuple(dict.fromkeys(own))


def makes_compounds(language: str | None) -> bool:
    return language is not None and any(match_rank(code, language) for code in COMPOUNDING)
