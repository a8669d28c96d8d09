"""Word documents to be translated: text is replaced, and pictures, links, fields and layout stay."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator, Sequence
from typing import Any

from kster.documents.word_paragraphs import Paragraph
from kster.documents.word_runs import W
from kster.errors import KsterError
from kster.text.inline import again, first_round, put_all

MAX_UNPACKED = 200_000_000  # bytes a .docx may unpack to


class DocxDocument:
    """A paragraph is a piece, or each part of it between tabs and line breaks."""

    def __init__(self, data: bytes, source: str, target: str) -> None:
        try:
            with zipfile.ZipFile(io.BytesIO(data)) as packed:
                if sum(item.file_size for item in packed.infolist()) > MAX_UNPACKED:
                    raise KsterError(f"it unpacks to more than {MAX_UNPACKED:,} bytes")
            self._document = _open(data)
            self._paragraphs = [Paragraph(element) for element in list(_paragraphs(self._document))]
        except KsterError:
            raise
        except Exception as error:  # python-docx and zipfile have no common one
            raise KsterError(f"not a Word document ({type(error).__name__})") from None
        self._texts = [text for paragraph in self._paragraphs for text in paragraph.texts]

    @property
    def pieces(self) -> list[str]:
        return [piece for text in self._texts for piece in first_round(text)]

    def again(self, translations: list[str]) -> list[str]:
        return again(self._texts, translations)

    def with_translations(self, translations: list[str], more: Sequence[str] = ()) -> bytes:
        put_all(self._texts, translations, more)
        for paragraph in self._paragraphs:
            paragraph.write()
        out = io.BytesIO()
        self._document.save(out)
        return out.getvalue()


def _open(data: bytes) -> Any:
    """A document whose notes can be read and changed, too: python-docx would only carry them along."""
    import docx
    from docx.opc.constants import CONTENT_TYPE
    from docx.opc.part import PartFactory, XmlPart

    for notes in (CONTENT_TYPE.WML_FOOTNOTES, CONTENT_TYPE.WML_ENDNOTES):
        PartFactory.part_type_for[notes] = XmlPart
    return docx.Document(io.BytesIO(data))


def _paragraphs(document: Any) -> Iterator[Any]:
    """`<w:p>` of the body with its tables and text boxes, of headers, footers and notes; not of what was
    deleted."""
    from docx.opc.constants import RELATIONSHIP_TYPE

    kinds = (
        RELATIONSHIP_TYPE.HEADER,
        RELATIONSHIP_TYPE.FOOTER,
        RELATIONSHIP_TYPE.FOOTNOTES,
        RELATIONSHIP_TYPE.ENDNOTES,
    )
    others = [
        relation.target_part.element
        for relation in document.part.rels.values()
        if relation.reltype in kinds and not relation.is_external
    ]
    for part in (document.element.body, *others):
        for paragraph in part.iter(f"{W}p"):
            if next(paragraph.iterancestors(f"{W}del", f"{W}moveFrom"), None) is None:
                yield paragraph
