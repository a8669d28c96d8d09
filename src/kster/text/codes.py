"""A text with codes in it: tags, placeholders, images: what is not language, but must stay in its place.

`Save <b>%s</b> now` is the text "Save ", an opening code, a standalone code, a closing code and the text
" now". A document makes such a text of its own elements (`CodedText.of`), a string of what is recognised in
it (`kster.text.recognition`). Its translation has exactly the same codes: see `marks` and `projection`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Literal

OBJECT = "\ufffc"  # stands for a standalone code in `CodedText.plain` …
BREAK = "\u2028"  # … and for one that ends a line


class Written:
    """What a code in a string stands for, if that is not a plain string; `str` gives how it is written."""


@dataclass(frozen=True, slots=True, eq=False)
class Code:
    """Something in a text that is not language.

    kind: "open" and "close" are the ends of something around words; "alone" is anything else.
    data: what it stands for: the characters of a placeholder, or whatever a document needs to write it.
    pair: the same for an opening code and the closing one that belongs to it, and for no others.
    breaks: whether a line ends here, as at `<br>`: no sentence goes on behind it. Only of "alone".

    Two codes are the same only if they are one object: a text may have `%s` twice.
    """

    kind: Literal["open", "close", "alone"]
    data: Any
    pair: Any = None
    breaks: bool = False

    def __str__(self) -> str:
        """As it stands in a string; nothing for a document's element."""
        return str(self.data) if self.is_written else ""

    @property
    def is_written(self) -> bool:
        """Whether it is part of a string, and not a document's element."""
        return isinstance(self.data, str | Written)


class Fixed(str):
    """A text that was taught, and may have whatever codes."""

    __slots__ = ()


Token = str | Code
Placed = tuple[int, Code]  # a code and where it stands in `CodedText.plain`


@dataclass(frozen=True, slots=True)
class CodedText:
    """A text and its codes, in the order they are read.

    plain: the text, with one character for each standalone code (OBJECT or BREAK) and none for the others.
    codes: each with its place in `plain`: a standalone code is at its own character, others are before the
    character at their place. context: where it stands in a document, as segments of a memory name it.
    """

    plain: str
    codes: tuple[Placed, ...] = ()
    context: str | None = None

    @classmethod
    def of(cls, tokens: Iterable[Token], context: str | None = None) -> CodedText:
        plain: list[str] = []
        codes: list[Placed] = []
        at = 0
        for token in tokens:
            if isinstance(token, str):
                shown = token.replace(OBJECT, "\ufffd")  # it would be taken for a code
            else:
                codes.append((at, token))
                shown = "" if token.kind != "alone" else BREAK if token.breaks else OBJECT
            plain.append(shown)
            at += len(shown)
        return cls("".join(plain), tuple(codes), context)

    @property
    def tokens(self) -> list[Token]:
        """Texts and codes; no text is empty, and no two are neighbours."""
        tokens: list[Token] = []
        at = 0
        for place, code in self.codes:
            if place > at:
                tokens.append(self.plain[at:place])
            tokens.append(code)
            at = place + (code.kind == "alone")
        if at < len(self.plain):
            tokens.append(self.plain[at:])
        return tokens

    def __str__(self) -> str:
        """The string that it was made of; a document's elements are left out."""
        return "".join(map(str, self.tokens))

    def __len__(self) -> int:
        return len(self.plain)

    def cut(self, *places: int) -> list[CodedText]:
        """The parts between these places of `plain`, which ascend; every code is in exactly one of them.

        A closing code at a cut belongs to what is before it, an opening one to what follows.
        """
        parts: list[CodedText] = []
        begin = first = 0
        for end in (*places, len(self.plain)):
            last = first
            while last < len(self.codes) and _is_before(self.codes[last], end):
                last += 1
            if len(parts) == len(places):
                last = len(self.codes)
            own = tuple((place - begin, code) for place, code in self.codes[first:last])
            parts.append(CodedText(self.plain[begin:end], own))
            begin, first = end, last
        return parts

    @property
    def words(self) -> str:
        """The text alone."""
        standalone = {place for place, code in self.codes if code.kind == "alone"}
        return "".join(character for i, character in enumerate(self.plain) if i not in standalone)

    @property
    def is_prose(self) -> bool:
        """Whether there is anything to translate: a letter outside the codes."""
        return any(map(str.isalpha, self.words))


def _is_before(placed: Placed, cut: int) -> bool:
    place, code = placed
    return place < cut or (place == cut and code.kind == "close")


def is_nested(tokens: Sequence[Token], open_before: Sequence[Any] = ()) -> bool:
    """Whether everything opened is closed in turn.

    open_before: pairs that were opened in an earlier text, the innermost last; what is left open is closed in
    a later one.
    """
    around = list(open_before)
    for token in tokens:
        if isinstance(token, str) or token.kind == "alone":
            continue
        if token.kind == "open":
            around.append(token.pair)
        elif not around or around.pop() != token.pair:
            return False
    return True


def pairs(codes: Sequence[Placed]) -> Iterator[tuple[int | None, int | None]]:
    """Which codes belong together, as indices of `codes`: (opening, closing).

    None for the one that is not here. A standalone code is in no pair.
    """
    around: dict[Any, int] = {}
    for i, (_, code) in enumerate(codes):
        if code.kind == "open":
            around[code.pair] = i
        elif code.kind == "close":
            yield around.pop(code.pair, None), i
    for i in around.values():
        yield i, None


def between_tabs(text: str) -> list[Token]:
    """The columns of a line, and the tabs between them as codes."""
    parts = re.split(r"( *\t[ \t]*)", text)
    return [Code("alone", part, breaks=True) if i % 2 else part for i, part in enumerate(parts) if part]


def merged(tokens: Sequence[Token]) -> list[Token]:
    """With strings side by side joined into one, and without empty ones."""
    done: list[Token] = []
    for is_text, group in groupby(tokens, lambda token: isinstance(token, str)):
        some = list(group)
        done += ["".join(map(str, some))] if is_text else some
    return [token for token in done if token != ""]
