"""What a confidence promises: between 0 and 1 for a text and its words, only where it is asked for."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from kster import Memory, Translator
from kster.translation.confidence import (
    SENTENCE_FEATURES,
    WORD_FEATURES,
    Regression,
    sentence_features,
    shipped_confidence,
    word_features,
)
from kster.translation.explanation import TokenExplanation
from tiny import ENGLISH, GERMAN


@pytest.fixture(scope="module")
def translator(taught_marian: Path) -> Translator:
    return Translator(taught_marian)


def test_a_probability_can_be_computed_by_hand() -> None:
    regression = Regression([1.0, 0.0], [2.0, 1.0], [2.0, 3.0], -1.0)
    odds = (3 - 1) / 2 * 2 + 3 * 0.25 - 1
    assert regression([3.0, 0.25]) == pytest.approx(1 / (1 + math.exp(-odds)))
    assert 0.0 <= regression([1e9, -1e9]) <= 1.0


def test_a_text_and_its_words_have_a_confidence_where_it_is_asked_for(translator: Translator) -> None:
    text = f"{ENGLISH[0]}. Press <b>{{button}}</b>!"
    plain = translator.translate(text)
    asked = translator.translate(text, confidence=True)
    assert (plain.confidence, plain.words) == (None, None)
    assert asked.text == plain.text
    assert asked.tokens is None  # those are an explanation
    assert asked.confidence is not None
    assert 0.0 < asked.confidence < 1.0
    assert asked.words is not None
    for word in asked.words:
        assert 0.0 <= word.confidence <= 1.0
        if word.start is not None:
            assert asked.text[word.start : word.end] == word.text
    assert len(asked.words) >= len(GERMAN[0].split())


def test_confidence_and_explanation_say_the_same_as_each_alone(translator: Translator) -> None:
    both = translator.translate(ENGLISH[2], confidence=True, explain=True)
    alone = translator.translate(ENGLISH[2], confidence=True)
    assert both.confidence == pytest.approx(alone.confidence)
    assert both.tokens is not None
    assert both.tokens[0].confidence == pytest.approx(alone.words[0].confidence)  # type: ignore[index]
    assert all(
        token.confidence is None for token in translator.translate(ENGLISH[2], explain=True).tokens or ()
    )


def test_what_the_memory_holds_is_surer_than_what_nobody_knows(
    translator: Translator, tmp_path: Path
) -> None:
    known, unknown = "qua vadis dogma", "xeno lux pfft hrmpf"
    with Memory.create(tmp_path / "memory", translator.model) as memory:
        memory.add(known, GERMAN[3])
        sure, unsure = translator.translate([known, unknown], memory=memory, confidence=True)
        without = translator.translate(known, confidence=True)
    assert sure.text == GERMAN[3]
    assert sure.confidence is not None
    assert unsure.confidence is not None
    assert without.confidence is not None
    assert sure.confidence > max(unsure.confidence, without.confidence)
    assert sure.confidence > 0.5


def test_nothing_but_codes_is_certain_and_nothing_at_all_is_too(translator: Translator) -> None:
    for text in ("%s", "", "   "):
        done = translator.translate(text, confidence=True)
        assert (done.text, done.words) == (text, ())
        assert done.confidence == 1.0


def test_the_shipped_model_has_a_weight_for_each_number() -> None:
    token = TokenExplanation("▁a", 0.5, 0.25, 0.75, 0.5, 1.0, (), 0.9, 0.2)
    end = TokenExplanation("</s>", 0.9, 0.9, 0.0, 0.0, None, ())
    numbers = sentence_features([token, end], "a", "b", 80)
    assert len(numbers) == len(SENTENCE_FEATURES)
    assert numbers[0] == pytest.approx((math.log(0.5) + math.log(0.9)) / 2)
    (_, _, word), _ = word_features([token, end], "a", 0.4, 80)
    assert len(word) == len(WORD_FEATURES)
    model = shipped_confidence()
    assert 0.0 < model.sentence(numbers) < 1.0
    assert 0.0 < model.word(word) < 1.0
    likelier = TokenExplanation("▁a", 0.99, 0.99, 0.99, 0.5, 1.0, (), 0.99, 0.0)
    assert model.judge([likelier, end], "a", "b", 100)[0] > model.judge([token, end], "a", "b", 0)[0]
