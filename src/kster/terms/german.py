"""The inflected forms of German words, made by rule: more rather than fewer, as a model chooses among them.

A compound inflects like its last part, so no dictionary has to know it. Strong verbs are in a table.
"""

from __future__ import annotations

import re
from itertools import product

from kster.terms.tables import word_table
from kster.terms.term import PartOfSpeech

ADJECTIVE_ENDINGS = ("e", "en", "er", "es", "em")
FEMININE = ("ung", "heit", "keit", "schaft", "tät", "ion", "ik", "ur", "ei")
UMLAUTS = {"au": "äu", "a": "ä", "o": "ö", "u": "ü"}
LAST_VOWEL = re.compile("(?<!e)(au|[aou])[^aeiouäöüy]*(?:er|el|en)?$", re.IGNORECASE)

# Before a verb these may stand apart, some of them only in one meaning of the verb.
SEPARABLE = re.compile(
    "(zusammen|auseinander|her(?:unter|auf|aus|ein)|hin(?:unter|auf|aus|ein)|zurück|weiter|wieder|fort|fest|frei|"
    "hoch|kurz|lahm|leer|los|fern|nach|neu|über|unter|durch|bereit|sicher|vor|weg|her|hin|mit|auf|aus|bei|ein|"
    "ab|an|um|zu|dar?)(?=.{2,}e[lr]?n$)"
)
INSEPARABLE = ("be", "emp", "ent", "er", "ge", "miss", "ver", "zer")

PLURALS = word_table("german_plurals.tsv")
"""nouns whose ending does not tell → their plurals"""
STRONG_VERBS = word_table("german_strong_verbs.tsv")
"""infinitive → (er …, er … in the past, participle)"""


def noun_forms(word: str) -> list[str]:
    """Cases and plurals, as far as the ending of a word allows them."""
    lower = word.lower()
    changed = _with_umlaut(word)
    if lower.endswith("nis"):
        return [word + ending for ending in ("", "se", "ses", "sen")]
    if lower.endswith(("chen", "lein")):
        return [word, word + "s"]
    if lower.endswith("e"):
        return [word, word + "n", word + "s"]
    if lower.endswith(FEMININE):
        return [word, word + "en"]
    if lower.endswith(("er", "el", "en")):
        endings = ("", "s") if lower.endswith("en") else ("", "s", "n")
        return [word + ending for ending in endings] + ([changed, changed + "n"] if changed else [])
    if lower.endswith(("a", "i", "o", "u", "y", "um", "us")):  # Firma, Konto, Museum, Virus: Firmen, …
        return [word, word + "s", re.sub("(a|o|um|us)$", "en", word)]
    forms = [word + ending for ending in ("", "e", "en", "es", "s")]
    if lower.endswith("s"):
        forms += [word + "se", word + "ses"]  # Bus, Busse
    return forms + [
        (changed or word) + ending for ending in (("e", "en", "er", "ern") if changed else ("er", "ern"))
    ]


def plural(noun: str) -> str:
    """The likeliest plural of a noun, perhaps with adjectives before it."""
    *before, last = noun.split(" ")
    if before:
        return " ".join([*(re.sub("e[rs]?$", "en", word) for word in before), plural(last)])
    lower = noun.lower()
    for begin in range(len(noun) - 2):  # a compound is inflected like its last part
        if lower[begin:] in PLURALS:
            changed = PLURALS[lower[begin:]][0]
            return noun[:begin] + (changed.capitalize() if noun[begin].isupper() else changed)
    if lower.endswith(("er", "el", "en", "chen", "lein")):
        return noun
    if lower.endswith("e"):
        return noun + "n"
    if lower.endswith("nis"):
        return noun + "se"
    if lower.endswith(FEMININE):
        return noun + "en"
    if lower.endswith(("o", "um", "us")):
        return re.sub("(o|um|us)$", "en", noun)
    return noun + ("s" if lower.endswith(("a", "i", "u", "y")) else "e")


def participle(infinitive: str) -> str:
    """The second participle of a verb."""
    *before, verb = infinitive.split(" ")
    found = None if before else SEPARABLE.match(verb)
    prefix = found[1] if found else ""
    return " ".join([*before, prefix + _participle(verb[len(prefix) :])])


def adjective_forms(word: str) -> list[str]:
    """With every ending and, first, as it is."""
    stem = re.sub("(?<=[a-zäöüß]{3})(e|en|er|es|em)$", "", word)
    if stem.endswith("el"):  # flexibel, flexible
        stem = stem[:-2] + "l"
    return [word, *(stem + ending for ending in ADJECTIVE_ENDINGS)]


def verb_forms(infinitive: str) -> list[tuple[str, ...]]:
    """Finite forms, participles, infinitives; a prefix that may stand apart does so in forms of two parts."""
    *before, verb = infinitive.split(" ")
    found = SEPARABLE.match(verb)
    prefix = found[1] if found else ""
    core = verb[len(prefix) :]
    if before:  # "neu starten"
        prefix, core = " ".join(before), verb
    joint = prefix + " " if before else prefix
    finite, participle = _finite_forms(core), _participle(core)
    participles = [word + ending for word in (participle, core + "d") for ending in ("", *ADJECTIVE_ENDINGS)]
    forms: list[tuple[str, ...]] = [(joint + form,) for form in (core, *finite, *participles)]
    forms.append((joint + ("zu " if before or not prefix else "zu") + core,))
    if not before:
        forms += [(verb.capitalize(),), (verb.capitalize() + "s",)]  # das Entkalken
    if prefix:
        forms += [(form, prefix) for form in (core, *finite)]
    if prefix in ("durch", "über", "um", "unter", "wieder"):  # übersetzen, übersetzt
        inseparable = prefix + _participle("ver" + core)[3:]
        forms += [(inseparable + ending,) for ending in ("", *ADJECTIVE_ENDINGS)]
    return forms


def phrase_forms(phrase: str, given: PartOfSpeech | None) -> list[tuple[str, ...]]:
    """The forms of a word or of several: adjectives before a noun inflect with it, what follows does not."""
    words = phrase.split(" ")
    part = given or part_of_speech(phrase)
    if part == "verb":
        return list(dict.fromkeys(verb_forms(phrase)))
    if part == "adverb":
        return [(phrase,)]
    head = next((i for i, word in enumerate(words) if word[:1].isupper()), None)
    if head is None or part == "adjective":
        columns = [[word] for word in words[:-1]] + [adjective_forms(words[-1])]
    else:
        columns = [adjective_forms(word)[1:] for word in words[:head]]
        columns += [noun_forms(words[head]), *([word] for word in words[head + 1 :])]
    return list(dict.fromkeys((" ".join(choice),) for choice in product(*columns)))


def part_of_speech(phrase: str) -> PartOfSpeech:
    """What a word or several look like: nouns have capitals, and infinitives end in -en, -eln or -ern."""
    words = phrase.split(" ")
    if any(word[:1].isupper() for word in words):
        return "noun"
    return "verb" if _is_infinitive(words[-1]) else "adjective"


def _is_infinitive(word: str) -> bool:
    return len(word) >= 4 and word.endswith(("en", "eln", "ern"))


def _finite_forms(core: str) -> list[str]:
    stem = core[:-2] if core.endswith("en") else core[:-1]
    strong = _strong(core)
    if strong:
        beginning, (third, past, _) = strong
        past = beginning + past
        many = past + ("n" if past.endswith("e") else "en")
        return [
            stem + "e",
            beginning + third,
            stem + "st",
            stem + "t",
            stem,
            past,
            many,
            past + "st",
            past + "t",
        ]
    link = "e" if stem.endswith(("t", "d")) or re.search("[^aeiouäöülrh][mn]$", stem) else ""
    presents = [stem + "e", stem + link + "st", stem + link + "t"]
    if core.endswith("eln"):
        presents.append(core[:-3] + "le")
    return [*presents, *(stem + link + ending for ending in ("te", "ten", "test", "tet"))]


def _participle(core: str) -> str:
    strong = _strong(core)
    if strong:
        beginning, (_, _, participle) = strong
        return beginning + participle.removeprefix("ge") if beginning else participle
    stem = core[:-2] if core.endswith("en") else core[:-1]
    link = "e" if stem.endswith(("t", "d")) or re.search("[^aeiouäöülrh][mn]$", stem) else ""
    has_ge = not core.startswith(INSEPARABLE) and not core.endswith("ieren")
    return ("ge" if has_ge else "") + stem + link + "t"


def _strong(core: str) -> tuple[str, tuple[str, ...]] | None:
    """A strong verb's table entry and what stands before it, which cannot stand apart: ver-, be-, …"""
    if core in STRONG_VERBS:
        return "", STRONG_VERBS[core]
    for prefix in INSEPARABLE:
        if core.startswith(prefix) and core[len(prefix) :] in STRONG_VERBS:
            return prefix, STRONG_VERBS[core[len(prefix) :]]
    return None


def _with_umlaut(word: str) -> str | None:
    """With its last vowel changed, if it can be: Kopf, Köpf(e); the e of -er, -el and -en does not count."""
    found = LAST_VOWEL.search(word)
    if found is None:
        return None
    changed = UMLAUTS[found[1].lower()]
    return (
        word[: found.start()]
        + (changed.capitalize() if found[1][0].isupper() else changed)
        + word[found.end(1) :]
    )
