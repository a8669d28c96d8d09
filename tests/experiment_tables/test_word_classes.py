"""Which words the memory decided."""

from __future__ import annotations

import pytest
import torch
from experiments.word_classes import coarse, decided_tokens, join_words, shares

from kster.memory import Neighbours
from kster.model import ForcedSentence
from kster.smoothing import Smoothing


def test_tokens_become_words_and_punctuation_stands_alone() -> None:
    tokens = ["▁Das", "▁Wasser", "tank", ",", "▁(", "neu", ")", "."]
    decided = [False, False, True, False, False, True, False, True]
    words = join_words(tokens, decided)
    assert words == [["Das", 0], ["Wassertank", 1], [",", 0], ["(", 0], ["neu", 1], [")", 0], [".", 1]]


def test_a_token_is_decided_when_it_is_the_memorys_favourite_but_not_the_base_models() -> None:
    tokens = torch.tensor([5, 5, 5])
    nothing = torch.zeros(3)
    forced = ForcedSentence(
        keys=torch.zeros(3, 2),
        tokens=tokens,
        log_probs=torch.tensor([-2.0, -0.1, -2.0]),
        hidden=torch.zeros(3, 2),
        log_normaliser=nothing,
        mean_log_prob=nothing,
        max_log_prob=torch.tensor([-0.1, -0.1, -0.1]),  # the second token is the base model's favourite, too
        focus=torch.zeros(3, 63),
    )
    neighbours = Neighbours(
        distances=torch.ones(3, 3),
        values=torch.tensor([[5, 5, 7], [5, 5, 7], [7, 7, 5]]),
        ids=torch.zeros(3, 3, dtype=torch.int64),
        keys=torch.zeros(3, 3, 2),
    )
    weights = (
        torch.tensor([0.3, 0.3, 0.4]).log().expand(3, 3)
    )  # 5 has 0.6 in the first two rows, 0.4 in the last
    smoothing = Smoothing(weights, torch.ones(3), nothing, nothing)
    assert decided_tokens(forced, neighbours, smoothing) == [True, False, False]


@pytest.mark.parametrize(
    ("language", "sentence", "tags"),
    [
        ("de", "Die roten Häuser stehen .", ["determiner", "adjective", "noun", "verb", "punctuation"]),
        ("en", "The red houses stand .", ["determiner", "adjective", "noun", "verb", "punctuation"]),
    ],
)
def test_words_are_counted_by_part_of_speech(language: str, sentence: str, tags: list[str]) -> None:
    words = [[word, int(word.startswith(("roten", "red")))] for word in sentence.split()]
    assert shares([words], language) == {tag: (int(tag == "adjective"), 1) for tag in tags}


def test_pronominal_adverbs_are_adverbs() -> None:
    sentence = [[word, 1] for word in ("Er", "hat", "dafür", "gesorgt", ".")]
    assert shares([sentence], "de")["adverb"] == (1, 1)
    assert coarse("PWAV", "de") == "adverb"


def test_an_unknown_tag_is_other() -> None:
    assert coarse("ITJ", "de") == "other"
