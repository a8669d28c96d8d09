"""From tokens back to what a person reads: words of a translation, and where a token stands in a text."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

SPACE = "▁"  # SentencePiece's mark for a word's beginning
_BYTE = re.compile(r"<0x([0-9A-F]{2})>")
REACH = 64  # bytes behind something a tokenizer has normalised in which the next word is looked for
_SPACE = re.compile(
    rb"\s|\xc2\xa0|\xe2\x80[\x80-\x8a\xaf]|\xe3\x80\x80"
)  # hard and narrow ones, too, in UTF-8
_ALONE = set('.,;:!?…()[]{}"«»„“”¿¡。，、！？：；（）「」')  # marks that are not part of the word beside them


@dataclass(frozen=True, slots=True)
class Word:
    """A stretch of the translation that is shown and explained as one."""

    text: str
    after_space: bool
    first: int  # its tokens: first … last, last excluded
    last: int


def words_of(tokens: Sequence[str], end_token: str) -> list[Word]:
    """Group tokens into words. The end of sentence is a word of its own with the text ⏎."""
    starts = [i for i in range(len(tokens)) if i == 0 or _begins_word(tokens, i, end_token)]
    words = []
    for first, last in pairwise([*starts, len(tokens)]):
        own = tokens[first:last]
        text = "⏎" if own[0] == end_token else _text(own)
        words.append(Word(text, first > 0 and own[0].startswith(SPACE), first, last))
    return words


def placed_words(
    tokens: Sequence[str], text: str, end_token: str
) -> Iterator[tuple[Word, int | None, int | None]]:
    """The words that are in a text made of these tokens, each with where it stands there: begin and end, None
    where the tokenizer's text differs. A word that got a capital there has it here, too."""
    cursor = 0
    for word in words_of(tokens, end_token):
        if not word.text or tokens[word.first] == end_token:
            continue
        capital = word.text[0].upper() + word.text[1:]
        start = text.find(word.text, cursor)
        at = text.find(capital, cursor) if capital != word.text else -1
        if at >= 0 and (start < 0 or at < start) and not text[cursor:at].strip():
            word, start = replace(word, text=capital), at
        if start < 0:
            yield word, None, None
        else:
            cursor = start + len(word.text)
            yield word, start, cursor


def _begins_word(tokens: Sequence[str], i: int, end_token: str) -> bool:
    token, before = tokens[i], tokens[i - 1]
    if token.startswith(SPACE) or end_token in (token, before):
        return True
    if _BYTE.fullmatch(token) or _BYTE.fullmatch(before):
        return False  # a character may be spread over several byte tokens
    return _is_wide(token) or _stands_alone(token) or _stands_alone(before)


def _is_wide(token: str) -> bool:
    """Chinese, Japanese and Korean characters: no spaces tell words apart."""
    return unicodedata.east_asian_width(token[0]) in "WF"


def _stands_alone(token: str) -> bool:
    return bool(token.lstrip(SPACE)) and all(character in _ALONE for character in token.lstrip(SPACE))


def _bytes(token: str) -> bytes:
    match = _BYTE.fullmatch(token)
    return bytes([int(match[1], 16)]) if match else token.replace(SPACE, " ").encode()


def _text(tokens: Sequence[str]) -> str:
    return b"".join(_bytes(token) for token in tokens).decode(errors="replace").strip()


def token_spans(tokens: Sequence[str], text: str) -> list[tuple[int, int] | None]:
    """Where each token stands in the text it was made from: (begin, end) in characters.

    Tokenizers normalise some characters (ligatures, accents, soft hyphens). A token that is not found there
    has None, and so have those behind it up to one that begins a word that is found.
    """
    raw = text.encode()
    at, is_lost = 0, False
    spans: list[tuple[int, int] | None] = []
    for token in tokens:
        piece = _bytes(token)
        begin = at
        if piece.startswith(b" "):
            piece = piece.lstrip(b" ")
            while space := _SPACE.match(raw, at):
                at = space.end()
            if piece and not raw.startswith(piece, at) and (word := _word_at(raw, piece, at)) is not None:
                at = word
            is_lost = is_lost and not raw.startswith(piece, at)
        is_lost = is_lost or not raw.startswith(piece, at)
        if is_lost:
            spans.append(None)
            continue
        spans.append((at if piece else begin, at + len(piece)))  # a lone ▁ is the space itself
        at += len(piece)
    return [
        None if span is None else (_characters(raw, span[0]), _characters(raw, span[1], up=True))
        for span in spans
    ]


def _word_at(raw: bytes, piece: bytes, at: int) -> int | None:
    """Where a word that begins with a piece follows, not far from a place."""
    for space in _SPACE.finditer(raw, at, at + REACH):
        if raw.startswith(piece, space.end()):
            return space.end()
    return None


def _characters(raw: bytes, at: int, up: bool = False) -> int:
    """How many characters the first `at` bytes hold; a cut one counts for the end of a span only."""
    whole = len(raw[:at].decode(errors="ignore"))
    cut = at < len(raw) and raw[at] & 0xC0 == 0x80
    return whole + (cut and up)
