"""What a model writes that reads as a code, alone or with what is beside it, but is none of the source.

A "<" in one sentence and a "->" in the next make a tag; "%" before "d" makes a placeholder. A program that
reads the translation would take them for its own.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence

from kster.text.codes import Code, Fixed, Token
from kster.text.recognition import code_spans

_ELEMENT = "<\n>"  # stands for a document's element or a message: no code reaches over it
_SIGN = re.compile(r"[^\w\s]|_")
_WORD = re.compile(r"[^\W\d_]{3}")
_ROUNDS = 6  # what is left after the second is taken away


def made_up(tokens: Iterable[Token]) -> list[tuple[int, int]]:
    """Where codes are in a translation that are none of its tokens, as it reads in one string.

    Symbols do not count: no program reads them. Nor does what an element of the source is around.
    """
    text, own = _shown_with_own(tokens)
    ends = {end for _, end in own}
    found = []
    for kind, begin, end in code_spans(text):
        i = bisect_right(own, (begin, len(text))) - 1
        is_own = i >= 0 and end <= own[i][1]
        is_around = kind == "element" and i >= 0 and own[i][0] == begin and end in ends
        if kind not in ("symbol", "object") and not is_own and not is_around:
            found.append((begin, end))
    return found


def without_made_up(tokens: Sequence[Token], source: str) -> list[Token]:
    """A translation with spaces in whatever reads as a code and is none, or without its signs.

    source: its words; the translation needs only signs that it has.
    """
    done = list(tokens)
    for i in range(_ROUNDS):
        if not (spans := made_up(done)):
            break
        done = _mended(done, spans, source, i)
    return done


def _shown_with_own(tokens: Iterable[Token]) -> tuple[str, list[tuple[int, int]]]:
    parts, own, at = [], [], 0
    for token in tokens:
        parts.append(_shown(token))
        if _is_own(token):
            own.append((at, at + len(parts[-1])))
        at += len(parts[-1])
    return "".join(parts), own


def _mended(
    tokens: Sequence[Token], spans: Sequence[tuple[int, int]], source: str, times: int
) -> list[Token]:
    """times: how often this was done before."""
    done: list[Token] = []
    at = 0
    for token in tokens:
        end = at + len(_shown(token))
        touched = [(first - at, last - at) for first, last in spans if first < end and at < last]
        if any(first < 0 for first, _ in touched) and (_is_own(token) or _is_own(done[-1])):
            done.append(" ")
        if isinstance(token, str) and not _is_own(token):
            for first, last in reversed(touched):
                token = _without_code(token, first, last, source, times)
        done.append(token)
        at = end
    return done


def _without_code(text: str, first: int, last: int, source: str, times: int) -> str:
    """A text without the code between two places; it begins before the text if the first is negative."""
    before, part, after = text[: max(first, 0)], text[max(first, 0) : last], text[last:]
    if times == 0 and first < 0:
        return text  # without its beginning, or with a space behind that, it may be none
    if times == 0 and part[0] in source:  # it is in its place: 100 % sure
        return f"{before}{part[0]} {part[1:]}{after}"
    if times == 0 and re.search(r"\s", part):  # words of a sentence
        part = f" {part[1:]}"
    elif times < 2 and _WORD.search(part) and not part.startswith("&"):
        part = _SIGN.sub(" ", part)
    else:
        part = " "
    part = part.lstrip() if not before or before[-1].isspace() else part
    return before + (part.rstrip() if after and not after[0].isalnum() else part) + after


def _is_own(token: Token) -> bool:
    return isinstance(token, Code | Fixed)


def _shown(token: Token) -> str:
    return token if isinstance(token, str) else token.data if isinstance(token.data, str) else _ELEMENT
