"""The part of a coded text that a model has to see.

Left out are tags, symbols and spaces around all of the text, and tags within words: of H<sub>2</sub>O the
model sees H2O. The number of a footnote, as in word<sup>1</sup>, is not part of the word: it is one code with
its tags.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from kster.text.codes import Code, CodedText, Token
from kster.text.symbols import is_symbol

_WORD = re.compile(r"\w+")
_NOTE = re.compile(r"[\W\d_]{1,12}")  # what may be a footnote's mark
_FORMULA = re.compile(r"(?:.*\W)?(?:\w|\w?[A-Z\d]\w?)", re.S)  # m², CO₂, x²: not so word¹


class _Folded(list[Token]):
    """The data of a code that stands for several tokens."""


class Core:
    """tokens: what is left of a text; `complete` puts around and into its translation what was left out."""

    def __init__(self, source: CodedText) -> None:
        self._prefix, folded, self._suffix = _without_edges(_folded(source.tokens))
        self._within = _within_words(folded)
        self._source = CodedText.of(folded)
        shown = (token for token in folded if id(token) not in self._within)
        self.tokens = CodedText.of(shown).tokens

    @property
    def with_codes_within(self) -> list[Token]:
        """The tokens with the codes within words, for callers that can place them."""
        return self._source.tokens

    def complete(self, translation: Sequence[Token]) -> CodedText | None:
        """The translation of all of the text; None if it lacks one of the words that have codes in them.

        translation: texts and all the codes of `tokens`, or of `with_codes_within`.
        """
        target = CodedText.of(translation)
        missing = self._within - {id(code) for _, code in target.codes}
        codes = list(target.codes)
        for place, code in self._source.codes:
            if id(code) in missing:
                if (found := _same_place(self._source.plain, place, target.plain)) is None:
                    return None
                codes.append((found, code))
        codes.sort(key=lambda placed: placed[0])
        tokens = CodedText(target.plain, tuple(codes)).tokens
        return CodedText.of([*self._prefix, *_unfolded(tokens), *self._suffix])


def _same_place(source: str, place: int, target: str) -> int | None:
    """A place within a word of the source in the same word of the translation."""
    word = next((w for w in _WORD.finditer(source) if w.start() <= place <= w.end()), None)
    if word is None:
        return None
    same = re.compile(rf"(?<!\w){re.escape(word[0])}(?!\w)")
    earlier = sum(1 for _ in same.finditer(source, 0, word.start()))
    found = [match.start() for match in same.finditer(target)]
    return found[earlier] + place - word.start() if earlier < len(found) else None


def _without_edges(tokens: list[Token]) -> tuple[list[Token], list[Token], list[Token]]:
    """What is before, in and behind the core: pairs around all of it, halves of pairs, and white space."""
    counts: dict[Any, int] = {}
    for token in tokens:
        if isinstance(token, Code) and token.kind != "alone":
            counts[token.pair] = counts.get(token.pair, 0) + 1

    def is_edge(token: Token) -> bool:
        if isinstance(token, str):
            return not token.strip()
        if token.kind == "alone":
            return isinstance(token.data, str) and is_symbol(token.data)
        return counts[token.pair] == 1

    begin, end = 0, len(tokens)
    while begin < end:
        first, last = tokens[begin], tokens[end - 1]
        if is_edge(first):
            begin += 1
        elif is_edge(last):
            end -= 1
        elif _is_pair(first, last):
            begin, end = begin + 1, end - 1
        else:
            break
    prefix, core, suffix = tokens[:begin], tokens[begin:end], tokens[end:]
    if core and isinstance(core[0], str):
        body = core[0].lstrip()
        prefix, core[0] = [*prefix, core[0][: len(core[0]) - len(body)]], body
    if core and isinstance(core[-1], str):
        body = core[-1].rstrip()
        suffix, core[-1] = [core[-1][len(body) :], *suffix], body
    return prefix, core, suffix


def _is_pair(first: Token, last: Token) -> bool:
    if isinstance(first, str) or isinstance(last, str):
        return False
    return first.kind == "open" and last.kind == "close" and first.pair == last.pair


def _within_words(tokens: Sequence[Token]) -> set[int]:
    """The ids of tags that begin or end within a word, and of those that belong to them."""
    pairs = set()
    text, waiting = "", []  # the text before, and the tags behind it
    for token in tokens:
        if isinstance(token, Code) and token.kind != "alone":
            waiting.append(token.pair)
        else:
            if isinstance(token, str) and text[-1:].isalnum() and token[:1].isalnum():
                pairs.update(waiting)
            text, waiting = token if isinstance(token, str) else "", []
    return {id(t) for t in tokens if isinstance(t, Code) and t.kind != "alone" and t.pair in pairs}


def _folded(tokens: list[Token]) -> list[Token]:
    """With `<sup>1</sup>` behind a word or a full stop as one standalone code."""
    folded: list[Token] = []
    at = 0
    while at < len(tokens):
        part = tokens[at : at + 3]
        before = folded[-1] if folded else ""
        if (
            len(part) == 3
            and _is_pair(part[0], part[2])
            and isinstance(part[1], str)
            and _NOTE.fullmatch(part[1])
            and isinstance(before, str)
            and before[-1:].strip()
            and not _FORMULA.fullmatch(before)
        ):
            folded.append(Code("alone", _Folded(part)))
            at += 3
        else:
            folded.append(tokens[at])
            at += 1
    return folded


def _unfolded(tokens: Sequence[Token]) -> list[Token]:
    unfolded: list[Token] = []
    for token in tokens:
        if isinstance(token, Code) and isinstance(token.data, _Folded):
            unfolded += token.data
        else:
            unfolded.append(token)
    return unfolded
