"""Which words of the source the decoder looks at while it predicts a token.

Read off its attention: where it looks in the source says what the next token translates (`alignment.py`).
Words are what stands between spaces; each has a number in its sentence, and all that is no word shares one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import torch
from torch import Tensor

from kster.model.frozen import FrozenModel
from kster.model.network import Network

WORDS = 63  # numbers there are: a mask of words is one integer of 64 bits, without its sign
NO_WORD = WORDS - 1  # the number of punctuation, ends of sentences, languages, and words after the 62nd
DEEP = 4  # decoder layers
SPACE, BYTE = "▁", "<0x"  # what begins a word, and a character that a vocabulary does not have


class SourceWords(NamedTuple):
    """The words of a source, and the number of the one that each of its tokens belongs to."""

    words: list[str]
    numbers: list[int]


def source_words(model: FrozenModel, ids: Iterable[int]) -> SourceWords:
    """ids: of a tokenised source. What comes before the first space is a language, or nothing.

    A word that is written with bytes cannot be read, and is "".
    """
    words: list[str] = []
    numbers: list[int] = []
    special = model.tokenizer.special_ids
    for token in ids:
        piece = "" if token in special else model.tokenizer.source_token(token)
        if piece.startswith(SPACE):
            words.append("")
        piece = piece.removeprefix(SPACE)
        if words:
            words[-1] += piece
        is_word = any(map(str.isalnum, piece)) and 0 < len(words) <= NO_WORD
        numbers.append(len(words) - 1 if is_word else NO_WORD)
    return SourceWords(["" if BYTE in word else word for word in words[:NO_WORD]], numbers)


def telling_layer(network: Network) -> int:
    """The decoder layer whose attention says best what is translated: the last, in deep ones the last but
    one."""
    layers = len(network.decoder)
    return layers - (1 if layers < DEEP else 2)


def attention(queries: Tensor, keys: Tensor, mask: Tensor | None) -> Tensor:
    """(s, h, l, S) float32: how much each of l positions looks at each source token; rows sum to one.

    queries: (s, h, l, d/h); keys: (s, h, S, d/h); mask: (s, 1, 1, S) added to scores, None for none.
    """
    scores = queries.float() @ keys.float().transpose(-1, -2) * queries.shape[-1] ** -0.5  # (s, h, l, S)
    if mask is not None:
        scores = scores + mask.float()
    return scores.softmax(-1)


def by_word(attended: Tensor, numbers: Tensor) -> Tensor:
    """(s, l, WORDS) float32: how much of the attention goes to each word.

    attended: (s, l, S); numbers: (s, S) int64, of the word each source token belongs to.
    """
    sentences, length, _ = attended.shape
    sums = torch.zeros((sentences, length, WORDS), device=attended.device)
    return sums.scatter_add_(2, numbers[:, None].expand(-1, length, -1), attended)
