"""The gender of German nouns, and what the words before a noun say about its case and gender.

A compound has the gender of its last part, and many endings have one, so a table of endings and of common
last parts (`german_genders.tsv`) knows most nouns. Of those that it knows it is right about 98 in 100.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from itertools import product

from kster.terms.german import noun_forms, plural
from kster.terms.tables import word_table

Reading = str
"""A case (n, g, d, a) and a gender (m, f, n) or p for the plural: "dm" is a masculine dative."""
Readings = frozenset[Reading]

GENDERS = ("m", "f", "n")
_ENDINGS = {ending: frozenset(genders) for ending, (genders,) in word_table("german_genders.tsv").items()}
_CASES = "ngda"


def _readings(*written: str) -> Readings:
    return frozenset(reading for words in written for reading in words.split())


_LIKE_EIN = ("ein", "kein", "mein", "dein", "sein", "ihr", "unser", "euer")
_LIKE_DIESER = ("dies", "jed", "jen", "welch")
_STRONG = {"e": "nf af np ap", "en": "am dp", "em": "dm dn", "er": "df gf gp"}
_DETERMINERS = {
    "der": _readings("nm df gf gp"),
    "die": _readings("nf af np ap"),
    "das": _readings("nn an"),
    "den": _readings("am dp"),
    "dem": _readings("dm dn"),
    "des": _readings("gm gn"),
    "zur": _readings("df"),
    **dict.fromkeys(("im", "am", "vom", "zum", "beim"), _readings("dm dn")),
    **dict.fromkeys(("ins", "ans"), _readings("an")),
    **dict.fromkeys(_LIKE_EIN, _readings("nm nn an")),
    **{
        ("eur" if stem == "euer" else stem) + ending: _readings(own)
        for stem, (ending, own) in product(_LIKE_EIN, {**_STRONG, "es": "gm gn"}.items())
    },
    **{
        stem + ending: _readings(own, "nm" if ending == "er" else "")
        for stem, (ending, own) in product(_LIKE_DIESER, {**_STRONG, "es": "nn an gm gn"}.items())
    },
}
for _without_plural in ("eine", "einen", "einer", "jede", "jeden", "jeder"):
    _DETERMINERS[_without_plural] = frozenset(r for r in _DETERMINERS[_without_plural] if r[1] != "p")
_PREPOSITIONS = {
    **dict.fromkeys(("aus", "bei", "mit", "nach", "von", "zu", "seit"), "d"),
    **dict.fromkeys(("durch", "für", "gegen", "ohne", "um"), "a"),
    **dict.fromkeys(("an", "auf", "hinter", "in", "neben", "über", "unter", "vor", "zwischen"), "ad"),
    **dict.fromkeys(("während", "wegen", "trotz", "innerhalb", "außerhalb"), "gd"),
}
_PRONOUNS = {"Sie", "Ihnen"}
_ADJECTIVE_ENDINGS = ("e", "en", "em", "er", "es")
MOST_ADJECTIVES = 2
LEAST_STEM = 4  # letters of a singular, by which its plural in -e is known


@lru_cache(maxsize=65_536)
def gender_of(noun: str) -> frozenset[str] | None:
    """The genders that a noun may have, several if it has several, "p" if it is a plural; None if unknown."""
    ending = _known_ending(noun.lower())
    if ending == "e" and len(_known_ending(noun[:-1].lower()) or "") >= LEAST_STEM:
        return frozenset("p")  # Hinweis, Hinweise
    return None if ending is None else _ENDINGS[ending]


def _known_ending(noun: str) -> str | None:
    return next((noun[at:] for at in range(len(noun)) if noun[at:] in _ENDINGS), None)


def readings_before(text: str) -> Readings | None:
    """What may follow the words at the end of a text; None where no determiner stands there.

    "mit der neuen " → {"df"}; up to two adjectives may stand behind the determiner.
    """
    words = text.rsplit(maxsplit=MOST_ADJECTIVES + 3)  # the first may be many: it is not looked at then
    at = len(words) - 1
    while at >= 0 and words[at].lower() not in _DETERMINERS:
        is_adjective = words[at].islower() and words[at].endswith(_ADJECTIVE_ENDINGS) and words[at].isalpha()
        if not is_adjective or at < len(words) - MOST_ADJECTIVES:
            return None
        at -= 1
    if at < 0:
        return None
    determiner = words[at].lower()
    allowed = _DETERMINERS[determiner]
    before = words[at - 1] if at else ""
    if before.lower() in _PREPOSITIONS:
        allowed = frozenset(r for r in allowed if r[0] in _PREPOSITIONS[before.lower()])
    elif words[at] == "Der":  # at the beginning of a sentence
        allowed = _readings("nm")
    elif determiner == "der" and at > 1 and _is_noun(before) and words[at - 2][-1].isalnum():
        allowed -= {"nm"}  # "die Temperatur der"
    return _with_adjective(determiner, words[-1], allowed) if at < len(words) - 1 else allowed


def _is_noun(word: str) -> bool:
    return word[:1].isupper() and word.isalpha() and word not in _PRONOUNS


def _with_adjective(determiner: str, adjective: str, allowed: Readings) -> Readings:
    """Of what a determiner allows, what goes with the ending of an adjective behind it."""
    ending = adjective[len(adjective.rstrip("nmrs")) - 1 :]
    if determiner in _LIKE_EIN:
        return allowed & {"er": _readings("nm"), "es": _readings("nn an")}.get(ending, allowed)
    weak = _readings("nm nf af nn an")  # where an adjective behind a determiner with an ending has -e
    return {"e": allowed & weak, "en": allowed - weak}.get(ending, allowed)


@lru_cache(maxsize=65_536)
def readings_of(form: str, noun: str, genders: frozenset[str]) -> Readings:
    """What one of the forms of a noun may be. noun: as a term base has it, a plural if genders is p."""
    if genders == {"p"}:
        return frozenset(case + "p" for case in _CASES)
    found: set[Reading] = set()
    for gender in genders:
        if form == noun:
            found |= {case + gender for case in (_CASES if gender == "f" or noun[-1] in "sxzß" else "nda")}
        elif gender != "f" and form in (noun + "s", noun + "es", noun + "ses"):
            found.add("g" + gender)
        if gender == "m" and noun.endswith(("e", "ent", "ant", "ist", "at")) and form in _weak(noun):
            found |= {case + gender for case in "gda"}
    if (form != noun and (form != noun + "es")) or form == plural(noun):
        found |= {case + "p" for case in "nga"} | ({"dp"} if form[-1] in "ns" else set())
    return frozenset(found)


def _weak(noun: str) -> tuple[str, ...]:
    return (noun + "n", noun + "ns") if noun.endswith("e") else (noun + "en",)


def forms_with_readings(noun: str, genders: frozenset[str]) -> dict[str, Readings]:
    """All forms of a noun, each with what it may be."""
    return {form: readings_of(form, noun, genders) for form in [noun, *noun_forms(noun)]}


_SHOWN = {word: frozenset(reading[1] for reading in readings) for word, readings in _DETERMINERS.items()}
_TELLING = "|".join(_SHOWN)
_ADJECTIVE = rf"(?!(?:{_TELLING})\b)[a-zäöüß]+(?:{'|'.join(_ADJECTIVE_ENDINGS)})"


def genders_shown(nouns: Iterable[str], text: str) -> frozenset[str] | None:
    """The genders that a noun may have by every determiner before it in a text; None where there is none.

    nouns: its forms.
    """
    forms = "|".join(map(re.escape, sorted(nouns, key=len, reverse=True)))
    pattern = rf"\b((?i:{_TELLING})) (?:{_ADJECTIVE} ){{0,{MOST_ADJECTIVES}}}(?:{forms})\b"
    # At the beginning of a sentence "Der" is the nominative.
    shown = [
        frozenset("m") if one[1] == "Der" else _SHOWN[one[1].lower()] for one in re.finditer(pattern, text)
    ]
    return frozenset.intersection(*shown) if shown else None


def agrees(genders: frozenset[str] | None, nouns: Iterable[str], text: str) -> bool:
    """Whether nothing before a noun of these genders says that it has another."""
    shown = genders_shown(nouns, text)
    return genders is None or shown is None or bool(shown & genders)
