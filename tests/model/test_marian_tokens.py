"""The fast way through Marian's tokenizer gives the tokenizer's own ids."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from by_transformers import tokenizer_of
from kster.model import BaseModel
from kster.model.tokenizer import MarianTokens

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
    """By the library; but for sources, hard spaces are like others."""
    plain = [re.sub("[\xa0\u202f]", " ", text) for text in texts]
    given = {"text_target": texts} if target else {"text": plain}
    return tokenizer_of(model)(**given, truncation=False)["input_ids"]


def test_odd_texts_have_the_tokenizers_ids(model: BaseModel) -> None:
    assert model.tokenise_source(ODD) == slow(model, ODD, target=False)
    assert model.tokenise_target(ODD) == slow(model, ODD, target=True)


@settings(max_examples=60, deadline=None)
@given(texts=st.lists(st.text(max_size=40), min_size=1, max_size=5))
def test_any_text_has_the_tokenizers_ids(model: BaseModel, texts: list[str]) -> None:
    assert model.tokenise_source(texts) == slow(model, texts, target=False)
    assert model.tokenise_target(texts) == slow(model, texts, target=True)


def test_no_text_has_two_spaces_in_a_row(model: BaseModel) -> None:
    """Models write a lone ▁ before signs of their own: "5  Euro"."""
    (ids,) = model.tokenise_target(["a house"])
    space = next(i for i in range(model.vocabulary_size) if model.token_text(i) == "▁")
    assert model.detokenise([[ids[0], space, *ids[1:]]]) == model.detokenise([ids])


def test_an_apostrophe_that_the_model_lacks_is_taught_as_the_one_it_has(tmp_path: Path) -> None:
    """OPUS-MT knows no ’: a French memory that has it would teach "limage"."""
    shipped = Path(__file__).parents[2] / "models/en-de"
    for name in ("source.spm", "target.spm", "tokenizer_config.json"):
        shutil.copy(shipped / name, tmp_path)
    vocabulary = json.loads((shipped / "vocab.json").read_text())
    without = {piece: number for piece, number in vocabulary.items() if "’" not in piece}
    (tmp_path / "vocab.json").write_text(json.dumps(without))
    tokens = MarianTokens(tmp_path)
    assert tokens.text(tokens.target_ids(["L’image de l’eau"])[0]) == "L'image de l'eau"
    assert tokens.target_ids(["“a”"]) == MarianTokens(shipped).target_ids(["“a”"])  # those it has stay
