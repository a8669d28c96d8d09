"""TMX 1.4, the exchange format of translation memories (1.1 and later are read).

Properties of a unit or of its target say what tools know beyond the texts: `x-status` (also as Trados writes
it) and `x-context` (also memoQ's). What a machine translated is a draft: a property `x-origin` that says so,
or the author `MT!`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from kster.formats.language_picker import LanguagePicker
from kster.formats.pair import Pair, Rejection, UnusableUnit
from kster.formats.text import check_pair, readable_id
from kster.formats.xml import (
    XML_LANG,
    child,
    escape_attribute,
    escape_text,
    line_of,
    local_name,
    read_units,
    segment_text,
)
from kster.text.characters import printable
from kster.text.languages import bcp47

if TYPE_CHECKING:
    from lxml.etree import _Element


def read_tmx(
    path: Path, source_lang: str | None, target_lang: str | None, tags: str
) -> Iterator[Pair | Rejection]:
    """One pair from each `<tu>` that has both languages; the best-matching variant of each is taken."""
    picker = LanguagePicker(path, source_lang, target_lang)
    for unit in read_units(path, root="tmx", units=("tu",)):
        id = unit.get("tuid")
        try:
            yield _pair(unit, id, picker, tags)
        except UnusableUnit as reason:
            yield Rejection(str(path), line_of(unit), readable_id(id), str(reason))
    picker.require_a_match()


def _pair(unit: _Element, id: str | None, picker: LanguagePicker, tags: str) -> Pair:
    variants = [node for node in unit if local_name(node) == "tuv"]
    languages = [node.get(XML_LANG) or node.get("lang") or "" for node in variants]  # `lang` until TMX 1.1
    source, target = picker.pick(languages, None if picker.source_lang else _declared_source(unit))
    texts = []
    for variant in (variants[source], variants[target]):
        segment = child(variant, "seg")
        texts.append("" if segment is None else segment_text(segment, tags))
    pair = check_pair(texts[0], texts[1], id, line_of(unit))
    known = _Properties(unit, variants[target])
    return replace(pair, context=known.context, status=known.status, author=known.author, remark=known.remark)


_STATUS = ("x-status", "status", "x-confirmationlevel", "confirmationlevel")
_ORIGIN = ("x-origin", "origin")
_CONTEXT = ("x-context", "context", "x-mmq-context")
_MACHINE = frozenset({"mt", "nmt", "amt", "machinetranslation", "automatictranslation"})
_REJECTED = re.compile("reject")
_DRAFT = re.compile("draft|fuzzy|new|machine|unapproved|unconfirmed|needs|pretranslated|initial")


class _Properties:
    """What a unit says of itself; its target's own properties come first."""

    def __init__(self, unit: _Element, target: _Element) -> None:
        found: dict[str, str] = {}
        for node in (*unit, *target):
            if local_name(node) == "prop" and (node.text or "").strip():
                found[(node.get("type") or "").lower()] = printable((node.text or "").strip())
        status = next((found[name].lower() for name in _STATUS if name in found), "")
        origin = next((found[name].lower().replace(" ", "") for name in _ORIGIN if name in found), "")
        self.context = next((found[name] for name in _CONTEXT if name in found), None)
        authors = (node.get(name) for node in (target, unit) for name in ("changeid", "creationid"))
        self.author = next((printable(author) for author in authors if author), None)
        self.status, self.remark = "approved", None
        if _REJECTED.search(status):
            self.status, self.remark = "rejected", f"status {status}"
        elif _DRAFT.search(status):
            self.status, self.remark = "draft", f"status {status}"
        elif not status and (origin in _MACHINE or self.author == "MT!"):
            self.status, self.remark = "draft", "machine translation"


def _declared_source(unit: _Element) -> str | None:
    """The source language that the unit, or else the file's header, declares; `*all*` declares none."""
    header = child(unit.getroottree().getroot(), "header")
    declared = unit.get("srclang") or (header.get("srclang") if header is not None else None)
    return declared if declared and declared != "*all*" else None


def write_tmx(out: TextIO, pairs: Iterable[Pair], source_lang: str, target_lang: str) -> int:
    """Write a TMX 1.4 document; return the number of units."""
    from kster.version import __version__

    source, target = escape_attribute(bcp47(source_lang)), escape_attribute(bcp47(target_lang))
    out.write(
        '<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n<tmx version="1.4">\n'
        f'<header creationtool="kster" creationtoolversion="{__version__}" segtype="sentence" o-tmf="kster" '
        f'adminlang="en" srclang="{source}" datatype="plaintext"/>\n<body>\n'
    )
    count = 0
    for pair in pairs:
        id = f' tuid="{escape_attribute(pair.id)}"' if pair.id is not None else ""
        author = f' creationid="{escape_attribute(pair.author)}"' if pair.author else ""
        status = f'<prop type="x-status">{pair.status}</prop>\n' if pair.status != "approved" else ""
        context = (
            f'<prop type="x-context">{escape_text(pair.context)}</prop>\n' if pair.context is not None else ""
        )
        out.write(
            f"<tu{id}{author}>\n{status}{context}"
            f'<tuv xml:lang="{source}"><seg>{escape_text(pair.source)}</seg></tuv>\n'
            f'<tuv xml:lang="{target}"><seg>{escape_text(pair.target)}</seg></tuv>\n</tu>\n'
        )
        count += 1
    out.write("</body>\n</tmx>\n")
    return count
