"""The inflected forms of English words, made by rule and, where no rule holds, from a table."""

from __future__ import annotations

import re

from kster.terms.tables import word_table
from kster.terms.term import PartOfSpeech

VOWELS = "aeiou"
# Particles of phrasal verbs, which may stand apart: "switch the machine off".
PARTICLES = frozenset(["away", "back", "down", "in", "off", "on", "out", "over", "through", "together", "up"])

_ARTICLE = re.compile(
    r"\b(?:an?|the|this|that|these|those|my|your|his|her|its|our|their|each|every) (?:[a-z-]+ )?$",
    re.IGNORECASE,
)

IRREGULAR_PLURALS = word_table("english_irregular_plurals.tsv")
IRREGULAR_VERBS = word_table("english_irregular_verbs.tsv")


def noun_forms(word: str) -> list[str]:
    irregular = IRREGULAR_PLURALS.get(word.lower(), ())
    regular = [] if word.endswith("s") and not word.endswith("ss") else [_with_s(word)]
    singular = [word[:-1]] if word.endswith("s") and not word.endswith(("ss", "us", "is")) else []
    return [word, *irregular, *regular, *singular]


def verb_forms(word: str) -> list[str]:
    irregular = IRREGULAR_VERBS.get(word.lower(), ())
    return [word, *irregular, _with_s(word), *_with_ending(word, "ed"), *_with_ending(word, "ing")]


def is_plural(written: str, noun: str) -> bool:
    """Whether a noun is written in another number than it is named in: "boxes" for "box"."""
    last, own = written.lower().split(" ")[-1], noun.lower().split(" ")[-1]
    return last != own and last in (_with_s(own), *IRREGULAR_PLURALS.get(own, ()))


def is_past(written: str, verb: str) -> bool:
    """Whether a verb is written in the past or as a participle: "tightened"."""
    first, own = written.lower().split(" ")[0], verb.lower().split(" ")[0]
    return first in (*_with_ending(own, "ed"), *IRREGULAR_VERBS.get(own, ()))


def has_article(before: str) -> bool:
    """Whether an article or a word in its place stands before a noun, perhaps with an adjective behind it."""
    return _ARTICLE.search(before) is not None


def phrase_forms(phrase: str, part_of_speech: PartOfSpeech | None) -> list[tuple[str, ...]]:
    """The forms of a word or of several; one in two parts may have other words between them."""
    words = phrase.split(" ")
    forms: list[tuple[str, ...]] = []
    if part_of_speech in ("verb", None):
        rest = words[1:]
        for form in verb_forms(words[0]):
            forms.append((" ".join([form, *rest]),))
            if len(rest) == 1 and rest[0].lower() in PARTICLES:
                forms.append((form, rest[0]))
    if part_of_speech != "verb":
        last = noun_forms(words[-1]) if part_of_speech not in ("adjective", "adverb") else [words[-1]]
        forms += [(" ".join([*words[:-1], form]),) for form in last]
    if part_of_speech == "adjective" and len(words) == 1:
        forms += [(form,) for ending in ("er", "est") for form in _with_ending(phrase, ending)]
    return list(dict.fromkeys(forms))


def _with_s(word: str) -> str:
    if word.endswith(("s", "x", "z", "ch", "sh")):
        return word + "es"
    if word.endswith("y") and word[-2:-1] not in VOWELS:
        return word[:-1] + "ies"
    return word + "s"


def _with_ending(word: str, ending: str) -> list[str]:
    """With -ed, -ing, -er or -est; a last consonant may be doubled or not: that goes by the stress."""
    if word.endswith("ee"):
        return [word + ending.lstrip("e") if ending != "ing" else word + ending]
    if word.endswith("e"):
        return [word[:-1] + ending]
    if word.endswith("y") and word[-2:-1] not in VOWELS and ending != "ing":
        return [word[:-1] + "i" + ending]
    forms = [word + ending]
    if len(word) > 2 and word[-1] not in VOWELS + "wxy" and word[-2] in VOWELS and word[-3] not in VOWELS:
        forms.append(word + word[-1] + ending)
    return forms
