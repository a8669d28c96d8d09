"""XLIFF and TMX files to be translated: targets are added where they are missing, tags and all."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence

from kster.documents.document import Half, Text, coded, has_prose
from kster.documents.xml_places import Element, XmlText, both_tags, content_of, with_attributes
from kster.errors import FormatError
from kster.formats.language_picker import best_two
from kster.formats.xliff import FINISHED, MAX_CONTEXT, UNTRANSLATED
from kster.formats.xml import CODES
from kster.text.languages import AUTO, match_rank, may_be

MAX_LISTED = 20  # languages named in an error
_NAMESPACES = re.compile(r"""\sxmlns(?::[\w.-]+)?\s*=\s*(?:"[^"]*"|'[^']*')""")
_OPENING, _CLOSING = {"bpt", "bx", "sc"}, {"ept", "ex", "ec"}


class _TwoLanguages(XmlText, ABC):
    """Its subclasses `_look` at units and `_fill` in what is missing."""

    root = ""
    looked_at: tuple[str, ...] = ()

    def __init__(self, data: bytes, source: str, target: str) -> None:
        self._source, self._target = source, target
        self._fits = False  # whether any unit is in the languages
        self._found: set[str] = set()  # languages
        super().__init__(data)
        self.read(self.root, self.looked_at, self._look)
        if self._found and not self._fits:
            found = ", ".join(sorted(self._found)[:MAX_LISTED])
            raise FormatError(f"no unit can be translated {source} → {target}; languages found: {found}")

    @abstractmethod
    def _look(self, unit: Element) -> None:
        """Note what is to be translated in a unit, by `_fill`."""

    def _fill(
        self, source: Element, place: tuple[int, int], tag: str, before: str = "", after: str = ""
    ) -> None:
        """Put an element with this start tag and the source's translation into a place."""
        begin, end = both_tags(tag)

        def write(texts: Sequence[Text]) -> str:
            inside = "".join(self.places.markup(text, self.escape) for text in texts)
            return before + begin + inside + end + after

        where = next((name for e in source.around() if (name := e.get("id") or e.get("tuid"))), "")
        context = _context(source)
        self.places.add(*place, coded(_content(source)), write, where, context=context, fills=True)

    def _tag_like(self, element: Element, local: str) -> str:
        """The start tag of a new element beside another."""
        namespaces = "".join(_NAMESPACES.findall(self.start_tag(element)))
        return f"<{element.name.removesuffix(element.local)}{local}{namespaces}>"


class XliffDocument(_TwoLanguages):
    """XLIFF 1.2 and 2.x: units without a translation get one, marked as a machine's."""

    root = "xliff"
    looked_at = ("trans-unit", "segment")

    def _look(self, unit: Element) -> None:
        source, target = unit.child("source"), unit.child("target")
        if not self._is_in_these_languages(unit, target) or unit.inherited("translate") == "no":
            return
        if source is None or not has_prose(_content(source)) or self._is_done(unit, source, target):
            return
        self._declare(unit)
        # Until somebody has looked at it, it is not for a memory to learn from.
        marks = {}
        if unit.local == "trans-unit":
            marks = {"state": "needs-review-translation", "state-qualifier": "leveraged-mt"}
        else:
            self.set(unit, {"state": "initial", "subState": "kster:machine"})
        if target is not None:
            tag = with_attributes(self.start_tag(target), marks)
            self._fill(source, (target.start, target.end), tag)
        else:
            place = (unit.child("seg-source") or source).end
            tag = with_attributes(self._tag_like(source, "target"), marks)
            self._fill(source, (place, place), tag, before=self.space_before(source))

    def _is_in_these_languages(self, unit: Element, target: Element | None) -> bool:
        """What is not declared is taken to be right."""
        of_source = unit.inherited("source-language", "srcLang")
        own = target.get("xml:lang") if target is not None else None
        of_target = own or unit.inherited("target-language", "trgLang")
        self.declared_source = self.declared_source or of_source
        self._found.add(f"{of_source or '?'} → {of_target or '?'}")
        fits = may_be(self._source, of_source) and may_be(self._target, of_target)
        self._fits = self._fits or fits
        return fits

    def _is_done(self, unit: Element, source: Element, target: Element | None) -> bool:
        state = (target.get("state") if target is not None else None) or unit.get("state")
        if state in FINISHED or unit.get("approved") == "yes":
            return True
        if target is None or target.is_empty:
            return False
        is_copy = self.content(target) == self.content(source)
        return not is_copy or state not in UNTRANSLATED or unit.get("subState") is not None

    def _declare(self, unit: Element) -> None:
        """Make the file say its target language if it says its source language only."""
        for element in unit.around():
            for own, name in (("source-language", "target-language"), ("srcLang", "trgLang")):
                if element.get(own) and not element.get(name):
                    self.set(element, {name: self._target})


class TmxDocument(_TwoLanguages):
    """TMX: units without a translation get one."""

    root = "tmx"
    looked_at = ("tu", "header")
    _declared: str | None = None  # the source language, by the header

    def _look(self, unit: Element) -> None:
        if unit.local == "header":
            self._declared = unit.get("srclang")
            return
        wanted = self._source_of(unit)
        variants = [child for child in unit if child.local == "tuv"]
        codes = [variant.get("xml:lang") or variant.get("lang") or "" for variant in variants]
        self._found.update(filter(None, codes))
        ranks = [match_rank(wanted, code) if code else 0 for code in codes]
        if not any(ranks):
            return
        self._fits = True
        both = best_two(ranks, [match_rank(self._target, code) if code else 0 for code in codes])
        own = variants[both[0] if both else ranks.index(max(ranks))]
        source = own.child("seg")
        if source is None or not has_prose(_content(source)):
            return
        if both is None:
            self._add_variant(own, source, variants[-1].end)
        elif (segment := variants[both[1]].child("seg")) is None:
            self._add_segment(variants[both[1]], source)
        elif segment.is_empty:
            self._fill(source, (segment.start, segment.end), self.start_tag(segment))

    def _add_variant(self, own: Element, source: Element, place: int) -> None:
        name = "xml:lang" if own.get("xml:lang") else "lang"  # `lang` until TMX 1.1
        begin, end = both_tags(with_attributes(self._tag_like(own, "tuv"), {name: self._target}))
        before = self.space_before(own) + begin
        self._fill(source, (place, place), self._tag_like(source, "seg"), before, end)

    def _add_segment(self, variant: Element, source: Element) -> None:
        begin, end = both_tags(self.start_tag(variant))
        before = begin + self.content(variant)
        self._fill(source, (variant.start, variant.end), self._tag_like(source, "seg"), before, end)

    def _source_of(self, unit: Element) -> str:
        """The language to translate from."""
        declared = unit.get("srclang") or self._declared
        if declared and declared != "*all*":
            self.declared_source = self.declared_source or declared
        if self._source != AUTO:
            return self._source
        if self.declared_source is None:
            raise FormatError("it does not say which language is its source; name it instead of `auto`")
        return self.declared_source


def _context(source: Element) -> str | None:
    """As an import of the file would name it: what its unit is called, or else the unit's first note."""
    unit = next((e for e in source.around() if e.local in ("trans-unit", "unit")), None)
    if unit is None:
        return None
    note = unit.child("note") or next((e.child("note") for e in unit if e.local == "notes"), None)
    named = (unit.get("resname"), unit.get("name"), note.text if note is not None else None)
    return next((text.strip()[:MAX_CONTEXT] for text in named if text and text.strip()), None)


def _content(element: Element) -> list[str | Half]:
    """Texts and codes; elements that stand for the two ends of something are its ends."""
    pieces: list[str | Half] = []
    ends = {e.start: e for e in element if e.local in _OPENING | _CLOSING}
    for piece in content_of(element, _is_whole):
        if isinstance(piece, Half) and (end := ends.get(piece.span[0])) is not None:
            number = end.get("startRef") or end.get("i") or end.get("rid") or end.get("id")
            piece = Half(piece.span, "open" if end.local in _OPENING else "close", number)
        pieces.append(piece)
    return pieces


def _is_whole(node: Element) -> bool:
    """Whether an element is not to be looked into: code, comments, and what says so."""
    if not node.name or node.local in CODES or node.local == "cp":
        return True
    return node.get("translate") == "no" or node.get("mtype") == "protected"
