"""Which source words the decoder looks at: the same while it decodes and along a finished translation."""

from __future__ import annotations

from pathlib import Path

import torch

from kster.model import BaseModel
from kster.model.focus import NO_WORD, WORDS, source_words
from kster.model.step import Candidates, StepDecoder
from tiny import ENGLISH, GERMAN


def test_words_are_what_stands_between_spaces(tiny_marian: Path) -> None:
    model = BaseModel.load(tiny_marian)
    (ids,) = model.tokenise_source(["the red house stands"])
    words, numbers = source_words(model, ids)
    assert words == ["the", "red", "house", "stands"]
    assert len(numbers) == len(ids)
    assert numbers[-1] == NO_WORD
    assert sorted(set(numbers[:-1])) == [0, 1, 2, 3]


def test_a_word_written_with_bytes_is_not_read(tiny_marian: Path) -> None:
    model = BaseModel.load(tiny_marian)
    words, _ = source_words(model, model.tokenise_source(["the 東京 house"])[0])
    assert words == ["the", "", "house"]


def test_punctuation_is_no_word() -> None:
    model = BaseModel.load(Path(__file__).parents[2] / "models" / "en-de")
    (ids,) = model.tokenise_source(["Close the gate, please."])
    words, numbers = source_words(model, ids)
    assert words == ["Close", "the", "gate,", "please."]
    pieces = [model.token_text(token) for token in ids]
    assert {numbers[i] for i, piece in enumerate(pieces) if piece in (",", ".", "</s>")} == {NO_WORD}


def test_a_language_token_is_no_word(tiny_m2m100: Path) -> None:
    model = BaseModel.load(tiny_m2m100)
    words, numbers = source_words(model, model.tokenise_source(["the red house"])[0])
    assert words == ["the", "red", "house"]
    assert numbers[0] == NO_WORD


def test_words_after_the_last_number_share_one(tiny_marian: Path) -> None:
    model = BaseModel.load(tiny_marian)
    words, numbers = source_words(model, model.tokenise_source(["the " * 80])[0])
    assert len(words) == NO_WORD
    assert max(numbers) == NO_WORD < WORDS


def test_decoding_looks_where_force_decoding_looks(tiny_marian: Path) -> None:
    model = BaseModel.load(tiny_marian, precision="float32")
    decoder = StepDecoder(model)
    forced = list(model.force_decode(zip(ENGLISH[:3], GERMAN[:3], strict=True)))
    state = decoder.start(model.tokenise_source(ENGLISH[:3]), 1, 40)
    seen: list[torch.Tensor] = []

    def predict(
        queries: torch.Tensor,
        logits: torch.Tensor,
        count: int,
        wanted: torch.Tensor | None = None,
        focus: torch.Tensor | None = None,
    ) -> Candidates:
        assert focus is not None
        seen.append(focus)
        return Candidates(queries[:, :1].long(), queries[:, :1])

    tokens = decoder.first_tokens(3)
    for i in range(min(len(sentence.tokens) for sentence in forced)):
        decoder.predict(state, tokens, None, predict, 1, watch=True)
        tokens = torch.stack([sentence.tokens[i].long() for sentence in forced])
    for row, sentence in enumerate(forced):
        own = torch.stack([step[row] for step in seen])
        torch.testing.assert_close(own, sentence.focus[: len(own)].float(), atol=2e-3, rtol=0)
        torch.testing.assert_close(own.sum(-1), torch.ones(len(own)))
