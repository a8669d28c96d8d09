"""Plain text: paragraphs are translated, and broken into lines again where they were; all else stays."""

from __future__ import annotations

from kster.documents.document import Places, TextDocument, is_prose, plain, require_size
from kster.documents.encoded_text import EncodedText
from kster.text.wrapping import Paragraph, paragraphs


def open_text(data: bytes, source: str, target: str) -> TextDocument:
    file = EncodedText(data)
    require_size(len(file.text))
    return TextDocument(file, paragraph_places(file.text))


def paragraph_places(text: str) -> Places[str]:
    places = Places(text)
    line, counted = 1, 0
    for paragraph in paragraphs(text):
        line += text.count("\n", counted, paragraph.start)
        counted = paragraph.start
        if is_prose(paragraph.text):
            _add(places, paragraph, f"line {line}")
    return places


def _add(places: Places[str], paragraph: Paragraph, where: str) -> None:
    places.add(
        paragraph.start,
        paragraph.end,
        [[paragraph.text]],
        lambda texts: paragraph.wrapped(plain(texts[0])),
        where,
    )
