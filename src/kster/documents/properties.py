"""Java's `.properties`: the values of `key = value`, over several lines if these end in a backslash."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kster.documents.document import Counter, Places, Text, TextDocument, is_prose, plain, require_size
from kster.documents.encoded_text import EncodedText
from kster.errors import FormatError, KsterError

_LINE = re.compile(
    r"[ \t\f]*(?:[#!][^\r\n]*|(?P<key>(?:[^\s\\=:]|\\.)+)(?:[ \t\f]*[=:][ \t\f]*|[ \t\f]+|(?=[\r\n]|\Z))"
    r"(?P<value>(?:[^\\\r\n]|\\(?:\r\n|[\s\S]))*))?(?:\r\n|\r|\n|\Z)"
)
_CONTINUED = re.compile(r"\\(?:\r\n|\r|\n)[ \t\f]*")
_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|[^untrf\\])")


def open_properties(data: bytes, source: str, target: str) -> TextDocument:
    """In UTF-8, or else in Latin-1, as Java read them for twenty years."""
    try:
        file = EncodedText(data)
    except KsterError:
        file = EncodedText(data, "iso-8859-1")
    require_size(len(file.text))
    in_ascii = file.text.isascii()  # then others are written as \uXXXX, which every Java reads
    places = Places(file.text)
    counter = Counter("lines")

    def write(texts: Sequence[Text]) -> str:
        text = plain(texts[0]).replace("\n", r"\n").strip()
        return "".join(c if c.isascii() or (not in_ascii and file.holds(c)) else _escaped(c) for c in text)

    at = 0
    while at < len(file.text):
        line = _LINE.match(file.text, at)
        if line is None or line.end() == at:
            number = file.text.count("\n", 0, at) + 1
            raise FormatError(f"line {number}: not a property such as key = value")
        counter.add()
        value = _ESCAPE.sub(_meant, _CONTINUED.sub("", line["value"] or "")).rstrip()
        if is_prose(value):
            start, end = line.span("value")
            end -= len(line["value"]) - len(line["value"].rstrip())
            places.add(start, end, [[value]], write, line["key"])
        at = line.end()
    return TextDocument(file, places)


def _meant(escape: re.Match[str]) -> str:
    return chr(int(escape[1][1:], 16)) if escape[1][0] == "u" else escape[1]


def _escaped(character: str) -> str:
    utf16 = character.encode("utf-16-be").hex().upper()
    return "".join(f"\\u{utf16[i : i + 4]}" for i in range(0, len(utf16), 4))
