"""The fast way through Marian's tokenizer gives the tokenizer's own ids."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from by_transformers import tokenizer_of
from kster.model import BaseModel

ODD = [
    "",
    " ",
    "Empty the knock box.",
    "  two  spaces\tand a tab\nand a line ",
    "a </s> in the middle </s>",
    "<unk> <pad>",
    ">>de<< Hello.",
    ">> not a code",
    "日本語のテキスト",
    "emoji 🫖 and \u200d joiner",
    "ﬁ ligature, ½, ①",
    "\u00a0non-breaking\u00a0",
    "x" * 300,
]


@pytest.fixture(scope="module", params=["tiny", "shipped"])
def model(request: pytest.FixtureRequest, tiny_marian: Path) -> BaseModel:
    shipped = Path(__file__).parents[2] / "models/en-de"
    return BaseModel.load(tiny_marian if request.param == "tiny" else shipped, device="cpu")


def slow(model: BaseModel, texts: list[str], target: bool) -> list[list[int]]:
    given = {"text_target": texts} if target else {"text": texts}
    return tokenizer_of(model)(**given, truncation=False)["input_ids"]


def test_odd_texts_have_the_tokenizers_ids(model: BaseModel) -> None:
    assert model.tokenise_source(ODD) == slow(model, ODD, target=False)
    assert model.tokenise_target(ODD) == slow(model, ODD, target=True)


@settings(max_examples=60, deadline=None)
@given(texts=st.lists(st.text(max_size=40), min_size=1, max_size=5))
def test_any_text_has_the_tokenizers_ids(model: BaseModel, texts: list[str]) -> None:
    assert model.tokenise_source(texts) == slow(model, texts, target=False)
    assert model.tokenise_target(texts) == slow(model, texts, target=True)
