"""TMX 1.4, the exchange format of translation memories (1.1 and later are read)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
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
from kster.text.languages import bcp47

if TYPE_CHECKING:
    from lxml.etree import _Element


def read_tmx(
    path: Path, source_lang: str | None, target_lang: str | None, *, tags: str, max_chars: int
) -> Iterator[Pair | Rejection]:
    """One pair from each `<tu>` that has both languages; the best-matching variant of each is taken."""
    picker = LanguagePicker(path, source_lang, target_lang)
    for unit in read_units(path, root="tmx", units=("tu",)):
        id = unit.get("tuid")
        try:
            yield _pair(unit, id, picker, tags, max_chars)
        except UnusableUnit as reason:
            yield Rejection(str(path), line_of(unit), readable_id(id), str(reason))
    picker.require_a_match()


def _pair(unit: _Element, id: str | None, picker: LanguagePicker, tags: str, max_chars: int) -> Pair:
    variants = [node for node in unit if local_name(node) == "tuv"]
    languages = [node.get(XML_LANG) or node.get("lang") or "" for node in variants]  # `lang` until TMX 1.1
    source, target = picker.pick(languages, None if picker.source_lang else _declared_source(unit))
    texts = []
    for variant in (variants[source], variants[target]):
        segment = child(variant, "seg")
        texts.append("" if segment is None else segment_text(segment, tags))
    return check_pair(texts[0], texts[1], id, max_chars, line_of(unit))


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
        out.write(
            f'<tu{id}>\n<tuv xml:lang="{source}"><seg>{escape_text(pair.source)}</seg></tuv>\n'
            f'<tuv xml:lang="{target}"><seg>{escape_text(pair.target)}</seg></tuv>\n</tu>\n'
        )
        count += 1
    out.write("</body>\n</tmx>\n")
    return count
