"""XLIFF and TMX files to be translated: targets are added where they are missing, tags and all."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from kster.errors import KsterError
from kster.formats.languages import match_rank
from kster.formats.xml import XML_LANG, local_name
from kster.server.inline_text import InlineText, again, content_of, first_round, is_prose, put_all, write_back

if TYPE_CHECKING:
    from lxml.etree import _Element

# Elements whose text is some program's code rather than prose.
CODE = {"ph", "bpt", "ept", "it", "ut", "x", "bx", "ex", "sc", "ec", "cp"}
UNTRANSLATED = ("new", "needs-translation", "needs-l10n", "initial")  # whatever their target says


def parse(data: bytes, root: str) -> _Element:
    """An XML file without entities of its own, and with the expected root."""
    from lxml import etree

    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, huge_tree=False, load_dtd=False, remove_comments=False
    )
    try:
        document = etree.fromstring(data, parser)
    except (etree.XMLSyntaxError, ValueError) as error:
        raise KsterError(f"not well-formed XML ({error})") from None
    if local_name(document) != root:
        raise KsterError(f"its root is <{local_name(document)}>, not <{root}>")
    if any(node.tag is etree.Entity for node in document.iter()):
        raise KsterError("it uses entities, which are not accepted")
    return document


class _XmlDocument:
    """Filled by its children: `_texts` are those of the targets to be."""

    def __init__(self, root: _Element) -> None:
        self._root = root
        self._texts: list[InlineText] = []

    @property
    def pieces(self) -> list[str]:
        return [piece for text in self._texts for piece in first_round(text)]

    def again(self, translations: list[str]) -> list[str]:
        return again(self._texts, translations)

    def with_translations(self, translations: list[str], more: Sequence[str] = ()) -> bytes:
        from lxml import etree

        put_all(self._texts, translations, more)
        return etree.tostring(self._root.getroottree(), encoding="UTF-8", xml_declaration=True)

    def _fill(self, target: _Element, source: _Element) -> None:
        """Make the target a copy of the source, whose texts will be replaced."""
        target.text = source.text
        target[:] = [copy.deepcopy(node) for node in source]
        tokens = list(content_of(target, _is_whole))
        if any(isinstance(token, str) and is_prose(token) for token in tokens):
            put = partial(write_back, target, None, list(target))
            self._texts.append(InlineText(tokens, put, keep_lines=True))


class XliffDocument(_XmlDocument):
    """XLIFF 1.2 and 2.x: units without a translation get one."""

    def __init__(self, data: bytes, source: str, target: str) -> None:
        root = parse(data, "xliff")
        super().__init__(root)
        self._namespace = root.tag.rpartition("}")[0] + "}" if "}" in root.tag else ""
        for file in [root, *(node for node in root if local_name(node) == "file")]:
            for name in ("target-language", "trgLang"):
                own = "source-language" if name == "target-language" else "srcLang"
                if own in file.attrib and name not in file.attrib:
                    file.set(name, target)
        for unit in root.iter("{*}trans-unit", "{*}segment", "trans-unit", "segment"):
            self._add(unit)

    def _add(self, unit: _Element) -> None:
        from lxml import etree

        source = _child(unit, "source")
        target = _child(unit, "target")
        if source is None or _inherited(unit, "translate") == "no":
            return
        written = target is not None and "".join(map(str, target.itertext())).strip()
        state = target.get("state") if target is not None else None
        if written and (state or unit.get("state")) not in UNTRANSLATED:
            return
        if target is None:
            target = etree.Element(f"{self._namespace}target")
            source.addnext(target)
            target.tail = source.tail
        if local_name(unit) == "trans-unit":
            # Until somebody has looked at it, it is not for a memory to learn from.
            target.set("state", "needs-review-translation")
            target.set("state-qualifier", "leveraged-mt")
        elif unit.get("state") in UNTRANSLATED:
            unit.set("state", "translated")
        self._fill(target, source)


class TmxDocument(_XmlDocument):
    """TMX: units without a translation get one."""

    def __init__(self, data: bytes, source: str, target: str) -> None:
        from lxml import etree

        root = parse(data, "tmx")
        super().__init__(root)
        for unit in root.iter("tu"):
            variants = {v.get(XML_LANG) or v.get("lang") or "": v for v in unit if local_name(v) == "tuv"}
            own = next((v for code, v in variants.items() if code and match_rank(source, code)), None)
            there = next((v for code, v in variants.items() if code and match_rank(target, code)), None)
            segment = _child(own, "seg") if own is not None else None
            if own is None or segment is None:
                continue
            if there is None:
                there = etree.SubElement(unit, "tuv")
                there.set(XML_LANG, target)
            filled = _child(there, "seg")
            if filled is None:
                filled = etree.SubElement(there, "seg")
            if not "".join(map(str, filled.itertext())).strip():
                self._fill(filled, segment)


def _is_whole(node: Any) -> bool:
    """Whether an element is not to be looked into: code, comments, and what says so."""
    if not isinstance(node.tag, str) or local_name(node) in CODE:
        return True
    return node.get("translate") == "no" or node.get("mtype") == "protected"


def _inherited(element: _Element, name: str) -> str | None:
    """An attribute of the element or of the nearest one around it that has it."""
    return next((value for node in (element, *element.iterancestors()) if (value := node.get(name))), None)


def _child(element: _Element, name: str) -> _Element | None:
    return next((node for node in element if isinstance(node.tag, str) and local_name(node) == name), None)
