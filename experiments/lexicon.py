"""What words mean: English synonyms and senses from WordNet, German ones from OpenThesaurus.

Debian installs them as `wordnet-base` and `mythes-de`. A thesaurus tells the senses of a word from its
synonyms, spellings and names.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator
from difflib import SequenceMatcher
from pathlib import Path

from kster.errors import KsterError

WORDNET_PLACES = ("/usr/share/wordnet", "/usr/local/share/wordnet", "/opt/homebrew/share/wordnet")
PARTS = ("noun", "verb", "adj", "adv")

# How WordNet reduces an inflected form to the form it lists: ending → what stands in its place.
_ENDINGS = {
    "noun": (
        *(("ses", "s"), ("xes", "x"), ("zes", "z"), ("ches", "ch"), ("shes", "sh")),
        *(("men", "man"), ("ies", "y"), ("s", "")),
    ),
    "verb": (
        *(("ies", "y"), ("es", "e"), ("es", ""), ("s", "")),
        *(("ed", "e"), ("ed", ""), ("ing", "e"), ("ing", "")),
    ),
    "adj": (("er", ""), ("est", ""), ("er", "e"), ("est", "e")),
    "adv": (),
}
OPENTHESAURUS = Path("/usr/share/mythes/th_de_DE_v2.dat")
GERMAN_ENDINGS = ("", "e", "n", "s", "en", "er", "es", "em", "ern", "se", "sen", "t", "st", "te", "ten")
SAME_SPELLING = 0.7  # share of letters in the same order: "metres" and "meters", "lesen" and "gelesen"

Senses = Callable[[str], set[Hashable]]
"""The groups of synonyms that a word, or what it is a form of, belongs to."""


def find_wordnet() -> Path:
    """The directory with data.noun and the others; WNSEARCHDIR names it as for WordNet's own programs."""
    for place in (os.environ.get("WNSEARCHDIR"), *WORDNET_PLACES):
        if place and (Path(place) / "data.noun").is_file():
            return Path(place)
    raise KsterError(
        "WordNet is not installed: noise needs its synonyms. Install Debian's wordnet-base (`apt install "
        "wordnet-base`), or set WNSEARCHDIR to the directory of data.noun; looked in "
        + ", ".join(WORDNET_PLACES)
    )


class WordNet:
    """All synonyms, held in memory."""

    def __init__(self, directory: Path) -> None:
        self._sets: dict[str, dict[str, list[tuple[str, ...]]]] = {}
        self._irregular: dict[str, dict[str, str]] = {}
        for part in PARTS:
            self._sets[part] = _read_synsets(directory / f"data.{part}")
            self._irregular[part] = _read_exceptions(directory / f"{part}.exc")

    def senses(self, word: str) -> set[Hashable]:
        """The synsets that the word, or what it is a form of, belongs to."""
        return {
            synset
            for part in PARTS
            for form in self._base_forms(word.lower(), part)
            for synset in self._sets[part][form]
        }

    def synonyms(self, word: str) -> list[str]:
        """Every other word that shares a sense with this one, sorted; empty when WordNet does not know it."""
        found: set[str] = set()
        for part in PARTS:
            for form in self._base_forms(word.lower(), part):
                for synset in self._sets[part].get(form, ()):
                    found.update(other for other in synset if other != form)
        return sorted(name.replace("_", " ") for name in found - {word.lower()})

    def _base_forms(self, word: str, part: str) -> list[str]:
        forms = [word]
        if irregular := self._irregular[part].get(word):
            forms.append(irregular)
        forms += [word.removesuffix(end) + new for end, new in _ENDINGS[part] if word.endswith(end)]
        return [form for form in dict.fromkeys(forms) if form in self._sets[part]]


def _read_synsets(path: Path) -> dict[str, list[tuple[str, ...]]]:
    """Word → the synsets it is in. A line: offset, file, type, word count (hexadecimal), then word and id."""
    sets: dict[str, list[tuple[str, ...]]] = defaultdict(list)
    with path.open(encoding="utf-8") as file:
        for line in file:
            if line.startswith("  "):  # the licence
                continue
            fields = line.split(" ", 4)
            count = int(fields[3], 16)
            names = fields[4].split(" ")[: 2 * count : 2]
            words = tuple(name.split("(")[0].lower() for name in names)  # adjectives carry a marker: "(p)"
            for word in words:
                sets[word].append(words)
    return dict(sets)


def _read_exceptions(path: Path) -> dict[str, str]:
    with path.open(encoding="utf-8") as file:
        rows = [line.split() for line in file]
    return {row[0]: row[1] for row in rows if len(row) > 1}


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
