"""A paragraph of a Word document as a text with codes, and written again from a translation.

How words look is a code around them, like a link: "**Warning:** hot" is a code, "Warning:", its end, " hot".
What most of a text looks like needs none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from kster.documents.document import Text, is_prose, portions
from kster.documents.word_items import Item, Look, Piece, items_of
from kster.documents.xml_places import Element, XmlText
from kster.formats.xml import escape_text
from kster.text.characters import printable
from kster.text.codes import Code, Token, merged


@dataclass(frozen=True, slots=True, eq=False)
class _Data:
    """What a code stands for: parts of the file; look: of the words in it, if it says how they look."""

    pieces: tuple[Piece, ...] = ()
    look: Look | None = None


@dataclass(frozen=True, slots=True)
class _Float:
    """Marks that nobody sees, behind that share of a text's characters."""

    share: float
    pieces: tuple[Piece, ...]


class Paragraph:
    """`<w:p>`. Its `texts` are to be translated: none without a word, one, or several of very many codes.

    start, end: where they are written.
    """

    def __init__(self, xml: XmlText, element: Element) -> None:
        self._xml = xml
        properties = element.child("pPr")
        self.start = properties.end if properties is not None else element.inner
        self.end = element.inner_end
        self.texts: list[Text] = []
        items = items_of(xml, element)
        if not any(is_prose(item.text) for item in items if item.kind == "text"):
            return
        begin, end = _inner(items)
        self._before, self._behind = items[:begin], items[end:]
        self._looks = _usual_looks(items)
        inner = items[begin:end]
        self._outer = _around(self._before)  # what the text is in
        tokens, self._floats = _tokens(inner, self._looks, self._outer)
        self.texts = list(portions(tokens, Code))

    def written(self, translations: Sequence[Text]) -> str:
        parts = [self._piece(piece) for item in self._before for piece in item.pieces]
        looks = [self._looks[self._outer]]
        for token in _with_floats([token for text in translations for token in text], self._floats):
            if isinstance(token, str):
                parts.append(_run(looks[-1], escape_text(printable(token))))
                continue
            data: _Data = token.data
            parts += [self._piece(piece) for piece in data.pieces]
            if token.kind == "open":
                looks.append(data.look or looks[-1])
            elif token.kind == "close":
                looks.pop()
        parts += [self._piece(piece) for item in self._behind for piece in item.pieces]
        return "".join(parts)

    def _piece(self, piece: Piece) -> str:
        copied = self._xml.places.copied(piece.start, piece.end)
        return copied if piece.look is None else f"<w:r>{piece.look.properties}{copied}</w:r>"


def _run(look: Look, text: str) -> str:
    return f'<w:r>{look.properties}<w:t xml:space="preserve">{text}</w:t></w:r>' if text else ""


def _inner(items: list[Item]) -> tuple[int, int]:
    """Where the text begins and ends: without breaks, notes and floating marks at either end, and without
    what is around all of it."""
    begin, end = 0, len(items)
    outer = {"break", "float"}
    while True:
        first, last = items[begin], items[end - 1]
        if first.kind in outer or first.name == "note" or (first.kind == "text" and not first.text.strip()):
            begin += 1
        elif last.kind in outer or last.name == "note" or (last.kind == "text" and not last.text.strip()):
            end -= 1
        elif first.kind == "open" and last.kind == "close" and first.name == last.name:
            begin, end = begin + 1, end - 1
        else:
            return begin, end


def _around(items: Sequence[Item]) -> object:
    """The innermost of what these items open and do not close."""
    around: list[object] = [None]
    for item in items:
        if item.kind == "open":
            around.append(item.name)
        elif item.kind == "close":
            around.pop()
    return around[-1]


def _usual_looks(items: Sequence[Item]) -> dict[object, Look]:
    """How most of the text looks that is in something, by its name; None: in nothing."""
    counts: dict[object, Counter[str]] = {}
    looks: dict[str, Look] = {}
    around: list[object] = [None]
    for item in items:
        if item.kind == "open":
            around.append(item.name)
        elif item.kind == "close":
            around.pop()
        elif item.kind == "text" and item.text.strip():
            looks.setdefault(item.look.key, item.look)
            counts.setdefault(around[-1], Counter())[item.look.key] += len(item.text.strip())
    usual = {name: looks[count.most_common(1)[0][0]] for name, count in counts.items()}
    first = next(iter(usual.values()))
    return {name: usual.get(name, first) for name in (None, *(i.name for i in items if i.kind == "open"))}


def _tokens(
    items: Sequence[Item], usual: dict[object, Look], outer: object
) -> tuple[list[Token], list[_Float]]:
    """The text, with codes around words that do not look as usual, and what floats in it."""
    tokens: list[Token] = []
    floats: list[_Float] = []
    around = [outer]
    special: tuple[Look, object] | None = None  # the look that is open, and the pair of its codes
    size = sum(len(item.text) for item in items if item.kind == "text") or 1
    read = 0

    def end_look() -> None:
        nonlocal special
        if special is not None:
            space = ""
            if isinstance(last := tokens[-1], str):  # a space belongs to the words behind it
                tokens[-1] = last.rstrip()
                space = last[len(last.rstrip()) :]
            tokens.append(Code("close", _Data(), special[1]))
            if space:
                tokens.append(space)
            special = None

    for item in _with_floats_joined(items):
        if item.kind == "float":
            floats.append(_Float(read / size, item.pieces))
        elif item.kind == "text":
            read += len(item.text)
            plain, own = usual[around[-1]], special[0] if special else usual[around[-1]]
            if item.look.key != own.key and item.text.strip():
                is_word = any(map(str.isalnum, item.text))
                if is_word or item.look.key == plain.key:
                    end_look()
                if is_word and item.look.key != plain.key:
                    special = item.look, object()
                    tokens.append(Code("open", _Data(look=item.look), special[1]))
            tokens.append(item.text)
        elif item.kind == "alone":
            tokens.append(Code("alone", _Data(item.pieces)))
        else:
            end_look()
            if item.kind == "break":
                tokens.append(Code("alone", _Data(item.pieces), breaks=True))
            elif item.kind == "open":
                around.append(item.name)
                tokens.append(Code("open", _Data(item.pieces, usual[item.name]), item.name))
            else:
                around.pop()
                tokens.append(Code("close", _Data(item.pieces), item.name))
    end_look()
    return merged(tokens), floats


def _with_floats_joined(items: Sequence[Item]) -> Iterator[Item]:
    """With floating marks right before a code as a part of it: a deletion goes with what replaced it."""
    waiting: list[Item] = []
    for item in items:
        if item.kind == "float":
            waiting.append(item)
        elif waiting and item.kind in ("open", "alone", "break"):
            pieces = tuple(piece for own in waiting for piece in own.pieces)
            yield replace(item, pieces=pieces + item.pieces)
            waiting = []
        else:
            yield from waiting
            yield item
            waiting = []
    yield from waiting


def _with_floats(text: Text, floats: Sequence[_Float]) -> list[Token]:
    """With the floating marks after about as much text as they were, between words."""
    size = sum(len(token) for token in text if isinstance(token, str))
    waiting = [(round(own.share * size), own.pieces) for own in reversed(floats)]
    done: list[Token] = []
    read = 0
    for token in text:
        if not isinstance(token, str):
            done.append(token)
            continue
        written = 0
        while waiting and waiting[-1][0] <= read + len(token):
            place, pieces = waiting.pop()
            gap = _nearest_gap(token, written, max(place - read, written))
            done += [token[written:gap], Code("alone", _Data(pieces))]
            written = gap
        done.append(token[written:])
        read += len(token)
    rest = [Code("alone", _Data(pieces)) for _, pieces in reversed(waiting)]
    return [token for token in [*done, *rest] if token != ""]


def _nearest_gap(text: str, written: int, place: int) -> int:
    """The space, or the end of the text, that is nearest to a place."""
    before, behind = max(text.rfind(" ", written, place + 1), written), text.find(" ", place)
    behind = behind if behind >= 0 else len(text)
    return before if place - before < behind - place else behind
