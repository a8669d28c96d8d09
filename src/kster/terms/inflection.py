"""The forms a term may take in a text: English and German inflect, others are taken as they are written."""

from __future__ import annotations

from functools import lru_cache

from kster.terms import english, german
from kster.terms.term import PartOfSpeech, Term
from kster.text.languages import match_rank

Form = tuple[str, ...]
"""The parts of a form in their order: one, or two with other words between them ("zieht … fest")."""

MOST_INFLECTED = 4  # words; what is longer is a sentence rather than a term, and stays as it is

COMPOUNDING = ("de", "nl", "sv", "da", "nb", "fi")
"""Languages that write compounds as one word."""


@lru_cache(maxsize=65_536)
def forms_of(phrase: str, language: str | None, part_of_speech: PartOfSpeech | None) -> tuple[Form, ...]:
    """The forms of a word or of several, the one given first."""
    own: list[Form] = [(phrase,)]
    if phrase.count(" ") >= MOST_INFLECTED:
        return tuple(own)
    if part_of_speech == "proper noun":
        return (*own, (phrase + "s",)) if language and match_rank(language, "de") else tuple(own)
    for code, rules in (("en", english), ("de", german)):
        if language and match_rank(code, language):
            own += rules.phrase_forms(phrase, part_of_speech)
    return tuple(dict.fromkeys(own))


def forms_for(term: Term, phrase: str, language: str | None) -> tuple[Form, ...]:
    """The forms of a term's source or of one of its targets; what is not translated stays as it is."""
    return forms_of(phrase, language, term.part_of_speech) if term.translate else ((phrase,),)


def counterpart(term: Term, written: str, languages: tuple[str | None, str | None]) -> str:
    """The form of a term's first target that goes best with how its source is written.

    A plural with a plural, a participle with a past: for English into German; else the target as it is.
    """
    target = term.targets[0]
    source_language, target_language = languages
    if not (source_language and match_rank("en", source_language)):
        return target
    if not (target_language and match_rank("de", target_language)):
        return target
    part = term.part_of_speech or german.part_of_speech(target)
    if part == "noun" and english.is_plural(written, term.source):
        return german.plural(target)
    if part == "verb" and english.is_past(written, term.source):
        return german.participle(target)
    if part == "adjective" and term.translate:
        return german.adjective_forms(target)[1]  # before a noun, where most of them stand
    return target


def makes_compounds(language: str | None) -> bool:
    return language is not None and any(match_rank(code, language) for code in COMPOUNDING)
