"""XML read unit by unit: bounded memory, no entities, and one bad character spoils one unit only.

Between the file and the parser sits a filter on the decoded text, because libxml2 refuses a whole file
for a single control character. It replaces, by marks that `kster.formats.text` turns into reasons:

- characters XML 1.0 forbids, raw or as references such as `&#x1;`;
- references to any entity but XML's own five, so neither bombs nor external files are ever expanded;
- what exceeds `MAX_TEXT` in one run of text, so that the parser's own limits are not met.

It never removes a line feed: line numbers in reports are those of the file. CDATA sections, where `&`
is only an ampersand, are left alone but for forbidden characters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kster.errors import FormatError
from kster.formats.encoding import text_chunks
from kster.formats.pair import UnusableUnit
from kster.formats.text import CUT_MARK, character_mark, entity_mark
from kster.text.characters import UNUSABLE

if TYPE_CHECKING:
    from lxml.etree import _Element

XML_LANG = "{http://www.w3.org/XML/1998/namespace}lang"
MAX_TEXT = 1_000_000  # characters of text between two tags; libxml2 gives up at 10 MB
MAX_UNIT = 32_000_000  # characters from the end of one unit to the end of the next

_DECLARED = re.compile(rb"""^\s*<\?xml[^>]*?\sencoding\s*=\s*["']([A-Za-z][\w.-]*)["']""")
_REFERENCE = re.compile(r"&(?:#([0-9]+|x[0-9A-Fa-f]+)|([^\s&;#<>\"']+));")
_PREDEFINED = frozenset({"lt", "gt", "amp", "quot", "apos"})
_CDATA, _CDATA_END = "<![CDATA[", "]]>"


def declared_encoding(head: bytes) -> str | None:
    """The encoding in an XML declaration, for files whose declaration is ASCII."""
    found = _DECLARED.match(head[:200])
    return found.group(1).decode("ascii") if found else None


class _Filtered:
    """A file-like object that gives the parser UTF-8 it can digest."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._chunks = text_chunks(path, declared_encoding)
        self._held = ""  # the end of the last chunk, where a reference or CDATA marker may be cut in two
        self._in_cdata = False
        self._in_text = False  # whether the last chunk ended between tags rather than inside one
        self._run = 0  # length of the text since the last tag
        self._since_unit = 0

    def read(self, size: int = -1) -> bytes:
        """The next piece, of whatever size; empty at the end of the file."""
        for chunk in self._chunks:
            text = self._held + chunk
            cut = _safe_end(text)
            text, self._held = text[:cut], text[cut:]
            if text:
                return self._encode(text)
        text, self._held = self._held, ""
        return self._encode(text)

    def unit_done(self) -> None:
        self._since_unit = 0

    def _encode(self, text: str) -> bytes:
        text = UNUSABLE.sub(lambda found: character_mark(ord(found.group())), text)
        text = self._without_long_run(self._without_references(text))
        self._since_unit += len(text)
        if self._since_unit > MAX_UNIT:
            raise FormatError(f"{self._path}: more than {MAX_UNIT:,} characters without the end of a unit")
        return text.encode("utf-8")

    def _without_references(self, text: str) -> str:
        pieces = []
        while text:
            marker = _CDATA_END if self._in_cdata else _CDATA
            here, found, text = text.partition(marker)
            pieces.append(here if self._in_cdata or "&" not in here else _REFERENCE.sub(_resolve, here))
            pieces.append(found)
            if found:
                self._in_cdata = not self._in_cdata
        return "".join(pieces)

    def _without_long_run(self, text: str) -> str:
        end = text.find("<")
        run = text if end < 0 else text[:end]
        self._run += len(run)
        if self._in_text and self._run > MAX_TEXT:
            text = CUT_MARK + "\n" * run.count("\n") + text[len(run) :]
        last = text.rfind("<")
        if last >= 0:
            self._in_text, self._run = ">" in text[last:], len(text) - last
        else:
            self._in_text = self._in_text or ">" in text
        return text


def _safe_end(text: str) -> int:
    """Where `text` can be cut without parting a reference or a CDATA marker."""
    ends = [text.rfind("&", -80), text.rfind("<", -len(_CDATA))]
    brackets = len(text) - len(text.rstrip("]"))
    if brackets:
        ends.append(len(text) - min(brackets, 2))
    return max((end for end in ends if end > 0), default=len(text))


def _resolve(found: re.Match[str]) -> str:
    """A reference as it is if it is harmless, else the mark of what it stands for."""
    number, name = found.groups()
    if name is not None:
        return found.group() if name in _PREDEFINED else entity_mark(name)
    digits = number.lstrip("x0") or "0"
    code = int(digits, 16 if number[0] == "x" else 10) if len(digits) <= 8 else 0x110000
    if code <= 0x10FFFF and not UNUSABLE.match(chr(code)):
        return found.group()
    return character_mark(code)


def read_units(
    path: Path, root: str, units: Sequence[str], containers: Sequence[str] = ()
) -> Iterator[_Element]:
    """Each element with one of the names `units`, complete, its ancestors in reach, in the order of the file.

    An element must be used before the next one is asked for: it is then emptied and what lies before it
    dropped, at its own level and, when one of the `containers` ends, at that level. Namespaces are ignored.
    """
    from lxml import etree

    source = _Filtered(path)
    parser = etree.iterparse(
        source,
        events=("end",),
        tag=[f"{{*}}{name}" for name in (*units, *containers)],
        encoding="utf-8",  # what the filter gives, whatever the file declares
        resolve_entities=False,
        load_dtd=False,
        no_network=True,
        huge_tree=False,
        remove_comments=True,
        remove_pis=True,
    )
    checked = False
    try:
        for _, element in parser:
            if not checked:
                _require_root(path, element.getroottree().getroot(), root)
                checked = True
            if local_name(element) in units:
                yield element
                source.unit_done()
            _drop(element)
        if not checked and parser.root is not None:
            _require_root(path, parser.root, root)
    except etree.XMLSyntaxError as error:
        raise FormatError(f"{path}, {_describe(error)}") from error


def _describe(error: SyntaxError) -> str:
    message = re.sub(r"(, line \d+, column \d+)?( \([^()]*\))?\s*$", "", error.msg or "empty").strip()
    if "Resource limit" in message or "amplification" in message:
        message = f"{message.partition(', ')[0]} (the file is too large in one place, or an attack)"
    return f"line {error.lineno or 1}: not well-formed XML: {message}"


def _require_root(path: Path, element: _Element, root: str) -> None:
    if local_name(element) != root:
        raise FormatError(f"{path}: the outermost element is <{local_name(element)}>, not <{root}>")


def _drop(element: _Element) -> None:
    element.clear()
    parent = element.getparent()
    if parent is not None:
        while element.getprevious() is not None:
            del parent[0]


def local_name(element: _Element) -> str:
    """An element's name without its namespace; empty for comments, instructions and entities."""
    tag = element.tag
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""


def line_of(element: _Element) -> int | None:
    """The line an element begins on (lxml's stubs leave the type open)."""
    line = element.sourceline
    return line if isinstance(line, int) else None


def child(element: _Element, name: str) -> _Element | None:
    """The first child of that name, in any namespace."""
    return next((node for node in element if local_name(node) == name), None)


# Elements that stand for a native code, TMX and XLIFF alike: their content is the code, not text.
CODES = frozenset({"bpt", "ept", "ph", "it", "ut", "x", "bx", "ex", "sc", "ec"})
_PAIRED = frozenset({"g", "pc"})  # enclose text; their start and end are the codes


def segment_text(element: _Element, tags: str) -> str:
    """The text of a `<seg>`, `<source>` or `<target>`, its inline elements kept or stripped.

    `strip`: codes vanish with their content, highlighted and enclosed text stays; where a code was, the
    spaces around it are closed up. `keep`: a code's own content stays (`<b>`, `%s`), and a code without
    content stays as a short tag (`<x id="1"/>`, `<g id="2">…</g>`).
    """
    pieces: list[str] = []
    codes = _collect(element, tags == "keep", pieces)
    text = "".join(pieces)
    return re.sub(" {2,}", " ", text).strip(" ") if codes and tags == "strip" else text


def _collect(element: _Element, keep: bool, pieces: list[str]) -> int:
    """Append the text inside `element` to `pieces`; return how many codes it had."""
    codes = 0
    pieces.append(element.text or "")
    for node in element:
        name = local_name(node)
        if name in CODES or name in _PAIRED:
            codes += 1
        if name in CODES:
            if keep:
                pieces.append(_text_within(node) or f"<{name}{_number(node)}/>")
        elif name in _PAIRED and keep:
            pieces.append(f"<{name}{_number(node)}>")
            _collect(node, keep, pieces)
            pieces.append(f"</{name}>")
        elif name == "cp":  # XLIFF 2's way to write a character that XML cannot hold, and neither can we
            raise UnusableUnit(f"contains the character U+{node.get('hex')}, written as <cp>")
        elif name:
            codes += _collect(node, keep, pieces)
        elif (node.text or "").startswith("&"):
            raise UnusableUnit(f"contains the entity reference {node.text} (entities are not resolved)")
        pieces.append(node.tail or "")
    return codes


def _text_within(node: _Element) -> str:
    pieces: list[str] = []
    _collect(node, True, pieces)
    return "".join(pieces)


def _number(node: _Element) -> str:
    value = node.get("id") or node.get("x") or node.get("i")
    return f' id="{value}"' if value else ""


_ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "\r": "&#13;"}
_TEXT_ESCAPES = str.maketrans(_ESCAPES)
_ATTRIBUTE_ESCAPES = str.maketrans(_ESCAPES | {'"': "&quot;", "\n": "&#10;", "\t": "&#9;"})


def escape_text(text: str) -> str:
    """`text` as element content. A raw carriage return would be read back as a line feed."""
    return text.translate(_TEXT_ESCAPES)


def escape_attribute(text: str) -> str:
    """`text` as an attribute value in double quotes. Raw white space would be read back as spaces."""
    return text.translate(_ATTRIBUTE_ESCAPES)
