"""What a paragraph of a Word document is made of, in the order it is read: text, and codes of several kinds.

Word cuts text into runs (`<w:r>`), which hold text and much else. A field is a row of runs: one where it
begins, its instruction, one that separates, its result as last seen, one where it ends. Some elements hold
runs: links, tracked insertions, content controls.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from kster.text.inline import is_prose

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_TEXT = {f"{W}t", f"{W}noBreakHyphen"}
_WITHIN_TEXT = _TEXT | {f"{W}softHyphen", f"{W}lastRenderedPageBreak"}  # of the source's own lines
_BREAKS = {f"{W}tab", f"{W}ptab", f"{W}br", f"{W}cr"}
_OF_FIELDS = {f"{W}fldChar", f"{W}instrText"}
_AROUND = {f"{W}hyperlink", f"{W}ins", f"{W}moveTo", f"{W}sdt", f"{W}dir", f"{W}bdo"}
_DISSOLVED = {f"{W}smartTag", f"{W}customXml"}  # Word itself has dropped them since 2010
_PROPERTIES = {f"{W}{name}" for name in ("pPr", "rPr", "sdtPr", "smartTagPr", "customXmlPr", "fldData")}
# The results of other fields are for Word to work out again, mostly numbers.
_PROSE_FIELDS = {"HYPERLINK", "TOC", "TOA", "INDEX", "BIBLIOGRAPHY", "QUOTE", "FORMTEXT"}
_MOST_BOOKMARKS = 20  # open at once; more are floating marks
_UNSEEN_FIELDS = {"XE", "TC", "TA", "RD"}


@dataclass(eq=False, slots=True)
class Code:
    """Nodes that stay: all of something, or what stands before and behind some text.

    `inside` is the element that the text is in, if there is one.
    """

    nodes: list[Any]
    closing: list[Any] = field(default_factory=list)
    inside: Any = None


@dataclass(eq=False, slots=True)
class Item:
    """One step of reading.

    text: of the run that is the code's only node; begin, end: text is within the code; whole: something to be
    seen; float: nothing to be seen, as a deletion or a bookmark; break: nothing may move across it.
    """

    kind: Literal["text", "begin", "end", "whole", "float", "break"]
    code: Code
    text: str = ""


def items_of(parent: Any) -> list[Item]:
    """Of a paragraph, or of an element that holds runs. Cuts runs in pieces that hold one thing each."""
    nodes: list[Any] = []
    for child in parent:
        if child.tag == f"{W}r":
            nodes += _cut(child)
        elif child.tag not in _PROPERTIES and child.tag != f"{W}proofErr":
            nodes.append(child)
    return list(_items(nodes))


def clear(element: Any) -> None:
    """Take everything out of an element but its properties."""
    for child in list(element):
        if child.tag not in _PROPERTIES:
            element.remove(child)


def _cut(run: Any) -> list[Any]:
    """A run as several in a row: one for each stretch of text and one for everything else. Same looks."""
    groups: list[list[Any]] = []
    for child in run:
        if child.tag in _PROPERTIES:
            continue
        if groups and child.tag in _WITHIN_TEXT and groups[-1][-1].tag in _WITHIN_TEXT:
            groups[-1].append(child)
        else:
            groups.append([child])
    runs = [run] if groups else []
    for group in groups[1:]:
        more = new_run(run)
        more.extend(group)
        runs[-1].addnext(more)
        runs.append(more)
    return runs


def new_run(like: Any) -> Any:
    run = like.makeelement(f"{W}r")
    properties = like.find(f"{W}rPr")
    if properties is not None:
        run.append(copy.deepcopy(properties))
    return run


def _items(nodes: Sequence[Any]) -> Iterator[Item]:
    """Of nodes side by side."""
    ends = _ranges(nodes)
    i = 0
    while i < len(nodes):
        end = ends.get(i, i)
        if end == i:
            yield from _items_of_one(nodes[i])
        elif nodes[i].tag == f"{W}r":
            yield from _items_of_field(nodes[i : end + 1])
        else:
            yield from _around(Code([nodes[i]], [nodes[end]]), nodes[i + 1 : end])
        i = end + 1


def _ranges(nodes: Sequence[Any]) -> dict[int, int]:
    """Where the fields and bookmarks end that begin and end among these nodes, by where they begin."""
    ends: dict[int, int] = {}
    fields: list[int] = []  # that are open
    bookmarks: dict[str, tuple[int, list[int]]] = {}  # that are open, and the fields around them
    for i, node in enumerate(nodes):
        character = _field_character(node)
        if character == "begin":
            fields.append(i)
        elif character == "end" and fields:
            ends[fields.pop()] = i
        elif node.tag == f"{W}bookmarkStart" and len(bookmarks) < _MOST_BOOKMARKS:
            bookmarks[node.get(f"{W}id", "")] = i, fields[-1:]
        elif node.tag == f"{W}bookmarkEnd":
            start, around = bookmarks.pop(node.get(f"{W}id", ""), (i, []))
            if start < i and around == fields[-1:]:
                ends[start] = i
    return ends


def _field_character(node: Any) -> str:
    """begin, separate, end, or nothing."""
    character = node.find(f"{W}fldChar") if node.tag == f"{W}r" else None
    return "" if character is None else character.get(f"{W}fldCharType", "")


def _items_of_field(nodes: Sequence[Any]) -> Iterator[Item]:
    """A field from its beginning to its end."""
    depth, separator = 0, None
    instruction = ""
    for i, node in enumerate(nodes):
        character = _field_character(node)
        depth += {"begin": 1, "end": -1}.get(character, 0)
        if depth == 1 and separator is None:
            instruction += "".join(text.text or "" for text in node.iter(f"{W}instrText"))
            separator = i if character == "separate" else None
    name = _name(instruction)
    if separator is not None and name in _PROSE_FIELDS:
        yield from _around(Code(list(nodes[: separator + 1]), [nodes[-1]]), nodes[separator + 1 : -1])
    else:
        yield Item("float" if name in _UNSEEN_FIELDS else "whole", Code(list(nodes)))


def _name(instruction: str) -> str:
    return (instruction.split() or [""])[0].upper()


def _around(code: Code, content: Sequence[Any] | None = None) -> Iterator[Item]:
    """A code and what is in it, which is nodes beside it or, without these, within its element.

    Without a word in it, it is all code.
    """
    items = items_of(code.inside) if content is None else list(_items(content))
    if any(item.kind == "break" or is_prose(item.text) for item in items):
        yield Item("begin", code)
        yield from items
        yield Item("end", code)
    else:
        seen = any(item.kind in ("text", "whole") for item in items)
        yield Item("whole" if seen else "float", Code([*code.nodes, *(content or ()), *code.closing]))


def _items_of_one(node: Any) -> Iterator[Item]:
    """Of a node that is no part of a range."""
    if node.tag == f"{W}r":
        yield _item_of_run(node)
    elif node.tag in _DISSOLVED:
        yield from items_of(node)
    elif node.tag in _AROUND:
        content = node.find(f"{W}sdtContent") if node.tag == f"{W}sdt" else node
        yield from [Item("float", Code([node]))] if content is None else _around(Code([node], inside=content))
    elif node.tag == f"{W}fldSimple":
        if (name := _name(node.get(f"{W}instr", ""))) in _PROSE_FIELDS:
            yield from _around(Code([node], inside=node))
        else:
            yield Item("float" if name in _UNSEEN_FIELDS else "whole", Code([node]))
    else:  # formulas are in a namespace of their own; Word's are deletions, bookmarks, ends of ranges
        is_seen = isinstance(node.tag, str) and not node.tag.startswith(W)
        yield Item("whole" if is_seen else "float", Code([node]))


def _item_of_run(run: Any) -> Item:
    """Of a run that was cut."""
    content = [child for child in run if child.tag not in _PROPERTIES]
    tag = content[0].tag
    if tag in _WITHIN_TEXT:
        texts = ("-" if child.tag == f"{W}noBreakHyphen" else child.text or "" for child in content)
        return Item("text", Code([run]), "".join(texts))
    if tag in _BREAKS or tag in _OF_FIELDS:  # here, of fields that end in another paragraph
        return Item("break", Code([run]))
    return Item("float" if tag == f"{W}commentReference" else "whole", Code([run]))
