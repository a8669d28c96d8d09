"""What a German text tells its reader to do: "Klicke" (to one), "Klickt" (to several), without a pronoun.

Forms are made by rule from a list of verbs. A form is an order only at the head of a sentence or clause,
where a statement has no verb. What can also be a noun ("Frage"), a question ("Führt der Weg nach Rom?") or a
description ("Zeigt den Namen an") is one only where the words around it or the source say so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Literal, NamedTuple

Addressed = Literal["du", "ihr", "nobody"]

# After a form that is a noun, too, or could be said of oneself, these say that it is told to somebody.
_OBJECT = re.compile(
    "den|einen?|eine|die|das|d(?:ein|eine[mnr]?|ich|ir)|eu(?:ch|ren?|rem)|mein(?:en?)?|mi(?:ch|r)|uns|ih(?:n|m|nen)"
    "|keine?n?|diese[ns]|jede[ns]|alles?|nichts|etwas|bitte|nie|niemals|immer|nicht|Ihr(?:e[mnr]?)?|Ihnen|sie|es"
    "|jetzt|hier|nun|heute|zuerst|einfach|sofort"
)
_SUBJECT = re.compile(
    "ich|er|sie|es|man|wir|ihr|der|dieser|jeder|keiner|jemand|niemand|wer|Sie|ist|sind|wird|hat"
)
_SUBORDINATE = re.compile(
    "wenn|falls|sobald|bevor|ehe|nachdem|während|damit|um|solange|sofern|sooft|ob|wer|was|wo|statt|ohne"
)
_SOFTENING = {"bitte", "dann", "danach", "anschließend", "zuerst", "zunächst", "jetzt", "nun"}
_JOINING = {"und", "oder"}

_SENTENCE = re.compile(r"[^.!?:…\n]+[.!?:…]*")
_CLAUSE = re.compile(r"[^,;–—()]+")
_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")


class Order(NamedTuple):
    """A form that tells somebody to do something. "Schließen deine Augen", "Gibt den Namen ein" and "Öffne
    sich" are told to nobody."""

    word: str
    to: Addressed
    at: int  # where it stands in the text


@cache
def _to_one() -> dict[str, bool]:
    """Forms that one person is told something in → whether they are other words, too."""
    ambiguous = set(_lines("german_ambiguous_orders.tsv"))
    forms = set()
    for infinitive, *irregular in _verbs():
        stem = re.sub("e?n$", "", infinitive)
        short = re.sub("el$", "l", stem)  # wechsle
        forms |= set(irregular) or {short + "e", stem + "e", stem + "e" * stem.endswith(("d", "t"))}
    return {form: form in ambiguous for form in forms}


@cache
def infinitives() -> frozenset[str]:
    """Of the verbs that are known."""
    return frozenset(infinitive for infinitive, *_ in _verbs())


@cache
def irregular_orders() -> dict[str, str]:
    """Infinitives → what one person is told where that is another stem: "geben" → "gib"."""
    return {infinitive: own[0] for infinitive, *own in _verbs() if own}


@cache
def _to_nobody() -> frozenset[str]:
    """What is mistaken for an order: "geben", "gibt"."""
    return infinitives() | {form + "t" for form in irregular_orders().values()}


@cache
def _to_several() -> frozenset[str]:
    stems = (re.sub("e?n$", "", infinitive) for infinitive, *_ in _verbs() if infinitive != "sein")
    forms = (stem + ("et" if re.search("[dt]$|chn$|[^aeiouäöülrhmn][mn]$", stem) else "t") for stem in stems)
    return frozenset([*forms, "seid"])


def _verbs() -> Iterator[list[str]]:
    """Infinitives, some with a form of their own: "geben", "gib"."""
    return (line.split("\t") for line in _lines("german_verbs.tsv"))


def _lines(name: str) -> list[str]:
    return files("kster.text").joinpath(name).read_text(encoding="utf-8").splitlines()


def orders_in(text: str, *, to_reader: bool = False) -> Iterator[Order]:
    """The orders in a German text.

    to_reader: what it translates begins with an order.
    """
    for sentence in _SENTENCE.finditer(text):
        asks = sentence[0].rstrip().endswith("?")
        ordered = condition = False  # so far in this sentence; the clause before is one
        for number, clause in enumerate(_CLAUSE.finditer(sentence[0])):
            words = list(_WORD.finditer(clause[0]))
            may_begin = number == 0 or condition or ordered
            here = _is_polite(words) and not asks  # somebody is told something in this clause
            for i, word in enumerate(words):
                before = words[i - 1][0].lower() if i else ""
                joined = before in _JOINING and (here or (i == 1 and ordered))
                softened = before in _SOFTENING and i == 1 and may_begin
                if not ((i == 0 and may_begin) or ((joined or softened) and word[0].islower())):
                    continue
                told = _told(word[0], words[i + 1][0] if i + 1 < len(words) else "")
                # A statement has this form, too: "Dann steht ihnen …", "Zeigt den Namen an".
                first = to_reader and number == i == 0
                if told == "ihr" and (asks or not ((joined and here) or first)):
                    continue
                if told == "nobody" and (asks or not (joined or first)):
                    continue
                if told == "du" and re.search(r"\bich\b", clause[0]):
                    continue
                if told is not None:
                    here = True
                    yield Order(word[0], told, sentence.start() + clause.start() + word.start())
            ordered |= here
            condition = bool(words and _SUBORDINATE.fullmatch(words[0][0].lower()))


def _is_polite(words: list[re.Match[str]]) -> bool:
    """Whether a clause begins with "Klicken Sie"."""
    return len(words) > 1 and words[0][0].endswith("n") and words[1][0] == "Sie"


def _told(word: str, following: str) -> Addressed | None:
    """Whom a form at the head of a clause may tell something."""
    form = word.lower()
    if word[1:] != form[1:]:  # "POST"
        return None
    if form in _to_nobody() and not _SUBJECT.fullmatch(following):
        return "nobody"
    is_ambiguous = _to_one().get(form)
    if is_ambiguous is not None and following != "ich" and (not is_ambiguous or _OBJECT.fullmatch(following)):
        return "nobody" if following == "sich" else "du"
    return "ihr" if form in _to_several() and not _SUBJECT.fullmatch(following) else None
