"""English synonyms from WordNet's own files, as Debian's package `wordnet-base` installs them."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Hashable
from pathlib import Path

from kster.errors import KsterError

PLACES = ("/usr/share/wordnet", "/usr/local/share/wordnet", "/opt/homebrew/share/wordnet")
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


def find_wordnet() -> Path:
    """The directory with data.noun and the others; WNSEARCHDIR names it as for WordNet's own programs."""
    for place in (os.environ.get("WNSEARCHDIR"), *PLACES):
        if place and (Path(place) / "data.noun").is_file():
            return Path(place)
    raise KsterError(
        "WordNet is not installed: noise needs its synonyms. Install Debian's wordnet-base (`apt install "
        f"wordnet-base`), or set WNSEARCHDIR to the directory of data.noun; looked in {', '.join(PLACES)}"
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
