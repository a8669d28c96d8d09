"""Files translated whole: what is text in them is translated, everything else stays as it was.

A document is opened from bytes, lists its pieces of text, and writes itself with their translations.
What is translated already (PO, XLIFF, TMX) is left alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import PurePosixPath
from typing import Protocol

from kster.documents.encoded_text import HEAD, FileText
from kster.documents.html import HtmlText
from kster.documents.po import PoDocument
from kster.documents.word import DocxDocument
from kster.documents.xliff_tmx import TmxDocument, XliffDocument
from kster.errors import KsterError
from kster.formats.encoding import detect_encoding
from kster.text.inline import is_prose, storable


class Document(Protocol):
    """What `open_document` gives."""

    @property
    def pieces(self) -> list[str]: ...

    def again(self, translations: list[str]) -> list[str]:
        """What else to translate, now that the pieces are."""
        ...

    def with_translations(self, translations: list[str], more: Sequence[str] = ()) -> bytes:
        """more: the translations of `again`."""
        ...


def open_document(name: str, data: bytes, source: str, target: str) -> Document:
    """By the name's suffix. Raises KsterError for a kind that is not known and for a broken file."""
    suffix = PurePosixPath(name).suffix.lower()
    if suffix not in _OPENERS:
        raise KsterError(f"{name}: this kind of file is not supported; accepted: {', '.join(SUFFIXES)}")
    try:
        return _OPENERS[suffix](data, source, target)
    except KsterError as error:
        raise KsterError(f"{name}: {error}; nothing was translated") from error


def declared_source(document: Document) -> str | None:
    """The source language that a file in two languages says it has."""
    if isinstance(document, PoDocument | XliffDocument | TmxDocument):
        return document.declared_source
    return None


class TextDocument:
    """Plain text: each line with a word in it is a piece, line ends stay."""

    def __init__(self, data: bytes, source: str, target: str) -> None:
        self._file = FileText(data)
        self._lines = self._file.text.splitlines(keepends=True)

    @property
    def pieces(self) -> list[str]:
        return [line.strip() for line in self._lines if is_prose(line)]

    def again(self, translations: list[str]) -> list[str]:
        return []

    def with_translations(self, translations: list[str], more: Sequence[str] = ()) -> bytes:
        done = map(storable, translations)
        lines = (
            line.replace(line.strip(), next(done), 1) if is_prose(line) else line for line in self._lines
        )
        return self._file.encode("".join(lines))


class HtmlDocument:
    def __init__(self, data: bytes, source: str, target: str) -> None:
        self._html = HtmlText(_decode_html(data))
        self._html.declare(source, target)

    @property
    def pieces(self) -> list[str]:
        return self._html.pieces

    def again(self, translations: list[str]) -> list[str]:
        return self._html.again(translations)

    def with_translations(self, translations: list[str], more: Sequence[str] = ()) -> bytes:
        return self._html.with_translations(translations, more).encode("utf-8")


def _decode_html(data: bytes) -> str:
    """UTF-8 wherever it is; otherwise what the page declares."""
    try:
        return FileText(data).text
    except KsterError:
        declared = re.search(rb"""<meta[^>]+charset\s*=\s*["']?([\w-]+)""", data[:4096], re.I)
        if declared is None:
            raise
        encoding = detect_encoding(data[:HEAD], declared[1].decode())
        encoding = "cp1252" if encoding == "iso8859-1" else encoding  # as browsers take it
        try:
            return data.decode(encoding)
        except UnicodeDecodeError:
            raise KsterError(f"not {encoding} text, though it says so; save it as UTF-8") from None


_OPENERS: dict[str, Callable[[bytes, str, str], Document]] = {
    ".txt": TextDocument,
    ".html": HtmlDocument,
    ".htm": HtmlDocument,
    ".po": PoDocument,
    ".xlf": XliffDocument,
    ".xliff": XliffDocument,
    ".tmx": TmxDocument,
    ".docx": DocxDocument,
}
SUFFIXES = tuple(_OPENERS)
