"""Pairs made of others have the same thing to copy on both sides."""

from __future__ import annotations

from collections import Counter
from typing import Any

from kster.text.recognition import are_kept
from kster.training import train
from kster.training.augmentation import Augmenter, shared_words
from kster.training.prepared import PreparedData

PAIR = (
    'On 24 May Anna Keller said: "It weighs 12 kg..."',
    'Am 24. Mai sagte Anna Keller: "Es wiegt 12 kg..."',
)


def test_numbers_and_names_that_both_sides_have_once_are_shared() -> None:
    assert shared_words(*PAIR) == ["24", "Anna", "Keller", "12"]
    assert shared_words("In Rome, in 10 or 10 days", "In Rom, in 10 oder 10 Tagen") == []


def test_the_same_things_stand_on_both_sides() -> None:
    augmenter = Augmenter(("en", "de"), seed=3)
    made = [pair for pair in (augmenter.changed(PAIR) for _ in range(400)) if pair]
    assert len(made) > 300
    assert all(are_kept(*pair) for pair in made)
    things = Counter(
        kind
        for english, german in made
        for kind, sign in {
            "placeholder": "{",
            "printf": "%",
            "tag": "</",
            "address": "@",
            "web": "https://",
            "path": "C:\\",
            "dash": " – ",
            "quotes": "“",
            "ellipsis": "…",
            "space": "\u00a0",
        }.items()
        if sign in english and sign in german
    )
    assert min(things.values()) >= 1
    assert len(things) == 10
    assert any(english.isupper() and german.isupper() for english, german in made)


def test_the_same_seed_makes_the_same_pairs() -> None:
    first, second, other = (
        [Augmenter(("en", "de"), seed).changed(PAIR) for _ in range(3)] for seed in (1, 1, 2)
    )
    assert first == second != other


def test_titles_are_capitalised_in_english_only() -> None:
    augmenter = Augmenter(("de", "en"))
    assert augmenter._as_title(("Reinigung der alten Teile.", "Cleaning the old parts.")) == (
        "Reinigung der alten Teile",
        "Cleaning the old Parts",
    )


def test_a_recipe_adds_a_share_of_made_pairs_to_each_corpus(config: Any) -> None:
    plain = train(config(), prepare_only=True)
    more = train(
        config(
            prepared=str(plain.prepared.with_name("more")),
            augmentation={"share": 0.5},
            cleaning={"language_identity": False, "max_tokens": 100},
        ),
        prepare_only=True,
    )
    counts = [PreparedData.open(report.prepared).manifest["corpora"][0] for report in (plain, more)]
    made = counts[1]["cleaning"]["augmented"]
    assert made > 20
    assert counts[1]["pairs"] == counts[0]["pairs"] + made
