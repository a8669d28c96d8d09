"""What a paragraph of a Word document is made of, in the order it is read.

Word cuts text into runs (`<w:r>`), which hold text and much else; their properties (`<w:rPr>`) say how it
looks. A field is a row of runs: one where it begins, its instruction, one that separates, its result as last
seen, one where it ends. Some elements hold runs: links, tracked insertions, content controls.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Literal

from kster.documents.document import is_prose
from kster.documents.xml_places import Element, XmlText

_AROUND = {"hyperlink", "ins", "moveTo", "sdt", "dir", "bdo"}
_DISSOLVED = {"smartTag", "customXml"}  # Word itself has dropped them since 2010
_PROPERTIES = {"pPr", "rPr", "sdtPr", "sdtEndPr", "smartTagPr", "customXmlPr", "fldData", "proofErr"}
_UNSEEN = {"softHyphen", "lastRenderedPageBreak"}  # of the source's own lines
_BREAKS = {"tab", "ptab", "br", "cr"}
# The results of other fields are for Word to work out again, mostly numbers.
_PROSE_FIELDS = {"HYPERLINK", "TOC", "TOA", "INDEX", "BIBLIOGRAPHY", "QUOTE", "FORMTEXT"}
_DEEPEST_FIELD = 10  # fields in the results of fields
_UNSEEN_FIELDS = {"XE", "TC", "TA", "RD"}
_NO_LOOK = {"lang", "noProof", "rtl", "cs", "webHidden", "spacing", "kern"}  # differ without being seen


@dataclass(frozen=True, slots=True)
class Look:
    """How text looks. properties: `<w:rPr>` as it is written; key: the same for all that look alike."""

    properties: str = ""
    key: str = ""

    @property
    def is_raised(self) -> bool:
        return "vertAlign" in self.key


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of the file from start to end; look: that of the run it is to be put in, None outside of one."""

    start: int
    end: int
    look: Look | None = None


@dataclass(frozen=True, slots=True)
class Item:
    """One step of reading.

    text: with its look; open, close: of what is around text; alone: something to be seen; float: nothing to
    be seen, as a deletion or a comment; break: a tab or line break; field: a character or instruction of one.
    name: the same of an open and its close; else what kind of field character, bookmark or note it is.
    """

    kind: Literal["text", "open", "close", "alone", "float", "break", "field"]
    pieces: tuple[Piece, ...] = ()
    text: str = ""
    look: Look = Look()
    name: object = None


def items_of(xml: XmlText, paragraph: Element) -> list[Item]:
    return _with_bookmarks(_with_fields(list(_items(xml, paragraph))))


def _items(xml: XmlText, parent: Element) -> Iterator[Item]:
    for node in parent:
        whole = Piece(node.start, node.end)
        if node.local in _PROPERTIES or not node.name:
            continue
        if node.local == "r" and not node.name.startswith("m:"):
            yield from _items_of_run(xml, node)
        elif node.local in _DISSOLVED:
            yield from _items(xml, node)
        elif node.local in _AROUND:
            inside = node.child("sdtContent") if node.local == "sdt" else node
            if inside is None or inside.end == inside.inner:
                yield Item("float", (whole,))
            else:
                yield from _around(xml, node, inside)
        elif node.local == "fldSimple":
            name = _field_name(node.get("w:instr") or "")
            if name in _PROSE_FIELDS:
                yield from _around(xml, node, node)
            else:
                yield Item("float" if name in _UNSEEN_FIELDS else "alone", (whole,))
        elif node.local in ("bookmarkStart", "bookmarkEnd"):
            yield Item("float", (whole,), name=(node.local, node.get("w:id")))
        else:  # formulas are in a namespace of their own; Word's are deletions and ends of ranges
            yield Item("float" if node.name.startswith("w:") else "alone", (whole,))


def _around(xml: XmlText, node: Element, inside: Element) -> Iterator[Item]:
    """An element and what is in it; without a word or break in it, it is all code."""
    inner = list(_items(xml, inside))
    if any(item.kind in ("break", "field") or is_prose(item.text) for item in inner):
        yield Item("open", (Piece(node.start, inside.inner),), name=node)
        yield from inner
        yield Item("close", (Piece(inside.inner_end, node.end),), name=node)
    else:
        seen = any(item.kind in ("text", "alone") for item in inner)
        yield Item("alone" if seen else "float", (Piece(node.start, node.end),))


def _items_of_run(xml: XmlText, run: Element) -> Iterator[Item]:
    look = _look_of(xml, run)
    for node in run:
        pieces = (Piece(node.start, node.end, look),)
        if node.local in _PROPERTIES or node.local in _UNSEEN or not node.name:
            continue
        if node.local in ("t", "noBreakHyphen"):
            text = "\u2011" if node.local == "noBreakHyphen" else re.sub(r"[\t\r\n]+", " ", node.text)
            if look.is_raised and not is_prose(text) and text.strip():
                yield Item("alone", pieces, name="note")
            elif text:
                yield Item("text", pieces, text, look)
        elif node.local in _BREAKS:
            yield Item("break", pieces)
        elif node.local == "fldChar":
            yield Item("field", pieces, name=node.get("w:fldCharType"))
        elif node.local == "instrText":
            yield Item("field", pieces, node.text, name="instruction")
        elif node.local in ("commentReference", "annotationRef"):
            yield Item("float", pieces)
        else:
            is_note = node.local in ("footnoteReference", "endnoteReference", "footnoteRef", "endnoteRef")
            yield Item("alone", pieces, name="note" if is_note else None)


def _look_of(xml: XmlText, run: Element) -> Look:
    properties = run.child("rPr")
    if properties is None:
        return Look()
    seen = sorted(xml.between(e.start, e.end) for e in properties if e.local not in _NO_LOOK)
    return Look(xml.between(properties.start, properties.end), "".join(seen))


def _field_name(instruction: str) -> str:
    return (instruction.split() or [""])[0].upper()


# Fields and bookmarks --------------------------------------------------------------------------------


def _with_fields(items: list[Item], depth: int = 0) -> list[Item]:
    """With every field that begins and ends here as a code, or as codes around its result if that is prose.

    What is left of others, as of a table of contents, may not move: it is a break.
    """
    done: list[Item] = []
    ends = _ends_of_fields(items)
    at = 0
    while at < len(items):
        item = items[at]
        if item.kind != "field":
            done.append(item)
        elif at not in ends:
            done.append(replace(item, kind="break", text=""))
        else:
            separator, end = ends[at]
            name = _field_name("".join(i.text for i in items[at:separator] if i.name == "instruction"))
            may_be_prose = name in _PROSE_FIELDS and depth < _DEEPEST_FIELD
            inner = _with_fields(items[separator + 1 : end], depth + 1) if may_be_prose else []
            if any(is_prose(i.text) or i.kind == "break" for i in inner):
                pair = object()
                done.append(Item("open", _pieces(items[at : separator + 1]), name=pair))
                done += inner
                done.append(Item("close", items[end].pieces, name=pair))
            else:
                kind: Literal["float", "alone"] = "float" if name in _UNSEEN_FIELDS else "alone"
                done.append(Item(kind, _pieces(items[at : end + 1])))
            at = end
        at += 1
    return done


def _ends_of_fields(items: Sequence[Item]) -> dict[int, tuple[int, int]]:
    """Where the separator and the end of the outermost fields are, by where they begin.

    Only of fields that are balanced: no element begins in one and ends outside.
    """
    ends: dict[int, tuple[int, int]] = {}
    around: list[list[int]] = []  # begin, separator, how many elements are open
    depth = 0
    for i, item in enumerate(items):
        depth += {"open": 1, "close": -1}.get(item.kind, 0)
        if item.kind != "field":
            continue
        if item.name == "begin":
            around.append([i, -1, depth])
        elif item.name == "separate" and around:
            around[-1][1] = i
        elif item.name == "end" and around:
            begin, separator, before = around.pop()
            if before == depth:
                ends[begin] = separator if separator >= 0 else i, i
    return ends


def _pieces(items: Sequence[Item]) -> tuple[Piece, ...]:
    """All that items are made of, as it stands in the file."""
    return tuple(piece for item in items for piece in item.pieces)


def _with_bookmarks(items: list[Item]) -> list[Item]:
    """With bookmarks as something around text, unless they cross something else or hold no word."""
    done = list(items)
    around: list[tuple[object, int]] = []  # what is open, and where
    crossed: set[object] = set()
    words = [0, *accumulate(is_prose(item.text) for item in items)]
    for i, item in enumerate(items):
        kind, id = item.name if isinstance(item.name, tuple) else ("", None)
        if item.kind == "open":
            around.append((item.name, i))
        elif kind == "bookmarkStart":
            around.append((id, i))
        elif item.kind == "close":
            while around and around.pop()[0] != item.name:
                pass  # bookmarks that end behind it
        elif kind == "bookmarkEnd":
            while around and around[-1][0] in crossed:
                around.pop()
            if around and around[-1][0] == id:
                start = around.pop()[1]
                if words[i] > words[start]:
                    pair = object()
                    done[start] = replace(items[start], kind="open", name=pair)
                    done[i] = replace(item, kind="close", name=pair)
            else:
                crossed.add(id)
    return done
