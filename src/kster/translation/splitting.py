"""Cutting a text into pieces a model can read, and putting the translations back together.

Lines stay lines, white space around them stays where it was, empty lines stay empty. Only a line that is
too long for the model is cut, at sentence ends if it has any, else between words, else anywhere.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

_SENTENCE_END = re.compile(
    r"(?<=[.!?…])[\"'»”’)\]]*\s+"  # a space follows …
    r"|(?<=[。！？])(?![。！？])[」』”’）】〉》]*"  # … or none is needed
)
# Chinese and Japanese: Han, kana, their punctuation and full-width forms.
_WITHOUT_SPACES = re.compile("[\u3000-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\uff60\U00020000-\U0003ffff]")

Span = tuple[int, int]  # of a line: begin and end in characters


@dataclass(frozen=True, slots=True)
class Piece:
    """Something to translate and what stands before it.

    cut: it goes on with the line of the piece before; then the script of the translation has its say, too.
    """

    glue: str
    text: str
    cut: bool = False


def split_text(text: str, fits: Callable[[str], bool]) -> tuple[list[Piece], str]:
    """Cut a text into pieces that fit; returns them and the white space after the last one.

    Joining glue and text of all pieces and that tail gives the input back, but for the white space between
    sentences of a line that had to be cut.
    """
    pieces: list[Piece] = []
    glue = ""
    for line in text.splitlines(keepends=True):
        body = line.strip()
        if not body:
            glue += line
            continue
        start = line.index(body[0])
        glue += line[:start]
        spans = [(0, len(body))] if fits(body) else _cut(body, fits)
        pieces.append(Piece(glue, body[slice(*spans[0])]))
        for (_, before), (begin, end) in pairwise(spans):
            pieces.append(Piece(_between(body, before, begin), body[begin:end], cut=True))
        glue = line[start + len(body) :]
    return pieces, glue


def join_pieces(pieces: list[Piece], translations: list[str], tail: str) -> str:
    joined = ""
    for piece, translation in zip(pieces, translations, strict=True):
        meeting = joined[-1:] + translation[:1]
        spaceless = piece.cut and _WITHOUT_SPACES.search(meeting)
        joined += translation if spaceless else piece.glue + translation
    return joined + tail


def _between(line: str, before: int, begin: int) -> str:
    """What joins the translations of two parts of a line: nothing if the cut went through a word."""
    if before < begin:
        return " "
    sides = line[before - 1 : begin + 1]
    return "" if sides.isalnum() and not _WITHOUT_SPACES.search(sides) else " "


def _cut(line: str, fits: Callable[[str], bool]) -> list[Span]:
    """Parts of a line that fit: whole sentences together as long as they do."""
    parts: list[Span] = []
    for begin, end in _sentences(line):
        if parts and fits(line[parts[-1][0] : end]):
            parts[-1] = (parts[-1][0], end)
        else:
            parts.extend(_halve(line, begin, end, fits))
    return parts


def _sentences(line: str) -> list[Span]:
    """Cut behind each sentence end, closing quotes and brackets included."""
    cuts = [match.end() for match in _SENTENCE_END.finditer(line)]
    spans = (_stripped(line, begin, end) for begin, end in pairwise([0, *cuts, len(line)]))
    return [(begin, end) for begin, end in spans if begin < end]


def _halve(line: str, begin: int, end: int, fits: Callable[[str], bool]) -> list[Span]:
    if end - begin <= 1 or fits(line[begin:end]):
        return [(begin, end)]
    middle = (begin + end) // 2
    space = line.rfind(" ", begin, middle)
    cut = space if space > begin else middle
    halves = _stripped(line, begin, cut), _stripped(line, cut, end)
    return [part for b, e in halves if b < e for part in _halve(line, b, e, fits)]


def _stripped(line: str, begin: int, end: int) -> Span:
    """The same span without white space at its ends."""
    body = line[begin:end]
    begin += len(body) - len(body.lstrip())
    return begin, begin + len(body.strip())
