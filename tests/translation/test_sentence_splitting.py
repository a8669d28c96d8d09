"""A line of several sentences is translated sentence by sentence, and all about it still fits together."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest

from kster import Memory, MemoryGroup, Pair, Translator
from kster.translation.words import words_of

FIRST = ("Open the red lid.", "Deckel auf.")
SECOND = ("The child reads a book!", "Das Kind liest!")
THIRD = ("Is the machine hot?", "Ist sie warm?")
LINE = f"{FIRST[0]}  {SECOND[0]} {THIRD[0]}"
TRANSLATED = f"{FIRST[1]}  {SECOND[1]} {THIRD[1]}"


@pytest.fixture(params=["taught_marian", "taught_m2m100"], scope="module")
def translator(request: pytest.FixtureRequest) -> Translator:
    return Translator(request.getfixturevalue(request.param), split_sentences=True)


@pytest.fixture
def memory(translator: Translator, tmp_path: Path) -> Iterator[Memory]:
    with Memory.create(tmp_path / "memory", translator.model) as memory:
        memory.add_many([Pair(*FIRST), Pair(*SECOND), Pair(*THIRD)])
        yield memory


def test_sentences_are_translated_one_by_one_and_the_space_between_them_stays(
    translator: Translator, memory: Memory
) -> None:
    text = f"\t{LINE}\n\n{SECOND[0]}\t{FIRST[0]} \n"
    (translation,) = translator.translate([text], memory=memory)
    assert translation.text == f"\t{TRANSLATED}\n\n{SECOND[1]}\t{FIRST[1]} \n"
    single = translator.translate([FIRST[0], SECOND[0], THIRD[0]], memory=memory)
    (line,) = translator.translate([LINE], memory=memory)
    assert line.score == pytest.approx(sum(each.score for each in single) / 3, abs=1e-4)


def test_a_call_and_a_translator_can_ask_for_whole_lines(
    translator: Translator, memory: Memory, caplog: pytest.LogCaptureFixture
) -> None:
    (whole,) = translator.translate([LINE], memory=memory, split_sentences=False, explain=True)
    end = translator.model.token_text(translator.model.eos_id)
    assert [token.token for token in whole.tokens or ()].count(end) == 1
    careful = Translator(translator.model, memory, split_sentences=False)
    assert str(careful.translate([LINE])[0]) == whole.text
    assert str(careful.translate([LINE], split_sentences=True)[0]) == TRANSLATED
    assert not caplog.records


def test_without_a_memory_sentences_are_translated_one_by_one_too(translator: Translator) -> None:
    alone = translator.translate([FIRST[0], SECOND[0]])
    (line,) = translator.translate([f"{FIRST[0]} {SECOND[0]}"])
    assert line.text == f"{alone[0]} {alone[1]}"


@pytest.mark.parametrize("target", ["Das  Kind öffnet.", "Das\u200b Kind\u200b öffnet.", "Das Kind\nöffnet."])
def test_what_was_taught_comes_back_with_what_no_tokenizer_writes(
    translator: Translator, memory: Memory, target: str
) -> None:
    memory.add(SECOND[0], target)
    assert str(translator.translate(SECOND[0], memory=memory)) == target


def test_a_line_that_was_taught_as_a_whole_comes_back_as_it_was_taught(
    translator: Translator, memory: Memory, tmp_path: Path
) -> None:
    source, target = f"{FIRST[0]} {SECOND[0]}", "Das Kind öffnet."
    assert str(translator.translate([source], memory=memory)[0]) == f"{FIRST[1]} {SECOND[1]}"
    taught = memory.add(source, target)
    assert str(translator.translate([source], memory=memory)[0]) == target
    text = f"  {source}\n{THIRD[0]} {FIRST[0]}\n"  # beside other lines, too
    assert str(translator.translate([text], memory=memory)[0]) == f"  {target}\n{THIRD[1]} {FIRST[1]}\n"
    with Memory.create(tmp_path / "other", translator.model) as other:
        group = MemoryGroup([memory, other])
        assert str(translator.translate([source], memory=group)[0]) == target
    memory.remove([taught.id])
    assert str(translator.translate([source], memory=memory)[0]) == f"{FIRST[1]} {SECOND[1]}"


def test_texts_that_were_taught_are_translated_like_any_other_where_asked_for(
    translator: Translator, memory: Memory
) -> None:
    line = f"{FIRST[0]} {SECOND[0]}"
    memory.add(line, "Das Kind öffnet.")
    memory.add(THIRD[0], "Sie  ist  warm.", context="here")
    memory.add(THIRD[0], "Das Kind öffnet.", context="elsewhere")
    asked = [line, THIRD[0]]
    taught = translator.translate(asked, memory=memory, context="here")
    assert [one.text for one in taught] == ["Das Kind öffnet.", "Sie  ist  warm."]
    free = translator.translate(asked, memory=memory, context="here", exact_matches=False)
    assert free[0].text != taught[0].text
    single = translator.translate([FIRST[0], SECOND[0]], memory=memory)
    assert free[0].text == " ".join(one.text for one in single)  # one by one, with the memory's help
    assert "  " not in free[1].text


def test_taught_lines_are_found_however_many_lines_there_are(translator: Translator, memory: Memory) -> None:
    pairs = [FIRST, SECOND, THIRD]
    lines = {f"{one[0]} {other[0]}": f"{one[1]} {other[1]}" for one, other in product(pairs, pairs)}
    taught = f"{THIRD[0]} {THIRD[0]}", "Sie ist warm."  # the last of them
    memory.add(*taught)
    lines[taught[0]] = taught[1]
    found = translator.translate(list(lines), memory=memory)
    assert [translation.text for translation in found] == list(lines.values())


def test_an_explanation_goes_through_the_sentences_in_order(translator: Translator, memory: Memory) -> None:
    (translation,) = translator.translate([LINE], memory=memory, explain=True)
    tokens = translation.tokens or ()
    model = translator.model
    end = model.token_text(model.eos_id)
    expected = model.tokenise_target([FIRST[1], SECOND[1], THIRD[1]])
    assert [token.token for token in tokens] == [model.token_text(t) for own in expected for t in own]
    origins = [(token.examples[0].source, token.examples[0].position) for token in tokens]
    sources = (FIRST[0], SECOND[0], THIRD[0])
    assert origins == [(s, i) for s, own in zip(sources, expected, strict=True) for i in range(len(own))]
    words = words_of([token.token for token in tokens], end)
    shown = [word.text for word in words if word.text != "⏎"]
    assert "".join(shown) == "".join(TRANSLATED.split())


def test_an_n_best_list_has_the_best_ways_to_choose_a_hypothesis_of_each_sentence(
    translator: Translator, memory: Memory
) -> None:
    line = f"{FIRST[0]} {SECOND[0]}"
    (found,) = translator.translate([line], memory=memory, n_best=4)
    lists = translator.translate([FIRST[0], SECOND[0]], memory=memory, n_best=4)
    texts = [[each.text, *each.alternatives] for each in lists]
    assert found.text == f"{texts[0][0]} {texts[1][0]}"
    assert len(found.alternatives) == 3
    possible = {f"{one} {other}" for one, other in product(*texts)}
    assert possible.issuperset(found.alternatives)
    assert f"{texts[0][1]} {texts[1][0]}" in found.alternatives or (
        f"{texts[0][0]} {texts[1][1]}" in found.alternatives  # the second best changes one sentence
    )


def test_only_a_sentence_that_is_too_long_itself_is_warned_about(
    translator: Translator, caplog: pytest.LogCaptureFixture
) -> None:
    many = " ".join([FIRST[0], SECOND[0]] * 60)
    assert not translator._fits(many)
    with caplog.at_level(logging.WARNING):
        (translation,) = translator.translate([many], beam=1)
        assert not caplog.records
        alone = translator.translate([FIRST[0], SECOND[0]], beam=1)
        assert translation.text == " ".join([alone[0].text, alone[1].text] * 60)
        translator.translate([f"{FIRST[0]} {'open the lid and ' * 100}"], beam=1)
        assert "some sentences are longer than 256 tokens" in caplog.text
        caplog.clear()
        translator.translate([many], beam=1, split_sentences=False)
        assert "some lines are longer than 256 tokens" in caplog.text


def test_placeholders_stay_in_their_sentences(translator: Translator, memory: Memory) -> None:
    memory.add("Press {0} now.", "{0} drücken.")
    memory.add("Then {1} starts.", "Dann {1}.")
    (translation,) = translator.translate(["Press {0} now. Then {1} starts."], memory=memory)
    assert translation.text == "{0} drücken. Dann {1}."
