"""Senses are told from synonyms, spellings and names."""

from __future__ import annotations

from pathlib import Path

import pytest
from experiments import lexicon
from experiments.lexicon import Thesaurus, thesaurus_of

OPENTHESAURUS = """UTF-8
erzeugnis|1
-|Erzeugnis|Fabrikat|Produkt
produkt|2
-|Erzeugnis|Fabrikat|Produkt
-|Ergebnis|Produkt (Mathematik)
sparkasse|1
-|Geldinstitut|Sparkasse
ufer|1
-|Küste (am Meer)|Strand|Ufer
"""


@pytest.fixture
def german(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Thesaurus:
    file = tmp_path / "th_de.dat"
    file.write_text(OPENTHESAURUS, encoding="utf-8")
    monkeypatch.setattr(lexicon, "OPENTHESAURUS", file)
    found = thesaurus_of("de")
    assert found is not None
    return found


def test_german_words_are_found_in_their_forms(german: Thesaurus) -> None:
    assert german.knows("Erzeugnisse")
    assert german.knows("Küsten")
    assert not german.knows("Moosa")
    assert not german.apart("Erzeugnisse", "Produkte")
    assert german.apart("Sparkasse", "Ufer")
    assert not german.apart("muss", "müssen")


def test_english_words_have_wordnet_and_names_have_capitals() -> None:
    english = thesaurus_of("en")
    assert english is not None
    assert english.name == "WordNet"
    assert not english.apart("houses", "home")
    assert english.apart("house", "sprint")
    assert english.knows("houses")
    assert not english.knows("House")


def test_no_thesaurus_is_no_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(lexicon, "OPENTHESAURUS", tmp_path / "none")
    assert thesaurus_of("de") is None
    assert thesaurus_of("fr") is None
