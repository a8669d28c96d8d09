"""Word documents to be translated: the text of paragraphs is replaced, and every other byte of XML stays."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Sequence
from xml.parsers import expat

from kster.documents.document import Counter, Text, Unit, plain, require_size
from kster.documents.word_paragraphs import Paragraph
from kster.documents.xml_places import Element, XmlText
from kster.errors import FormatError

MOST_UNPACKED = 400_000_000  # bytes of all files in a .docx, of which pictures are most
MOST_FILES = 10_000
LONGEST_QUOTED = 40  # characters that a paragraph is named by, as it has no number
_CONTENT_TYPES = "[Content_Types].xml"
_BODIES = ("document.main+xml", "document.macroEnabled.main+xml", "template.main+xml")
_KINDS = (*_BODIES, "header+xml", "footer+xml", "footnotes+xml", "endnotes+xml")


class WordDocument:
    """The body with its tables and text boxes, headers, footers and notes. A paragraph is a unit."""

    declared_source: str | None = None

    def __init__(self, data: bytes, source: str, target: str) -> None:
        self._data = data
        self._parts: dict[str, XmlText] = {}
        counter = Counter()
        try:
            with zipfile.ZipFile(io.BytesIO(data)) as packed:
                _require_size(packed)
                for name in _parts_with_text(packed):
                    require_size(packed.getinfo(name).file_size)
                    self._parts[name] = part = XmlText(packed.read(name), counter)
                    part.read("", ("p",), lambda element, part=part: _look(part, element))  # type: ignore[misc]
        # zipfile's: RuntimeError for an encrypted part, NotImplementedError for an unknown way of packing.
        except (zipfile.BadZipFile, KeyError, EOFError, NotImplementedError, RuntimeError, expat.ExpatError):
            raise FormatError("not a Word document") from None

    @property
    def units(self) -> Sequence[Unit]:
        return [unit for part in self._parts.values() for unit in part.places.units]

    def written(self, translations: Sequence[Text]) -> bytes:
        new: dict[str, bytes] = {}
        at = 0
        for name, part in self._parts.items():
            end = at + len(part.places.units)
            new[name] = part.written(translations[at:end])
            at = end
        out = io.BytesIO()
        with zipfile.ZipFile(io.BytesIO(self._data)) as packed, zipfile.ZipFile(out, "w") as packing:
            if all(packed.read(name) == part for name, part in new.items()):
                return self._data
            for item in packed.infolist():
                packing.writestr(item, new.get(item.filename) or packed.read(item))
        return out.getvalue()


def _require_size(packed: zipfile.ZipFile) -> None:
    items = packed.infolist()
    if len(items) > MOST_FILES:
        raise FormatError(f"it has {len(items):,} files in it; at most {MOST_FILES:,} are accepted")
    if (size := sum(item.file_size for item in items)) > MOST_UNPACKED:
        raise FormatError(f"it unpacks to {size:,} bytes; at most {MOST_UNPACKED:,} are accepted")


def _parts_with_text(packed: zipfile.ZipFile) -> list[str]:
    """The names of the files that have paragraphs in them, the body first."""
    found: list[tuple[int, str]] = []

    def note(_: str, attributes: dict[str, str]) -> None:
        kind = next((i for i, k in enumerate(_KINDS) if attributes.get("ContentType", "").endswith(k)), None)
        if kind is not None and "PartName" in attributes:
            found.append((kind, attributes["PartName"].removeprefix("/")))

    types = packed.getinfo(_CONTENT_TYPES)
    if types.file_size > 10_000_000:
        raise FormatError(f"its {_CONTENT_TYPES} has {types.file_size:,} bytes")
    parser = expat.ParserCreate()
    parser.StartElementHandler = note
    parser.Parse(packed.read(types), True)
    if not found or min(found)[0] >= len(_BODIES):
        raise FormatError("not a Word document")
    return [name for _, name in sorted(found)]


def _look(part: XmlText, element: Element) -> None:
    """Note a paragraph, unless it was deleted."""
    if element.name != "w:p" or any(around.local in ("del", "moveFrom") for around in element.around()):
        return
    paragraph = Paragraph(part, element)
    if paragraph.texts:
        where = f"the paragraph “{plain(paragraph.texts[0])[:LONGEST_QUOTED].strip()}”"
        part.places.add(paragraph.start, paragraph.end, paragraph.texts, paragraph.written, where)
