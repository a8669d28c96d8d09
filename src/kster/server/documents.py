"""Files translated whole: what is text in them is translated, everything else stays as it was.

A document is opened from bytes, lists its pieces of text, and writes itself with their translations.
What is translated already (PO, XLIFF, TMX) is left alone.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Iterator
from pathlib import PurePosixPath
from typing import Any, Protocol

from kster.errors import KsterError
from kster.formats.encoding import detect_encoding
from kster.server.html_text import HtmlText
from kster.server.xml_documents import TmxDocument, XliffDocument

MAX_UNPACKED = 200_000_000  # bytes a .docx may unpack to


class Document(Protocol):
    """What `open_document` gives."""

    @property
    def pieces(self) -> list[str]: ...

    def with_translations(self, translations: list[str]) -> bytes: ...


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

    def with_translations(self, translations: list[str]) -> bytes:
        done = iter(translations)
        return "".join(
            line.replace(line.strip(), next(done), 1) if line.strip() else line for line in self._lines
        ).encode("utf-8")


class HtmlDocument:
    def __init__(self, data: bytes, source: str, target: str) -> None:
        self._html = HtmlText(decode(data))

    @property
    def pieces(self) -> list[str]:
        return self._html.pieces

    def with_translations(self, translations: list[str]) -> bytes:
        return self._html.with_translations(translations).encode("utf-8")


class PoDocument:
    """Untranslated and fuzzy entries are filled in; the others stay."""

    def __init__(self, data: bytes, source: str, target: str) -> None:
        import polib

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

    def with_translations(self, translations: list[str]) -> bytes:
        done = iter(translations)
        for entry in self._entries:
            singular = next(done)
            if entry.msgid_plural:
                plural = next(done)
                forms = sorted(entry.msgstr_plural) or [0, 1]
                entry.msgstr_plural = {form: plural if form else singular for form in forms}
            else:
                entry.msgstr = _same_ends(entry.msgid, singular)
            entry.flags = [flag for flag in entry.flags if flag != "fuzzy"]
        return str(self._catalogue).encode("utf-8")


class DocxDocument:
    """Word: a paragraph is a piece. Its translation takes on the look of the paragraph's first words."""

    def __init__(self, data: bytes, source: str, target: str) -> None:
        import docx

        try:
            with zipfile.ZipFile(io.BytesIO(data)) as packed:
                if sum(item.file_size for item in packed.infolist()) > MAX_UNPACKED:
                    raise KsterError(f"it unpacks to more than {MAX_UNPACKED:,} bytes")
            self._document = docx.Document(io.BytesIO(data))
        except KsterError:
            raise
        except Exception as error:  # python-docx and zipfile have no common one
            raise KsterError(f"not a Word document ({type(error).__name__})") from None
        self._paragraphs = [p for p in _paragraphs(self._document) if p.text.strip()]

    @property
    def pieces(self) -> list[str]:
        return [paragraph.text for paragraph in self._paragraphs]

    def with_translations(self, translations: list[str]) -> bytes:
        for paragraph, translation in zip(self._paragraphs, translations, strict=True):
            runs = [run for run in paragraph.runs if run.text]
            if not runs:
                paragraph.text = translation
                continue
            runs[0].text = translation
            for run in runs[1:]:
                run.text = ""
        out = io.BytesIO()
        self._document.save(out)
        return out.getvalue()


def _paragraphs(document: Any) -> Iterator[Any]:
    """Of the body, of tables within it, of headers and footers."""
    places = [document]
    for section in document.sections:
        places += [place for place in (section.header, section.footer) if not place.is_linked_to_previous]
    while places:
        place = places.pop(0)
        yield from place.paragraphs
        seen = set()
        for table in place.tables:
            for row in table.rows:
                for cell in row.cells:
                    if cell._tc not in seen:  # a merged cell is listed once for each place it covers
                        seen.add(cell._tc)
                        places.append(cell)


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
