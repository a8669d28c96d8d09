"""Marian's tokenizer without its detours: the same ids, about five times as fast.

`MarianTokenizer` walks through every sentence piece by piece in Python. SentencePiece itself takes a list of
texts and uses all cores; what is left is a look in the vocabulary. Text that the tokenizer treats specially
(a special token written out, a language code) is left to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

WORTH_THREADS = 64  # texts; for a list SentencePiece starts a thread on every core, which takes a millisecond


class MarianTokens:
    """Token ids of one side of a `MarianTokenizer`, end of sentence included."""

    def __init__(self, tokenizer: Any, *, target: bool) -> None:
        self.tokenizer, self.target = tokenizer, target
        self.pieces = tokenizer.spm_target if target else tokenizer.spm_source
        own = target and tokenizer.separate_vocabs
        self.vocabulary: dict[str, int] = tokenizer.target_encoder if own else tokenizer.encoder
        self.unknown = self.vocabulary[tokenizer.unk_token]
        self.end = [tokenizer.eos_token_id]
        self.special = tuple(tokenizer.added_tokens_encoder)

    def ids(self, texts: Sequence[str]) -> list[list[int]]:
        plain = [not self._is_special(text) for text in texts]
        fast = iter(self._fast([text for text, easy in zip(texts, plain, strict=True) if easy]))
        return [next(fast) if easy else self._slow(text) for text, easy in zip(texts, plain, strict=True)]

    def _is_special(self, text: str) -> bool:
        return text.startswith(">>") or any(token in text for token in self.special)

    def _fast(self, texts: list[str]) -> list[list[int]]:
        if not texts:
            return []
        find, unknown, end = self.vocabulary.get, self.unknown, self.end
        if len(texts) < WORTH_THREADS:
            rows = [self.pieces.encode(text, out_type=str) for text in texts]
        else:
            rows = self.pieces.encode(texts, out_type=str)
        return [[find(piece, unknown) for piece in row] + end for row in rows]

    def _slow(self, text: str) -> list[int]:
        given = {"text_target": [text]} if self.target else {"text": [text]}
        return list(self.tokenizer(**given, truncation=False)["input_ids"][0])
