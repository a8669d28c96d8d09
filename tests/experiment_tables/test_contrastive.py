"""Contrastive examples: ambiguous words found in plain parallel text, and ContraWSD's files read."""

from __future__ import annotations

import json
import shutil
from collections.abc import Hashable
from dataclasses import replace
from pathlib import Path

import pytest
from experiments.budget import Budget
from experiments.contrastive import (
    Contrast,
    build_contrasts,
    find_senses,
    prepare,
    read_contrawsd,
    read_selected,
    select,
)
from experiments.data import Corpora
from experiments.lexicon import Thesaurus

from kster.errors import KsterError

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


def test_translations_that_a_thesaurus_takes_for_synonyms_are_no_senses() -> None:
    groups = {"sparkasse": {1}, "ufer": {2}, "strand": {2}}

    def senses(word: str) -> set[Hashable]:
        return {*groups.get(word.lower(), ())}

    thesaurus = Thesaurus("groups", senses, names_have_capitals=False)
    text = MONEY + RIVER + OTHERS
    assert set(find_senses(text, thesaurus)["bank"]) == {"Sparkasse", "Ufer"}
    synonyms = [(source, target.replace("Sparkasse", "Strand")) for source, target in text]
    assert {"Strand", "Ufer"} <= set(find_senses(synonyms)["bank"])
    assert "bank" not in find_senses(synonyms, thesaurus)


def test_the_wrong_sense_stands_in_the_place_of_the_right_one() -> None:
    senses = {"bank": ["Sparkasse", "Ufer"]}
    test = [
        ("A bank opens", "Eine Sparkasse öffnet."),
        ("bank bank", "Sparkasse"),
        ("bank", "Ufer, Sparkasse"),
    ]
    contrast = Contrast("A bank opens", "Eine Sparkasse öffnet.", ("Eine Ufer öffnet.",), "bank", "Sparkasse")
    assert build_contrasts(test, senses) == [contrast]


def test_contrawsd_is_read(tmp_path: Path) -> None:
    path = tmp_path / "wsd.json"
    entry = {"source": "s", "reference": "r", "errors": [{"contrastive": "c"}, {"contrastive": "d"}]}
    path.write_text(json.dumps([entry | {"ambig word": "w", "sense": "x"}]))
    assert read_contrawsd(path) == [Contrast("s", "r", ("c", "d"), "w", "x")]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([{"source": "s"}], r"not in ContraWSD's format .*reference"),
        (
            [{"source": "s", "reference": "r", "errors": []}],
            "after 0 entries: .*no errors",
        ),  # would always be right
        ([{"source": "s", "reference": 5, "errors": [{"contrastive": "c"}]}], "not text"),
        ({"source": "s"}, "not in ContraWSD's format"),
        ([], "there are no examples in it"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, content: object, message: str) -> None:
    path = tmp_path / "wsd.json"
    path.write_text(json.dumps(content))
    with pytest.raises(KsterError, match=message):
        read_contrawsd(path)


def test_another_contrawsd_is_not_taken_for_the_one_before(
    data: Path, tmp_path: Path, budget: Budget
) -> None:
    own = Path(shutil.copytree(data, tmp_path / "data"))
    given = own / "wsd" / "contrawsd.en-de.json"
    corpora = Corpora(own, ("en", "de"), made=tmp_path / "made")

    def chosen() -> str:
        prepare(corpora, budget)
        return str(read_selected(corpora, budget))

    before = chosen()
    assert chosen() == before
    entries = json.loads(given.read_text())
    for entry in entries:
        entry["errors"] = [{"contrastive": "etwas anderes"}]
    given.write_text(json.dumps(entries))
    after = chosen()
    assert "etwas anderes" in after
    assert "etwas anderes" not in before
    given.unlink()
    assert "ambiguous words of the corpora" in chosen()


def test_a_pack_has_the_chosen_examples_and_those_of_another_budget_are_not_taken_for_them(
    data: Path, tmp_path: Path, budget: Budget
) -> None:
    corpora = Corpora(data, ("en", "de"), made=tmp_path / "made")
    (tmp_path / "packed" / "wsd").mkdir(parents=True)
    packed = Corpora(tmp_path / "packed", ("en", "de"), made=tmp_path / "none")
    for path in prepare(corpora, budget):
        shutil.copy(path, packed.root / "wsd")
    assert prepare(packed, budget)[0].parent == packed.root / "wsd"
    assert read_selected(packed, budget) == read_selected(corpora, budget)
    with pytest.raises(KsterError, match=r"koran/train\.en\.xz: no such file"):  # would be chosen anew
        prepare(packed, replace(budget, contrasts=budget.contrasts + 1))


def test_examples_are_chosen_by_their_words() -> None:
    river, money = "the river flows to the sea", "the loan has a low rate"
    pool = [Contrast(text, "", ()) for text in (river, money, river + " again", money + " again")]
    domains = {"finance": [("a loan with a rate", "")], "nature": [("a river to the sea", "")]}
    chosen = select(pool, domains, count=2, english=0)
    assert {contrast.source for contrast in chosen["finance"]} == {money, money + " again"}
    assert {contrast.source for contrast in chosen["nature"]} == {river, river + " again"}
