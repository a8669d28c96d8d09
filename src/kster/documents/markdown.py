"""Markdown: the text of paragraphs, headings, lists, quotations and tables.

markdown-it finds the blocks and what is in a line of text; its tokens are found again in the file, so that
code, addresses, HTML, front matter and every other character stay as they are.
"""

from __future__ import annotations

import html
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

from kster.documents.document import (
    Counter,
    Half,
    Places,
    Text,
    TextDocument,
    coded,
    has_prose,
    is_prose,
    plain,
    require_size,
)
from kster.documents.encoded_text import EncodedText
from kster.documents.html import EMPTY
from kster.text.wrapping import Paragraph

if TYPE_CHECKING:
    from markdown_it.token import Token

MOST_CHARACTERS = 5_000_000  # of a file; the parser takes about a microsecond a character
_FRONT_MATTER = re.compile(r"(---|\+\+\+)[ \t]*\r?\n.*?\n\1[ \t]*(?:\r?\n|\Z)", re.S)
_LINK_END = re.compile(r"\](?:\((?:[^()\\]|\\.|\((?:[^()\\]|\\.)*\))*\)|\[[^\]]*\])?")
_TITLE = re.compile(  # of a link
    r"""\s(?:"((?:[^"\\\n]|\\.)+)"|'((?:[^'\\\n]|\\.)+)'|\(((?:[^()\\\n]|\\.)+)\))[ \t]*\)\Z"""
)
_ESCAPED = re.compile(r"\\([^\w\s])|(&#?\w+;)")
_CODE = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)", re.S)
_SPECIAL = re.compile(r"[\\`*\[\]]|<(?=[A-Za-z/!?])|(?<!\w)_|_(?!\w)|&(?=#?\w+;)")
_NOTE = re.compile(r"(\[\^[^\]\s]+\]:?)")  # of a footnote, or where it is called
_TASK = re.compile(r"\[[ xX]\][ \t]+")
_BLOCK_START = re.compile(r"(?:#{1,6}|[-+*>=|]+|\d{1,9}[.)]|~{3,})(?=\s|$)")


@dataclass(frozen=True, slots=True)
class _Lines:
    """A text of lines, each with its place in the file; prefix: what comes before all but the first."""

    text: str
    starts: list[int]  # in `text` …
    places: list[int]  # … and in the file
    prefix: str

    def place(self, at: int) -> int:
        line = bisect_right(self.starts, at) - 1
        return self.places[line] + at - self.starts[line]


def open_markdown(data: bytes, source: str, target: str) -> TextDocument:
    from markdown_it import MarkdownIt

    file = EncodedText(data)
    require_size(len(file.text), MOST_CHARACTERS)
    places = Places(file.text)
    matter = _FRONT_MATTER.match(file.text)
    hidden = matter.end() if matter else 0
    # The parser takes other characters for line ends, too: what it sees must have the file's lines.
    seen = re.sub(r"[^\n]", "", file.text[:hidden]) + re.sub(r"\r(?!\n)|\x00", " ", file.text[hidden:])
    lines = file.text.split("\n")
    starts = [0, *accumulate(len(line) + 1 for line in lines)]
    counter = Counter("blocks")
    cursor: dict[int, int] = {}  # how far a line was read: rows of tables have several texts
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"]).disable("text_join")
    around = ""  # the last block that was opened, but for paragraphs
    for token in parser.parse(seen):
        counter.add()
        if token.type == "inline" and token.map and is_prose(token.content):
            line = token.map[0]
            if around == "list_item_open" and (task := _TASK.match(token.content)):
                (token,) = parser.parseInline(token.content[task.end() :])
            found = _find(token.content, line, lines, starts, cursor)
            if found is not None:
                _add(places, found, token, f"line {line + 1}", file.line_end)
        around = around if token.type == "paragraph_open" else token.type
    return TextDocument(file, places)


def _find(
    content: str, first: int, lines: list[str], starts: list[int], cursor: dict[int, int]
) -> _Lines | None:
    """Where a text stands; None where the parser changed it beyond recognition."""
    own = content.split("\n")
    positions: list[int] = []
    for number, part in enumerate(own, first):
        line = lines[number].rstrip() if number < len(lines) else ""
        bare = part.rstrip()
        at = len(line) - len(bare) if line.endswith(bare) and number not in cursor else -1
        if at < 0 or (len(own) == 1 and "|" in line):
            at = line.find(bare, cursor.get(number, 0))
        if at < 0:
            return None
        cursor[number] = at + len(bare)
        positions.append(starts[number] + at)
    begins = [0, *accumulate(len(part) + 1 for part in own)][:-1]
    prefix = lines[first + 1][: positions[1] - starts[first + 1]] if len(own) > 1 else ""
    return _Lines(content, begins, positions, prefix)


def _add(places: Places[str], found: _Lines, token: Token, where: str, line_end: str) -> None:
    pieces = _pieces(found, token.children or [])
    is_read = pieces is not None  # else all of it is text as it is written
    pieces = pieces or [found.text.replace("\n", " ")]
    if not has_prose(pieces):
        return
    start, end = found.place(0), found.place(len(found.text.rstrip()) - 1) + 1
    width = max(len(line.rstrip("\r")) for line in places.content[start:end].split("\n")) + len(found.prefix)
    is_broken = len(found.starts) > 1 and not any(isinstance(p, Half) and p.breaks for p in pieces)
    shape = Paragraph(0, 0, "", width if is_broken else 0, found.prefix, found.prefix, line_end)

    def write(texts: Sequence[Text]) -> str:
        text = "".join(places.markup(own, _escape if is_read else str) for own in texts)
        text = "\\" + text if _BLOCK_START.match(text) and not _BLOCK_START.match(found.text) else text
        # No line may begin with what would begin a list or a heading.
        kept = re.sub(rf" (?={_BLOCK_START.pattern})", "\0", text)
        return shape.wrapped(kept).replace("\0", " ")

    places.add(start, end, coded(pieces), write, where)
    for piece in pieces:
        if isinstance(piece, Half) and piece.role == "close":
            _add_title(places, piece, where)


def _add_title(places: Places[str], link: Half, where: str) -> None:
    """What a link or a picture says when it is pointed at: `[word](address "title")`."""
    start, end = link.span
    title = _TITLE.search(places.content[start:end])
    if title is None or title.lastindex is None:
        return
    text = _ESCAPED.sub(lambda sign: sign[1] or html.unescape(sign[2]), title[title.lastindex])
    quotes = "()" if title[3] else '"' if title[1] else "'"

    def write(texts: Sequence[Text]) -> str:
        return re.sub(rf"[{quotes}\\]|&(?=#?\w+;)", lambda sign: "\\" + sign[0], plain(texts[0]))

    if is_prose(text):
        begin, stop = title.span(title.lastindex)
        places.add(start + begin, start + stop, [[text]], write, where)


def _pieces(found: _Lines, children: Sequence[Token]) -> list[str | Half] | None:
    """Texts and markup; None where the parser's tokens cannot be found again."""
    at = 0
    pieces: list[str | Half] = []
    for child in _flat(children):
        end, piece = _piece(found, at, child)
        if end is None:
            return None
        if child.type == "text":
            pieces += _with_notes(found, at, child.content)
        else:
            pieces.append(piece)
        at = end
    return pieces if at >= len(found.text.rstrip()) else None


def _with_notes(found: _Lines, at: int, text: str) -> Iterator[str | Half]:
    """A text with what calls footnotes as markup."""
    for i, part in enumerate(_NOTE.split(text)):
        if part:
            yield _half(found, at, at + len(part)) if i % 2 else part
        at += len(part)


def _flat(children: Sequence[Token]) -> Iterator[Token]:
    """With pictures as something around their descriptions."""
    for child in children:
        if child.type == "image":
            opening, closing = child.copy(), child.copy()
            opening.type, closing.type = "image_open", "image_close"
            yield opening
            yield from _flat(child.children or [])
            yield closing
        else:
            yield child


def _piece(found: _Lines, at: int, child: Token) -> tuple[int | None, str | Half]:
    """A token's text or markup, and where it ends; None: not found there."""
    text = found.text
    match child.type:
        case "text":
            return at + len(child.content) if text.startswith(child.content, at) else None, child.content
        case "html_inline":
            end = at + len(child.content) if text.startswith(child.content, at) else None
            tag = re.match(r"<(/?)([A-Za-z]\w*)[^>]*(?<!/)>", child.content)
            role = "alone" if tag is None or tag[2].lower() in EMPTY else "close" if tag[1] else "open"
            return end, _half(found, at, end, role, tag[2] if tag else "")
        case "text_special":
            return at + len(child.markup) if text.startswith(child.markup, at) else None, child.content
        case "softbreak":
            space = re.compile(r"[ \t]*\n[ \t]*").match(text, at)
            return space.end() if space else None, " "
        case "hardbreak":
            space = re.compile(r"(?:\\|[ \t]*)\n[ \t]*").match(text, at)
            return space.end() if space else None, _half(found, at, space and space.end(), breaks=True)
        case "code_inline":
            code = _CODE.match(text, at)
            return code.end() if code else None, _half(found, at, code and code.end())
        case "link_open" | "image_open" if child.markup != "autolink":
            sign = "![" if child.type == "image_open" else "["
            end = at + len(sign) if text.startswith(sign, at) else None
            return end, _half(found, at, end, "open", child.type[:-5])
        case "link_close" | "image_close" if child.markup != "autolink":
            link = _LINK_END.match(text, at)
            return link.end() if link else None, _half(
                found, at, link and link.end(), "close", child.type[:-6]
            )
        case "link_open" | "link_close":
            sign = "<" if child.nesting == 1 else ">"
            end = at + 1 if text.startswith(sign, at) else None
            return end, _half(found, at, end)
        case _ if child.nesting and child.markup:
            end = at + len(child.markup) if text.startswith(child.markup, at) else None
            role = "open" if child.nesting == 1 else "close"
            return end, _half(found, at, end, role, child.tag)
    return None, ""


def _half(
    found: _Lines, at: int, end: int | None, role: str = "alone", name: str = "", *, breaks: bool = False
) -> Half:
    span = (found.place(at), found.place(end - 1) + 1) if end is not None and end > at else (0, 0)
    return Half(span, role, name, breaks)  # type: ignore[arg-type]


def _escape(text: str) -> str:
    """So that no character of a text is taken for markup."""
    return _SPECIAL.sub(lambda sign: "\\" + sign[0], text)
