"""Cutting a text into pieces a model can read, and putting the translations back together.

Lines stay lines, white space around them stays where it was, empty lines stay empty. Models are trained on
sentences, so a line is cut into its sentences if that is wanted. What is still too long for the model is cut
where a sentence might end, else between words, else anywhere.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

from kster.text.sentences import Span, clauses, sentences, stripped

# Chinese and Japanese: Han, kana, their punctuation and full-width forms.
_WITHOUT_SPACES = re.compile("[\u3000-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\uff60\U00020000-\U0003ffff]")


@dataclass(frozen=True, slots=True)
class Piece:
    """Something to translate and what stands before it.

    cut: it goes on with the line of the piece before; whether a space separates the translations then depends
        on their script. torn: it, or what it goes on with, is only a part of what was too long.
    """

    glue: str
    text: str
    cut: bool = False
    torn: bool = False


def split_text(
    text: str,
    fits: Callable[[str], bool],
    *,
    split_sentences: bool = False,
    is_whole: Callable[[int, int], bool] = lambda begin, end: False,
) -> tuple[list[Piece], str]:
    """Cut a text into pieces that fit; returns them and the white space after the last one.

    is_whole: asked about every line before it is cut, and about a text of several pieces, by where they begin
    and end; if it says yes, that is one piece. Joining glue and text of all pieces and the tail gives the
    input back.
    """
    pieces: list[Piece] = []
    glue = ""
    at = 0
    for line in text.splitlines(keepends=True):
        body = line.strip()
        if not body:
            glue += line
        else:
            start = line.index(body[0])
            is_whole_line = partial(is_whole, at + start, at + start + len(body))
            pieces += _pieces(glue + line[:start], body, fits, split_sentences, is_whole_line)
            glue = line[start + len(body) :]
        at += len(line)
    if len(pieces) > 1 and is_whole(0, len(text)):
        return [Piece("", text)], ""
    return pieces, glue


def glue_for(piece: Piece, before: str, joined: str, translation: str) -> str:
    """What goes between a translation and what was joined so far. before: what was translated before it."""
    if piece.cut:
        spaces_in_source = not _WITHOUT_SPACES.search(before[-1:] + piece.text[:1])
        spaces_here = not _WITHOUT_SPACES.search(joined[-1:] + translation[:1])
        if spaces_in_source != spaces_here:
            return " " if spaces_here else ""
    return piece.glue


def _pieces(
    glue: str,
    line: str,
    fits: Callable[[str], bool],
    split_sentences: bool,
    is_whole: Callable[[], bool],
) -> list[Piece]:
    whole = [Piece(glue, line)]
    if not split_sentences and fits(line):
        return whole
    spans = sentences(line)
    if (len(spans) == 1 and fits(line)) or is_whole():
        return whole
    parts: list[tuple[Span, bool]] = []
    if split_sentences:
        for begin, end in spans:
            own = _cut(line, [(begin, end)], fits)
            parts += [(part, len(own) > 1) for part in own]
    else:
        parts = [(part, True) for part in _cut(line, spans, fits)]
    (first, torn), *_ = parts
    pieces = [Piece(glue, line[slice(*first)], torn=torn)]
    for ((_, before), _), ((begin, end), torn) in pairwise(parts):
        pieces.append(Piece(line[before:begin], line[begin:end], cut=True, torn=torn))
    return pieces


def _cut(line: str, spans: list[Span], fits: Callable[[str], bool]) -> list[Span]:
    """Parts of a line that fit: as much of it together as does, at the best cuts there are."""
    parts: list[Span] = []
    at = 0
    while at < len(spans):
        begin, end = spans[at]
        if parts and fits(line[parts[-1][0] : end]):
            begin, _ = parts.pop()
        elif not fits(line[begin:end]):
            finer = clauses(line, begin, end)
            parts += _cut(line, finer, fits) if len(finer) > 1 else _halve(line, begin, end, fits)
            at += 1
            continue
        at = _last_that_fits(line, begin, spans, at, fits)
        parts.append((begin, spans[at][1]))
        at += 1
    return parts


def _last_that_fits(line: str, begin: int, spans: list[Span], at: int, fits: Callable[[str], bool]) -> int:
    """The last span that a part can reach and still fit, in few questions: ever longer steps, then
    shorter."""

    def goes_to(last: int) -> bool:
        return last < len(spans) and fits(line[begin : spans[last][1]])

    step = 1
    while goes_to(at + step):
        at += step
        step *= 2
    while step > 1:
        step //= 2
        if goes_to(at + step):
            at += step
    return at


def _halve(line: str, begin: int, end: int, fits: Callable[[str], bool]) -> list[Span]:
    if end - begin <= 1 or fits(line[begin:end]):
        return [(begin, end)]
    middle = (begin + end) // 2
    space = line.rfind(" ", begin, middle)
    cut = space if space > begin else middle
    halves = stripped(line, begin, cut), stripped(line, cut, end)
    return [part for b, e in halves if b < e for part in _halve(line, b, e, fits)]
