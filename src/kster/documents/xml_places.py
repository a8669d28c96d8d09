"""XML as it is written: elements know their places in the file, so that a change leaves all else as it was.

Places are bytes of the file's text in UTF-8. Names are as written; a prefix is no part of what `local` says,
so that namespaces make no difference.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from xml.parsers import expat

from kster.documents.encoded_text import FileText
from kster.errors import KsterError
from kster.formats.xml import declared_encoding, escape_attribute, escape_text
from kster.text.inline import Token

DEEPEST = 256  # elements in elements
_TAG = re.compile(rb"""<(?:"[^"]*"|'[^']*'|[^"'>])*>""")
_ATTRIBUTE = re.compile(r"""\s([^\s=<>/"']+)\s*=\s*("[^"]*"|'[^']*')""")


@dataclass(slots=True, eq=False)
class Element:
    """A part of an XML file, from start to end; what is in it is from inner to inner_end."""

    name: str  # none for comments and instructions
    attributes: dict[str, str]
    parent: Element | None
    start: int
    inner: int
    inner_end: int = 0
    end: int = 0
    text: str = ""
    tail: str = ""
    children: list[Element] = field(default_factory=list)

    def __iter__(self) -> Iterator[Element]:
        return iter(self.children)

    @property
    def local(self) -> str:
        return self.name.rpartition(":")[2]

    @property
    def is_empty(self) -> bool:
        return not self.children and not self.text.strip()

    def get(self, name: str) -> str | None:
        return self.attributes.get(name)

    def child(self, local: str) -> Element | None:
        return next((child for child in self.children if child.local == local), None)

    def around(self) -> Iterator[Element]:
        """The element and those it is in, the nearest first."""
        element: Element | None = self
        while element is not None:
            yield element
            element = element.parent

    def inherited(self, *names: str) -> str | None:
        """The first of these attributes of the nearest element that has one."""
        return next((found for e in self.around() for name in names if (found := e.get(name))), None)


class XmlText:
    """An XML file with elements to be looked at (`read`) and changes to be made."""

    def __init__(self, data: bytes) -> None:
        self._file = FileText(data, declared_encoding(data))
        self._utf8 = self._file.text.encode("utf-8", "surrogatepass")
        self._changes: dict[tuple[int, int], str] = {}

    def read(self, root: str, units: Sequence[str], look: Callable[[Element], None]) -> None:
        """Call `look` with each element of these names, whose content is forgotten then."""
        reader = _Reader(self._utf8, root, units, look)
        try:
            reader.parser.Parse(self._utf8, True)
        except expat.ExpatError as error:
            what = expat.ErrorString(error.code)
            raise KsterError(f"line {error.lineno}: not well-formed XML: {what}") from None

    def start_tag(self, element: Element) -> str:
        return self._between(element.start, element.inner)

    def content(self, element: Element) -> str:
        """What is in an element, tags and all."""
        return self._between(element.inner, element.inner_end)

    def space_before(self, element: Element) -> str:
        before = self._between(max(0, element.start - 200), element.start)
        return before[len(before.rstrip()) :]

    def markup(self, tokens: Sequence[Token]) -> str:
        """Texts and tags of this file as they are written."""
        return "".join(self._written(token) for token in tokens)

    def replace(self, start: int, end: int, text: str) -> None:
        self._changes[start, end] = text

    def written(self) -> bytes:
        """The file with its changes."""
        parts: list[bytes] = []
        done = 0
        for (start, end), text in sorted(self._changes.items()):
            parts += [self._utf8[done:start], text.encode("utf-8")]
            done = end
        parts.append(self._utf8[done:])
        return self._file.encode(b"".join(parts).decode("utf-8"), "xmlcharrefreplace")

    def _between(self, start: int, end: int) -> str:
        return self._utf8[start:end].decode("utf-8", "ignore")

    def _written(self, token: Token) -> str:
        if isinstance(token, str):
            return escape_text(token).replace("\n", self._file.line_end)
        element: Element = token.element
        match token.kind:
            case "begin":
                return self._between(element.start, element.inner)
            case "end":
                return self._between(element.inner_end, element.end)
            case "whole":
                return self._between(element.start, element.end)


def with_attributes(start_tag: str, values: dict[str, str]) -> str:
    """A start tag with these attributes, where they are or else at its end."""
    for name, value in values.items():
        quoted = f'"{escape_attribute(value)}"'
        own = next((found for found in _ATTRIBUTE.finditer(start_tag) if found[1] == name), None)
        if own is not None:
            start_tag = start_tag[: own.start(2)] + quoted + start_tag[own.end(2) :]
        else:
            bare = start_tag.removesuffix(">").removesuffix("/").rstrip()
            start_tag = f"{bare} {name}={quoted}{start_tag[len(bare) :]}"
    return start_tag


def both_tags(start_tag: str) -> tuple[str, str]:
    """A start tag, which may have been an empty element's, and its end tag."""
    name = re.split(r"[\s/>]", start_tag[1:], maxsplit=1)[0]
    return start_tag.removesuffix(">").removesuffix("/").rstrip() + ">", f"</{name}>"


class _Reader:
    """Builds elements from what expat reports."""

    def __init__(self, utf8: bytes, root: str, units: Sequence[str], look: Callable[[Element], None]) -> None:
        self._utf8, self._root, self._units, self._look = utf8, root, units, look
        self._open: list[Element] = []
        self._in_units = 0  # outside of them no text is worth keeping
        self.parser = expat.ParserCreate("utf-8")  # whatever the file declares: its text was decoded
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._text
        self.parser.CommentHandler = lambda _: self._aside(b"-->")
        self.parser.ProcessingInstructionHandler = lambda *_: self._aside(b"?>")
        self.parser.EntityDeclHandler = _refuse_entities
        self.parser.SkippedEntityHandler = _refuse_entities

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        start = self.parser.CurrentByteIndex
        tag = _TAG.match(self._utf8, start)
        assert tag is not None  # or else expat would not have reported it
        parent = self._open[-1] if self._open else None
        element = Element(name, attributes, parent, start, tag.end())
        if parent is None and element.local != self._root:
            raise KsterError(f"its root is <{element.local}>, not <{self._root}>")
        if len(self._open) == DEEPEST:
            raise KsterError(f"line {self.parser.CurrentLineNumber}: more than {DEEPEST} elements in another")
        if parent is not None:
            parent.children.append(element)
        self._open.append(element)
        self._in_units += element.local in self._units

    def _end(self, name: str) -> None:
        element = self._open.pop()
        if self._utf8[element.inner - 2 : element.inner] == b"/>":
            element.inner_end = element.end = element.inner
        else:
            element.inner_end = self.parser.CurrentByteIndex
            element.end = self._utf8.index(b">", element.inner_end) + 1
        if element.local in self._units:
            self._in_units -= 1
            self._look(element)
            element.children = []
            if element.parent is not None:
                element.parent.children.pop()

    def _text(self, text: str) -> None:
        if not self._in_units:
            return
        if self._open[-1].children:
            self._open[-1].children[-1].tail += text
        else:
            self._open[-1].text += text

    def _aside(self, ending: bytes) -> None:
        """A comment or an instruction."""
        if self._in_units:
            start = self.parser.CurrentByteIndex
            end = self._utf8.index(ending, start) + len(ending)
            self._open[-1].children.append(Element("", {}, self._open[-1], start, end, end, end))


def _refuse_entities(*_: object) -> None:
    raise KsterError("it uses entities, which are not accepted")
