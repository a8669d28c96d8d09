"""Which files can be translated, and how each is opened."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import PurePosixPath

from kster.documents.android import AndroidDocument
from kster.documents.apple_strings import open_strings
from kster.documents.document import Document
from kster.documents.html import open_html
from kster.documents.json_strings import open_json
from kster.documents.markdown import open_markdown
from kster.documents.plain_text import open_text
from kster.documents.po import open_po
from kster.documents.properties import open_properties
from kster.documents.subtitles import open_subtitles
from kster.documents.word import WordDocument
from kster.documents.xcstrings import StringCatalogue
from kster.documents.xliff_tmx import TmxDocument, XliffDocument
from kster.errors import FormatError, KsterError

_OPENERS: dict[str, Callable[[bytes, str, str], Document]] = {
    ".txt": open_text,
    ".html": open_html,
    ".htm": open_html,
    ".xhtml": open_html,
    ".po": open_po,
    ".pot": open_po,
    ".xlf": XliffDocument,
    ".xliff": XliffDocument,
    ".tmx": TmxDocument,
    ".docx": WordDocument,
    ".md": open_markdown,
    ".markdown": open_markdown,
    ".json": open_json,
    ".arb": open_json,
    ".xml": lambda data, source, target: _xml_kind(data)(data, source, target),
    ".strings": open_strings,
    ".xcstrings": StringCatalogue,
    ".properties": open_properties,
    ".srt": open_subtitles,
    ".vtt": open_subtitles,
}
SUFFIXES = tuple(_OPENERS)
_XML_KINDS: dict[bytes, Callable[[bytes, str, str], Document]] = {
    b"xliff": XliffDocument,
    b"tmx": TmxDocument,
    b"html": open_html,
}


def open_document(name: str, data: bytes, source: str, target: str) -> Document:
    """A file's units, and how to make a file of their translations.

    name: its suffix says what kind of file it is. source: `auto` where it is not known.
    Raises KsterError for an unknown kind, a broken file, and one that is too large.
    """
    suffix = PurePosixPath(name).suffix.lower()
    if suffix not in _OPENERS:
        raise FormatError(f"{name}: this kind of file is not supported; accepted: {', '.join(SUFFIXES)}")
    try:
        return _OPENERS[suffix](data, source, target)
    except KsterError as error:
        raise FormatError(f"{name}: {error}; nothing was translated") from error


def _xml_kind(data: bytes) -> Callable[[bytes, str, str], Document]:
    """What `.xml` is, by its first element: Android's resources, or another kind under this name."""
    root = re.search(rb"<(?:\w+:)?(\w+)[\s>]", data[:10_000])
    return _XML_KINDS.get(root[1].lower() if root else b"", AndroidDocument)
