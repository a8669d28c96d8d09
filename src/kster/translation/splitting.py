"""Cutting a text into pieces a model can read, and putting the translations back together.

Lines stay lines, white space around them stays where it was, empty lines stay empty. Only a line that is
too long for the model is cut, at sentence ends if it has any, else between words, else anywhere.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

_SENTENCE_END = re.compile(r"(?<=[.!?…])[\"'»”’)\]]*\s+|(?<=[。！？])")


@dataclass(frozen=True, slots=True)
class Piece:
    """Something to translate (or not: an empty piece is kept as it is) and what stands before it."""

    glue: str
    text: str


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
        for part in [body] if fits(body) else _cut(body, fits):
            pieces.append(Piece(glue, part))
            glue = " "
        glue = line[start + len(body) :]
    return pieces, glue


def join_pieces(pieces: list[Piece], translations: list[str], tail: str) -> str:
    return "".join(p.glue + t for p, t in zip(pieces, translations, strict=True)) + tail


def _cut(line: str, fits: Callable[[str], bool]) -> list[str]:
    """A line as parts that fit: whole sentences packed together as long as they do."""
    parts: list[str] = []
    for sentence in filter(None, (s.strip() for s in _sentences(line))):
        if parts and fits(f"{parts[-1]} {sentence}"):
            parts[-1] = f"{parts[-1]} {sentence}"
        elif fits(sentence):
            parts.append(sentence)
        else:
            parts.extend(_halve(sentence, fits))
    return parts


def _sentences(line: str) -> list[str]:
    """Cut behind each sentence end, closing quotes and brackets included."""
    cuts = [match.end() for match in _SENTENCE_END.finditer(line)]
    return [line[a:b] for a, b in zip([0, *cuts], [*cuts, len(line)], strict=True)]


def _halve(text: str, fits: Callable[[str], bool]) -> list[str]:
    if len(text) <= 1 or fits(text):
        return [text]
    middle = len(text) // 2
    space = text.rfind(" ", 0, middle)
    cut = space if space > 0 else middle
    halves = text[:cut].strip(), text[cut:].strip()
    return [part for half in halves if half for part in _halve(half, fits)]
