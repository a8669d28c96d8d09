"""Contrastive examples: ambiguous words found in plain parallel text, and ContraWSD's files read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kster.errors import KsterError
from kster.experiments import embeddings
from kster.experiments.contrastive import Contrast, build_contrasts, find_senses, read_contrawsd, select

FILLERS = [("often", "häufig"), ("today", "heute"), ("here", "hier"), ("again", "wieder"), ("money", "Geld")]
PLACES = [("river", "Fluss"), ("field", "Feld"), ("forest", "Wald")]


def _pairs(source: str, target: str, words: list[tuple[str, str]]) -> list[tuple[str, str]]:
    return [
        (f"{source} {words[i % len(words)][0]}", f"{target} {words[i % len(words)][1]}") for i in range(20)
    ]


MONEY = _pairs("that bank", "diese Sparkasse", FILLERS)
RIVER = _pairs("that bank", "jenes Ufer", FILLERS[:4] + PLACES)
OTHERS = _pairs("nothing", "nichts", FILLERS + PLACES) + _pairs("that garden", "dieser Garten", PLACES)


def test_a_word_with_two_translations_that_exclude_each_other_is_ambiguous() -> None:
    senses = find_senses(MONEY + RIVER + OTHERS)
    assert {"Sparkasse", "Ufer"} <= set(senses["bank"])
    assert "nothing" not in senses


def test_forms_of_one_word_are_no_senses() -> None:
    pairs = [(f"the houses stand {i}", "die Häuser stehen") for i in range(20)]
    pairs += [(f"of the houses {i}", "den Häusern") for i in range(20)]
    assert "houses" not in find_senses(pairs)


def test_the_wrong_sense_stands_in_the_place_of_the_right_one() -> None:
    senses = {"bank": ["Sparkasse", "Ufer"]}
    test = [
        ("A bank opens", "Eine Sparkasse öffnet."),
        ("bank bank", "Sparkasse"),
        ("bank", "Ufer, Sparkasse"),
    ]
    contrast = Contrast("A bank opens", "Eine Sparkasse öffnet.", ("Eine Ufer öffnet.",), "bank", "Sparkasse")
    assert build_contrasts(test, senses) == [contrast]


def test_contrawsd_is_read_and_other_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "wsd.json"
    entry = {"source": "s", "reference": "r", "errors": [{"contrastive": "c"}, {"contrastive": "d"}]}
    path.write_text(json.dumps([entry | {"ambig word": "w", "sense": "x"}]))
    assert read_contrawsd(path) == [Contrast("s", "r", ("c", "d"), "w", "x")]
    path.write_text(json.dumps([{"source": "s"}]))
    with pytest.raises(KsterError, match=r"not in ContraWSD's format .*reference"):
        read_contrawsd(path)


def test_without_the_embedding_package_examples_are_chosen_by_their_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(embeddings, "PACKAGE", "a_package_nobody_has")
    assert embeddings.method() == "TF-IDF"
    river, money = "the river flows to the sea", "the loan has a low rate"
    pool = [Contrast(text, "", ()) for text in (river, money, river + " again", money + " again")]
    domains = {"finance": [("a loan with a rate", "")], "nature": [("a river to the sea", "")]}
    chosen = select(pool, domains, count=2, english=0)
    assert {contrast.source for contrast in chosen["finance"]} == {money, money + " again"}
    assert {contrast.source for contrast in chosen["nature"]} == {river, river + " again"}
