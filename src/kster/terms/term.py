"""A term: what a source is called, and what it must be called in the translation."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

from kster.errors import KsterError
from kster.formats.text import UNUSABLE

Case = Literal["any", "exact"]
PartOfSpeech = Literal["noun", "verb", "adjective", "adverb", "proper noun", "other"]
Gender = Literal["masculine", "feminine", "neuter"]
GENDERS: tuple[Gender, ...] = get_args(Gender)
CASE_RULES: tuple[Case, ...] = get_args(Case)
PARTS_OF_SPEECH: tuple[PartOfSpeech, ...] = get_args(PartOfSpeech)
LONGEST = 200  # characters; terms are names of things, not sentences

_SHORT: dict[str, PartOfSpeech] = {
    **{"n": "noun", "s": "noun", "subst": "noun", "substantiv": "noun"},
    **{"v": "verb", "vb": "verb", "adj": "adjective", "a": "adjective", "adjektiv": "adjective"},
    **{"adv": "adverb", "name": "proper noun", "propernoun": "proper noun", "pn": "proper noun"},
}


@dataclass(frozen=True, slots=True)
class Term:
    """One entry of a term base; made by `term`, which checks it.

    targets: the accepted translations, the preferred one first; of a term that is not translated, the source.
    case: "any" finds the source in upper and lower case and lets a target begin a sentence with a capital;
    "exact" takes both as they are written. inside_words: also found as a part of a longer word. gender: of a
    German target, where its ending does not tell or misleads (`gender.py`).
    """

    source: str
    targets: tuple[str, ...]
    part_of_speech: PartOfSpeech | None = None
    case: Case = "any"
    note: str = ""
    translate: bool = True
    inside_words: bool = False
    gender: Gender | None = None
    id: int | None = field(default=None, compare=False)
    """Its number in a term base, never used twice."""


def term(
    source: str,
    targets: Sequence[str] = (),
    *,
    part_of_speech: str | None = None,
    case: str = "any",
    note: str = "",
    translate: bool = True,
    inside_words: bool = False,
    gender: str | None = None,
) -> Term:
    """A checked term, or `KsterError` with what is wrong with it."""
    if isinstance(targets, str):
        raise TypeError("targets is a list of strings; for one target pass [target]")
    source = _checked("source", source)
    forms = tuple(dict.fromkeys(_checked("target", target) for target in targets))
    if not translate:
        forms = (source,)
    elif not forms:
        raise KsterError(f"the term {source!r} has no target; give one, or say that it is not translated")
    rule = next((known for known in CASE_RULES if known == case), None)
    if rule is None:
        raise KsterError(f"case rule {case!r} is unknown; accepted: {', '.join(CASE_RULES)}")
    if UNUSABLE.search(note):
        raise KsterError("note contains a character that no text may have")
    part = part_of_speech_named(part_of_speech)
    return Term(source, forms, part, rule, note.strip(), translate, inside_words, gender_named(gender))


def part_of_speech_named(name: str | None) -> PartOfSpeech | None:
    """The part of speech that a file or a person means; "other" if it is not one of ours."""
    if name is None or not name.strip():
        return None
    plain = re.sub(r"[.\s_-]", "", name).lower()
    known = {part.replace(" ", ""): part for part in PARTS_OF_SPEECH} | _SHORT
    return known.get(plain, "other")


def gender_named(name: str | None) -> Gender | None:
    """The gender that a file or a person means: a name, its first letter, or a German article."""
    plain = (name or "").strip().lower()
    if not plain:
        return None
    short = {"m": "masculine", "f": "feminine", "n": "neuter", "der": "masculine", "die": "feminine"}
    meant = {**short, "das": "neuter"}.get(plain, plain)
    found = next((known for known in GENDERS if known == meant), None)
    if found is None:
        raise KsterError(f"gender {plain!r} is unknown; accepted: {', '.join(GENDERS)}, m, f, n")
    return found


def _checked(side: str, text: str) -> str:
    plain = " ".join(text.split())
    if not any(character.isalnum() for character in plain):
        raise KsterError(f"{side} is empty" if not plain else f"{side} {plain!r} has no letter and no digit")
    if UNUSABLE.search(plain):
        raise KsterError(f"{side} contains a character that no text may have")
    if len(plain) > LONGEST:
        raise KsterError(f"{side} has {len(plain):,} characters, more than the limit of {LONGEST}")
    return plain
