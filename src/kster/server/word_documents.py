"""Word documents to be translated: text is replaced, and pictures, links, fields and layout stay."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from kster.errors import KsterError
from kster.server.inline_text import storable

MAX_UNPACKED = 200_000_000  # bytes a .docx may unpack to
_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_XML_SPACE = "{http://www.w3.org/XML/1998/namespace}space"


class DocxDocument:
    """A paragraph is a piece, as is every link in it; its translation looks like its first words."""

    def __init__(self, data: bytes, source: str, target: str) -> None:
        try:
            with zipfile.ZipFile(io.BytesIO(data)) as packed:
                if sum(item.file_size for item in packed.infolist()) > MAX_UNPACKED:
                    raise KsterError(f"it unpacks to more than {MAX_UNPACKED:,} bytes")
            self._document = _open(data)
        except KsterError:
            raise
        except Exception as error:  # python-docx and zipfile have no common one
            raise KsterError(f"not a Word document ({type(error).__name__})") from None
        texts = [_Text(runs) for paragraph in _paragraphs(self._document) for runs in _runs(paragraph)]
        self._texts = [text for text in texts if any(map(str.isalpha, text.text))]

    @property
    def pieces(self) -> list[str]:
        return [text.text.strip() for text in self._texts]

    def again(self, translations: list[str]) -> list[str]:
        return []

    def with_translations(self, translations: list[str], more: Sequence[str] = ()) -> bytes:
        for text, translation in zip(self._texts, translations, strict=True):
            text.replace(storable(translation))
        out = io.BytesIO()
        self._document.save(out)
        return out.getvalue()


class _Text:
    """Neighbouring runs (`<w:r>`), whose text is one piece."""

    def __init__(self, runs: list[Any]) -> None:
        self._runs = runs
        self.text = "".join(run.text for run in runs)

    def replace(self, translation: str) -> None:
        bare = self.text.strip()
        whole = self.text.replace(bare, translation, 1)
        for run in self._runs:
            own = [node for node in run if _is_text(node)]
            if not own:
                continue
            place = run.index(own[0])
            for node in own:
                run.remove(node)
            run[place:place] = list(_elements(run, whole))
            whole = ""  # all of it is in the first run with text


def _open(data: bytes) -> Any:
    """A document whose notes can be read and changed, too: python-docx would only carry them along."""
    import docx
    from docx.opc.constants import CONTENT_TYPE
    from docx.opc.part import PartFactory, XmlPart

    for notes in (CONTENT_TYPE.WML_FOOTNOTES, CONTENT_TYPE.WML_ENDNOTES):
        PartFactory.part_type_for[notes] = XmlPart
    return docx.Document(io.BytesIO(data))


def _paragraphs(document: Any) -> Iterator[Any]:
    """`<w:p>` of the body with its tables and text boxes, of headers, footers and notes."""
    from docx.opc.constants import RELATIONSHIP_TYPE

    yield from document.element.body.iter(f"{_W}p")
    kinds = (
        RELATIONSHIP_TYPE.HEADER,
        RELATIONSHIP_TYPE.FOOTER,
        RELATIONSHIP_TYPE.FOOTNOTES,
        RELATIONSHIP_TYPE.ENDNOTES,
    )
    for relation in document.part.rels.values():
        if relation.reltype in kinds and not relation.is_external:
            yield from relation.target_part.element.iter(f"{_W}p")


def _runs(paragraph: Any) -> Iterator[list[Any]]:
    """The runs of a paragraph with text, those of a link apart; not what was deleted, nor text boxes' own."""

    def home(run: Any) -> Any:
        """The link a run is in, or the paragraph."""
        return next(node for node in run.iterancestors() if node.tag in (f"{_W}hyperlink", f"{_W}p"))

    def is_own(run: Any) -> bool:
        return next(run.iterancestors(f"{_W}p")) is paragraph and not any(
            True for _ in run.iterancestors(f"{_W}del")
        )

    own = [run for run in paragraph.iter(f"{_W}r") if is_own(run) and any(map(_is_text, run))]
    for _, runs in groupby(own, home):
        yield list(runs)


def _is_text(node: Any) -> bool:
    if node.tag == f"{_W}br":
        return (
            node.get(f"{_W}type", "textWrapping") == "textWrapping"
        )  # other breaks are of pages and columns
    return node.tag in (f"{_W}t", f"{_W}tab", f"{_W}cr", f"{_W}noBreakHyphen", f"{_W}ptab")


def _elements(run: Any, text: str) -> Iterator[Any]:
    """Text as Word has it: tabs and line breaks are elements."""
    for number, line in enumerate(text.split("\n")):
        if number:
            yield run.makeelement(f"{_W}br")
        for place, part in enumerate(line.split("\t")):
            if place:
                yield run.makeelement(f"{_W}tab")
            if part:
                element = run.makeelement(f"{_W}t", {_XML_SPACE: "preserve"})
                element.text = part
                yield element
