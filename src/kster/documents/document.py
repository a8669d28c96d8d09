"""What every document is: units of text to translate, and the bytes that their translations make.

A unit is a sequence of strings and inline codes. Formats say where in a file the units stand and how a
translation is written there (`Places.add`); everything between these places is copied as it was.
"""

from __future__ import annotations

import math
import re
import time
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import AnyStr, Generic, Literal, Protocol, TypeVar

from kster.documents.encoded_text import EncodedText
from kster.errors import FormatError
from kster.text.characters import printable
from kster.text.codes import Code, Token, merged
from kster.text.recognition import recognise

T = TypeVar("T")
Text = Sequence[Token]
Write = Callable[[Sequence[Text]], str]

MOST_CHARACTERS = 64_000_000
"""Of a file's text, unpacked. A book of a thousand pages is 3 million characters."""
MOST_ELEMENTS = 1_000_000
"""Tags of a file's markup, and values of other formats: seconds of work, and memory for their places."""
_MAY_BE_CODE = re.compile(r"[%$<>{}\[\]&@\\/]|__")
DEEPEST = 256  # elements in elements, lists in lists


_deadline: ContextVar[float] = ContextVar("deadline", default=math.inf)


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """In this block, a document that takes longer than this to read or write is refused."""
    before = _deadline.set(time.monotonic() + seconds)
    try:
        yield
    finally:
        _deadline.reset(before)


def require_time() -> None:
    """Called for every element and place. Raises FormatError when the time is over."""
    if time.monotonic() > _deadline.get():
        raise FormatError("it takes too long to read and write; split it into smaller files")


@dataclass(frozen=True, slots=True)
class Unit:
    """A text to translate, and where it stands, for people (`line 12`, `messages.open`) and for memories."""

    text: tuple[Token, ...]
    where: str = ""
    context: str | None = None


class Document(Protocol):
    """What `open_document` gives."""

    declared_source: str | None
    """The source language that a file in two languages says it has."""

    @property
    def units(self) -> Sequence[Unit]: ...

    def written(self, translations: Sequence[Text]) -> bytes:
        """The file with these translations of `units`, one each, in its own encoding."""
        ...


@dataclass(slots=True)
class _Place:
    start: int
    end: int
    texts: int  # how many units it has
    write: Write
    fills: bool


class Places(Generic[AnyStr]):
    """A file's text (or its UTF-8 bytes) and the places in it that translations change.

    A place may lie within a code of another one, as the `title` of a link in a sentence does.
    """

    def __init__(self, content: AnyStr) -> None:
        self.content: AnyStr = content
        self.units: list[Unit] = []
        self._places: list[_Place] = []
        self._changes: list[tuple[int, int, Callable[[], str]]] = []  # in order, while being written
        self._starts: list[int] = []

    def add(
        self,
        start: int,
        end: int,
        texts: Sequence[Text],
        write: Write,
        where: str = "",
        *,
        context: str | None = None,
        fills: bool = False,
    ) -> None:
        """Note units that stand between start and end; `write` turns their translations into what comes
        there.

        context: as segments of a memory name it. fills: whether to write even if the translations equal the
        source, as for an empty target.
        """
        require_time()
        self.units += [Unit(tuple(text), where, context) for text in texts]
        self._places.append(_Place(start, end, len(texts), write, fills))

    def change(self, start: int, end: int, new: str, *, before_others: bool = False) -> None:
        """Put something else there, whatever the translations are. before_others: before what else comes
        there."""
        place = _Place(start, end, 0, lambda _: new, True)
        self._places.insert(0 if before_others else len(self._places), place)

    def copied(self, start: int, end: int) -> str:
        """A part of the file with the changes that lie within it."""
        parts: list[str] = []
        done = start
        i = bisect_left(self._starts, start)
        while i < len(self._starts) and (self._starts[i] < end or end == len(self.content)):
            require_time()
            begin, stop, new = self._changes[i]
            if begin >= done and stop <= end:
                parts += [self._original(done, begin), new()]
                done = stop
            i += 1
        parts.append(self._original(done, end))
        return "".join(parts)

    def markup(self, text: Text, escape: Callable[[str], str]) -> str:
        """A text as it is written: strings escaped, codes as in the file, where `data` says they stand."""
        return "".join(
            self.copied(*token.data) if isinstance(token, Code) else escape(printable(token))
            for token in text
        )

    def written(self, translations: Sequence[Text]) -> str:
        if len(translations) != len(self.units):
            raise ValueError(f"{len(translations)} translations of {len(self.units)} units")
        changes: list[tuple[int, int, Callable[[], str]]] = []
        at = 0
        for place in self._places:
            before = [unit.text for unit in self.units[at : at + place.texts]]
            own = [tuple(_joined(text)) for text in translations[at : at + place.texts]]
            at += place.texts
            if place.fills or own != before:
                changes.append((place.start, place.end, partial(place.write, own)))
        # What is inserted comes before what stands there, the outer before the inner.
        changes.sort(key=lambda change: (change[0], change[1] > change[0], -change[1]))
        self._changes, self._starts = changes, [change[0] for change in changes]
        return self.copied(0, len(self.content))

    def _original(self, start: int, end: int) -> str:
        part = self.content[start:end]
        return part.decode("utf-8") if isinstance(part, bytes) else part


@dataclass
class TextDocument:
    """A document that is a text with places in it; formats fill `places` in."""

    file: EncodedText
    places: Places[str]
    declared_source: str | None = None
    errors: str = "strict"  # how characters are written that the encoding does not have

    @property
    def units(self) -> Sequence[Unit]:
        return self.places.units

    def written(self, translations: Sequence[Text]) -> bytes:
        return self.file.encode(self.places.written(translations), self.errors)


@dataclass(frozen=True, slots=True)
class Half:
    """A piece of markup on its way to be a code: where it stands, and what it opens or closes, if it does."""

    span: tuple[int, int]
    role: Literal["open", "close", "alone"] = "alone"
    name: object = None
    breaks: bool = False


MOST_CODES = 200  # of a unit; what has more is cut in several


def coded(pieces: Sequence[str | Half]) -> list[list[Token]]:
    """Texts with codes: what is opened and closed in turn is a pair, the rest stands alone.

    One text, or several where there are very many codes.
    """
    return [_paired(part) for part in portions(pieces, Half)]


def portions(pieces: Sequence[T], code: type) -> Iterator[Sequence[T]]:
    """Parts with no more codes than a unit may have; code: the type of these."""
    start = codes = 0
    for i, piece in enumerate(pieces):
        codes += isinstance(piece, code)
        if codes > MOST_CODES:
            yield pieces[start:i]
            start, codes = i, 1
    yield pieces[start:]


def _paired(pieces: Sequence[str | Half]) -> list[Token]:
    tokens: list[Token] = []
    around: list[tuple[object, int]] = []  # what is open, and where
    for piece in pieces:
        if isinstance(piece, str):
            tokens.append(piece)
            continue
        if piece.role == "open":
            around.append((piece.name, len(tokens)))
        elif piece.role == "close" and any(name == piece.name for name, _ in around):
            while around[-1][0] != piece.name:
                around.pop()
            begin, pair = around.pop()[1], object()
            opening = tokens[begin]
            assert isinstance(opening, Code)
            tokens[begin] = Code("open", opening.data, pair)
            tokens.append(Code("close", piece.span, pair))
            continue
        tokens.append(Code("alone", piece.span, breaks=piece.breaks))
    return merged(tokens)


def _joined(text: Text) -> list[Token]:
    """With codes that were recognised in strings as strings again, and strings side by side as one."""
    return merged([str(token) if isinstance(token, str) or str(token) else token for token in text])


def has_prose(text: Sequence[object]) -> bool:
    """Whether there is a word to translate."""
    return any(isinstance(token, str) and is_prose(token) for token in text)


def is_prose(text: str) -> bool:
    """Whether there is a letter outside of placeholders, tags and addresses."""
    if not any(map(str.isalpha, text)):
        return False
    return not _MAY_BE_CODE.search(text) or recognise(text).is_prose


def plain(text: Text) -> str:
    """A text without markup; codes that were recognised in it are strings again."""
    return printable("".join(map(str, text)))


def require_size(characters: int, most: int = MOST_CHARACTERS) -> None:
    if characters > most:
        raise FormatError(f"{characters:,} characters of text; at most {most:,} are accepted")


class Counter:
    """Counts what a file is made of, and refuses it when that is too much."""

    def __init__(self, what: str = "elements") -> None:
        self._what = what
        self._count = 0

    def add(self, depth: int = 0, line: int | None = None) -> None:
        self._count += 1
        require_time()
        where = f"line {line}: " if line else ""
        if self._count > MOST_ELEMENTS:
            raise FormatError(f"{where}more than {MOST_ELEMENTS:,} {self._what}")
        if depth > DEEPEST:
            raise FormatError(f"{where}more than {DEEPEST} {self._what} in another")
