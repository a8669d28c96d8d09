"""Noise: a tenth of the words, the same every time, and synonyms read from WordNet's files."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from experiments import lexicon
from experiments.lexicon import WordNet, find_wordnet
from experiments.robustness import disturb, disturb_lines

from kster.errors import KsterError


def test_synonyms_share_a_sense_and_inflected_forms_are_found(wordnet_directory: Path) -> None:
    synonyms = WordNet(wordnet_directory).synonyms
    assert synonyms("house") == ["home"]
    assert synonyms("Houses") == ["home"]
    assert synonyms("ran") == ["go fast", "sprint"]
    assert synonyms("leaves") == ["depart"]
    assert synonyms("red") == ["crimson"]
    assert synonyms("xylophone") == []


def test_without_wordnet_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("WNSEARCHDIR", str(tmp_path))
    monkeypatch.setattr(lexicon, "WORDNET_PLACES", (str(tmp_path / "nowhere"),))
    with pytest.raises(KsterError, match="apt install wordnet-base"):
        find_wordnet()


def test_about_a_tenth_of_the_words_changes() -> None:
    line = " ".join(f"w{i}" for i in range(20))
    lines = [line] * 200
    changed = list(disturb_lines(lines, lambda word: [word + "'"]))
    words = [set(line.split()) ^ set(other.split()) for line, other in zip(lines, changed, strict=True)]
    touched = sum(len(difference) for difference in words) / (200 * 20)
    # A replacement counts twice here, an insertion and a deletion once, a swap not at all: 1 on average.
    assert 0.07 < touched < 0.13


def test_function_words_have_no_synonyms() -> None:
    seen = {disturb("he is in", lambda word: ["helium"], random.Random(seed), rate=1.0) for seed in range(40)}
    assert {word for line in seen for word in line.split()} == {"he", "is", "in"}


def test_words_are_inserted_anywhere() -> None:
    line = " ".join(f"w{i}" for i in range(10))
    places = set()
    for seed in range(400):
        words = disturb(line, lambda word: ["new"], random.Random(seed), rate=0.1).split()
        if "new" in words and len(words) == 11:
            places.add(words.index("new"))
    assert places == set(range(11))


def test_a_line_is_disturbed_alike_in_whatever_company() -> None:
    lines = ["the house is red", "a dog runs fast", "he left the house"]
    all_at_once = list(disturb_lines(lines, lambda word: ["x"], rate=0.9))
    assert list(disturb_lines(lines[:1], lambda word: ["x"], rate=0.9)) == all_at_once[:1]
    assert all_at_once != lines


def test_a_synonym_keeps_capital_and_punctuation_and_no_line_becomes_empty() -> None:
    seen = {disturb("House,", lambda word: ["home"], random.Random(seed), rate=1.0) for seed in range(40)}
    assert "Home," in seen
    assert "" not in seen
