"""XML as it is written: elements know their places in the file, so that a change leaves all else as it was.

Places are bytes of the file's text in UTF-8. Names are as written; `local` leaves out the prefix, so that
namespaces make no difference.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from xml.parsers import expat

from kster.documents.document import Counter, Half, Places, Text, Unit, require_size
from kster.documents.encoded_text import EncodedText
from kster.errors import FormatError
from kster.formats.xml import declared_encoding, escape_attribute, escape_text

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
    children: list[Element] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    tails: list[str] = field(default_factory=list)

    def __iter__(self) -> Iterator[Element]:
        return iter(self.children)

    @property
    def text(self) -> str:
        """What comes before the first child."""
        return "".join(self.texts)

    @property
    def tail(self) -> str:
        """What comes behind its end."""
        return "".join(self.tails)

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
    """An XML file: elements to be looked at (`read`), and places for translations in its UTF-8 bytes."""

    declared_source: str | None = None

    def __init__(self, data: bytes, counter: Counter | None = None) -> None:
        require_size(len(data))
        self._file = EncodedText(data, declared_encoding(data))
        self.places = Places(self._file.text.encode("utf-8", "surrogatepass"))
        self._counter = counter or Counter()
        self._attributes: dict[Element, dict[str, str]] = {}

    @property
    def units(self) -> Sequence[Unit]:
        return self.places.units

    def read(self, root: str, units: Sequence[str], look: Callable[[Element], None]) -> None:
        """Call `look` with each element of these names, whose content is forgotten then."""
        reader = _Reader(self.places.content, root, units, look, self._counter)
        try:
            reader.parser.Parse(self.places.content, True)
        except expat.ExpatError as error:
            what = expat.ErrorString(error.code)
            raise FormatError(f"line {error.lineno}: not well-formed XML: {what}") from None
        for element, values in self._attributes.items():
            self.places.change(element.start, element.inner, with_attributes(self.start_tag(element), values))

    def set(self, element: Element, values: dict[str, str]) -> None:
        """Give an element attributes, or other values for those it has."""
        self._attributes.setdefault(element, {}).update(values)

    def start_tag(self, element: Element) -> str:
        return self.between(element.start, element.inner)

    def content(self, element: Element) -> str:
        """What is in an element, tags and all."""
        return self.between(element.inner, element.inner_end)

    def space_before(self, element: Element) -> str:
        before = self.between(max(0, element.start - 200), element.start)
        return before[len(before.rstrip()) :]

    def between(self, start: int, end: int) -> str:
        return self.places.content[start:end].decode("utf-8", "ignore")

    def escape(self, text: str) -> str:
        """A text as this file writes it, line ends and all."""
        return escape_text(text).replace("\n", self._file.line_end)

    def written(self, translations: Sequence[Text]) -> bytes:
        return self._file.encode(self.places.written(translations), "xmlcharrefreplace")


def content_of(element: Element, is_whole: Callable[[Element], bool]) -> Iterator[str | Half]:
    """What is in an element, in the order it is read."""
    yield element.text
    for child in element:
        if child.end == child.inner or is_whole(child):
            yield Half((child.start, child.end))
        else:
            yield Half((child.start, child.inner), "open", child)
            yield from content_of(child, is_whole)
            yield Half((child.inner_end, child.end), "close", child)
        yield child.tail


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

    def __init__(
        self,
        utf8: bytes,
        root: str,
        units: Sequence[str],
        look: Callable[[Element], None],
        counter: Counter,
    ) -> None:
        self._utf8, self._root, self._units, self._look = utf8, root, units, look
        self._counter = counter
        self._open: list[Element] = []
        self._in_units = 0  # outside of them nothing is worth keeping but what is around
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
        if parent is None and self._root and element.local != self._root:
            raise FormatError(f"its root is <{element.local}>, not <{self._root}>")
        self._counter.add(len(self._open), self.parser.CurrentLineNumber)
        if self._in_units and parent is not None:
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
            if self._in_units and element.parent is not None:
                element.parent.children.pop()

    def _text(self, text: str) -> None:
        if not self._in_units:
            return
        around = self._open[-1]
        (around.children[-1].tails if around.children else around.texts).append(text)

    def _aside(self, ending: bytes) -> None:
        """A comment or an instruction."""
        self._counter.add()
        if self._in_units:
            start = self.parser.CurrentByteIndex
            end = self._utf8.index(ending, start) + len(ending)
            self._open[-1].children.append(Element("", {}, self._open[-1], start, end, end, end))


def _refuse_entities(*_: object) -> None:
    raise FormatError("it uses entities, which are not accepted")
