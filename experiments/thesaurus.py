"""Telling the senses of a word from its synonyms, spellings and names.

English words are looked up in WordNet, German ones in OpenThesaurus, which Debian installs as `mythes-de`.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator
from difflib import SequenceMatcher
from pathlib import Path

from experiments.wordnet import WordNet, find_wordnet
from kster.errors import KsterError

OPENTHESAURUS = Path("/usr/share/mythes/th_de_DE_v2.dat")
GERMAN_ENDINGS = ("", "e", "n", "s", "en", "er", "es", "em", "ern", "se", "sen", "t", "st", "te", "ten")
SAME_SPELLING = 0.7  # share of letters in the same order: "metres" and "meters", "lesen" and "gelesen"

Senses = Callable[[str], set[Hashable]]
"""The groups of synonyms that a word, or what it is a form of, belongs to."""


class Thesaurus:
    def __init__(self, name: str, senses: Senses, *, names_have_capitals: bool) -> None:
        self.name = name
        self._senses = senses
        self._names_have_capitals = names_have_capitals

    def knows(self, word: str) -> bool:
        """Whether it can be told from synonyms: it is listed, and no name."""
        if self._names_have_capitals and word[0].isupper():
            return False
        return bool(self._senses(word))

    def apart(self, one: str, other: str) -> bool:
        """Whether two words mean different things, and are not one word written in two ways."""
        alike = SequenceMatcher(None, _plain(one), _plain(other), autojunk=False).ratio()
        return alike < SAME_SPELLING and not self._senses(one) & self._senses(other)


def thesaurus_of(language: str) -> Thesaurus | None:
    """The language's thesaurus, if there is one here."""
    if language == "en":
        try:
            return Thesaurus("WordNet", WordNet(find_wordnet()).senses, names_have_capitals=True)
        except KsterError:
            return None
    if language == "de" and OPENTHESAURUS.is_file():
        return Thesaurus("OpenThesaurus", read_openthesaurus(OPENTHESAURUS), names_have_capitals=False)
    return None


def read_openthesaurus(path: Path) -> Senses:
    """MyThes' format: the encoding, then entries, each `word|count` and so many lines of `-|synonym|…`."""
    groups: dict[str, set[Hashable]] = defaultdict(set)
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file):
            if line.startswith("-|"):
                for synonym in line.rstrip("\n").split("|")[1:]:
                    groups[re.sub(r"\s*\([^)]*\)\s*", " ", synonym).strip().lower()].add(number)

    def senses(word: str) -> set[Hashable]:
        return {sense for form in _german_forms(word.lower()) for sense in groups.get(form, ())}

    return senses


def _plain(word: str) -> str:
    """Without capitals and umlauts, which forms of one word may differ in."""
    return unicodedata.normalize("NFD", word.lower()).encode("ascii", "ignore").decode()


def _german_forms(word: str) -> Iterator[str]:
    """What the word may be an inflected form of."""
    for ending in GERMAN_ENDINGS:
        if word.endswith(ending):
            stem = word.removesuffix(ending)
            yield from (stem, f"{stem}e", f"{stem}en")
