"""Files translated whole: what is text in them is translated, everything else stays as it was.

A document is opened from bytes, lists its pieces of text, and writes itself with their translations.
What is translated already (PO, XLIFF, TMX) is left alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import PurePosixPath
from typing import Protocol

from kster.errors import KsterError
from kster.formats.encoding import detect_encoding
from kster.server.html_text import HtmlText
from kster.server.placeholders import are_kept, mended, with_marks
from kster.server.word_documents import DocxDocument
from kster.server.xml_documents import TmxDocument, XliffDocument


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


def decode(data: bytes) -> str:
    encoding = detect_encoding(data[:65536])
    try:
        return data.decode(encoding)
    except (UnicodeDecodeError, LookupError):
        raise KsterError(f"not {encoding} text; save it as UTF-8") from None


class TextDocument:
    """Plain text: each line is a piece, line ends stay."""

    def __init__(self, data: bytes, source: str, target: str) -> None:
        self._lines = decode(data).lstrip("\ufeff").splitlines(keepends=True)

    @property
    def pieces(self) -> list[str]:
        return [line.strip() for line in self._lines if line.strip()]

    def again(self, translations: list[str]) -> list[str]:
        return []

    def with_translations(self, translations: list[str], more: Sequence[str] = ()) -> bytes:
        done = iter(translations)
        return "".join(
            line.replace(line.strip(), next(done), 1) if line.strip() else line for line in self._lines
        ).encode("utf-8")


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
        return decode(data)
    except KsterError:
        declared = re.search(rb"""<meta[^>]+charset\s*=\s*["']?([\w-]+)""", data[:4096], re.I)
        if declared is None:
            raise
        encoding = detect_encoding(data[:4096], declared[1].decode())
        encoding = "cp1252" if encoding == "iso8859-1" else encoding  # as browsers take it
        try:
            return data.decode(encoding)
        except UnicodeDecodeError:
            raise KsterError(f"not {encoding} text, though it says so; save it as UTF-8") from None


class PoDocument:
    """Untranslated and fuzzy entries are filled in; the others stay."""

    def __init__(self, data: bytes, source: str, target: str) -> None:
        import polib

        self._target = target
        try:
            # polib takes a text for a file name unless it has a line break.
            self._catalogue = polib.pofile(decode(data) + "\n")
        except (OSError, UnicodeError, ValueError, IndexError) as error:
            raise KsterError(f"not a PO catalogue ({' '.join(str(error).split())[:200]})") from None
        self._entries = [
            entry
            for entry in self._catalogue
            if not entry.obsolete and not entry.translated() and entry.msgid
        ]

    @property
    def pieces(self) -> list[str]:
        return [text for entry in self._entries for text in (entry.msgid, entry.msgid_plural) if text]

    def again(self, translations: list[str]) -> list[str]:
        """What has lost a placeholder or a tag."""
        both = zip(self.pieces, translations, strict=True)
        return [with_marks(piece).text for piece, done in both if not are_kept(piece, done)]

    def with_translations(self, translations: list[str], more: Sequence[str] = ()) -> bytes:
        rest = iter(more)
        done = iter(
            [
                first if are_kept(piece, first) else mended(piece, first, next(rest, first))
                for piece, first in zip(self.pieces, translations, strict=True)
            ]
        )
        for entry in self._entries:
            singular = next(done)
            if entry.msgid_plural:
                plural = next(done)
                forms = sorted(entry.msgstr_plural) or [0, 1]
                entry.msgstr_plural = {form: plural if form else singular for form in forms}
            else:
                entry.msgstr = _same_ends(entry.msgid, singular)
            entry.flags = [flag for flag in entry.flags if flag != "fuzzy"]
            entry.previous_msgctxt = entry.previous_msgid = entry.previous_msgid_plural = None
        # A template says CHARSET and no language, and any other encoding is no longer true.
        self._catalogue.metadata["Content-Type"] = "text/plain; charset=UTF-8"
        if not self._catalogue.metadata.get("Language", "").strip():
            self._catalogue.metadata["Language"] = self._target.replace("-", "_")
        return str(self._catalogue).encode("utf-8")


def _same_ends(source: str, translation: str) -> str:
    """gettext demands that both begin and end with a line break, or neither."""
    translation = translation.strip("\n")
    return ("\n" if source.startswith("\n") else "") + translation + ("\n" if source.endswith("\n") else "")


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
