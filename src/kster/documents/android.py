"""Android's resources: the texts of strings, plurals and arrays in `strings.xml`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kster.documents.document import Half, Text, coded, has_prose
from kster.documents.xml_places import Element, XmlText, content_of
from kster.formats.xml import escape_text

_SPACE = re.compile(r"\s+")
_REFERENCE = re.compile(r"\s*[@?][\w.:+]+(?:/[\w.]+)?\s*")  # to another resource


class AndroidDocument(XmlText):
    """Inline tags are codes, `<xliff:g>` with all that is in it. Strings marked as not translatable stay."""

    def __init__(self, data: bytes, source: str, target: str) -> None:
        super().__init__(data)
        self.read("resources", ("string", "item"), self._look)

    def _look(self, element: Element) -> None:
        if element.inherited("translatable") == "false" or element.get("type") not in (None, "string"):
            return
        raw = self.content(element)
        begin = "<![CDATA[" if raw.lstrip().startswith("<![CDATA[") and raw.rstrip().endswith("]]>") else ""
        pieces = list(content_of(element, lambda node: not node.name or node.name == "xliff:g"))
        if _REFERENCE.fullmatch(raw) or not has_prose(pieces):
            return
        quoted = raw.strip().startswith('"') and raw.strip().endswith('"') and len(raw.strip()) > 1
        pieces = [_read(piece, quoted) if isinstance(piece, str) else piece for piece in pieces]

        bare_quotes = re.search(r'(?<!\\)"', raw) is not None and not quoted  # as of attributes in CDATA

        def escape(text: str) -> str:
            text = text if quoted else re.sub(r"(?<!\\)'", r"\'", text)
            text = text if bare_quotes else text.replace('"', r"\"")
            return (text if begin else escape_text(text)).replace("\n", r"\n")

        def write(texts: Sequence[Text]) -> str:
            text = "".join(self.places.markup(own, escape) for own in texts)
            text = f'"{text}"' if quoted else _unlike_reference(text.strip())
            return f"{begin}{text}]]>" if begin else text

        where = element.get("name") or next((n for e in element.around() if (n := e.get("name"))), "")
        self.places.add(
            element.inner, element.inner_end, coded(pieces if quoted else _stripped(pieces)), write, where
        )


def _read(text: str, quoted: bool) -> str:
    """A text as it is shown but for `\\n` and its like, which are taken for codes."""
    text = re.sub(r'(?<!\\)"', "", text) if quoted else _SPACE.sub(" ", text)
    return re.sub(r"\\(['\"@?])", r"\1", text)


def _stripped(pieces: list[str | Half]) -> list[str | Half]:
    """Without the white space at both ends, which Android does not show."""
    done = list(pieces)
    if done and isinstance(first := done[0], str):
        done[0] = first.lstrip()
    if done and isinstance(last := done[-1], str):
        done[-1] = last.rstrip()
    return [piece for piece in done if piece != ""]


def _unlike_reference(text: str) -> str:
    return "\\" + text if text[:1] in ("@", "?") else text
