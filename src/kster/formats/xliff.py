"""XLIFF 1.2 and 2.x, the exchange format of translation jobs.

Which units count as translated:

| | approved | draft |
|---|---|---|
| 1.2 | a target whose `state` is absent, `translated`, `signed-off`, `final`, `needs-adaptation`, … | \
`new`, `needs-translation`, `needs-l10n`, all `needs-review-…`, and a `state-qualifier` that names a machine \
or a fuzzy match without a finished state; unless `approved="yes"` |
| 2.x | a target whose `state` is absent, `translated`, `reviewed` or `final` | `initial` |

Unfinished targets that are copies of their sources are rejected. `approved="no"` is XLIFF 1.2's default and
says nothing about a target. Units marked `translate="no"` are rejected: their target is a copy. A unit's
context is its `resname` (1.2) or `name` (2.x), or else its first note.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from kster.errors import FormatError
from kster.formats.language_picker import MAX_LISTED
from kster.formats.names import UniqueNames
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
from kster.text.languages import match_rank

if TYPE_CHECKING:
    from lxml.etree import _Element

# States of a target, or of a segment: that it may be a mere copy, is to be looked at, or needs nothing more.
UNTRANSLATED = frozenset({"new", "needs-translation", "needs-l10n", "initial"})
_TO_REVIEW = frozenset({"needs-review-translation", "needs-review-l10n", "needs-review-adaptation"})
_MACHINE_MADE = frozenset({"mt-suggestion", "leveraged-mt", "fuzzy-match", "leveraged-inherited"})
MAX_CONTEXT = 1_000  # characters
FINISHED = frozenset({"translated", "reviewed", "signed-off", "final"})


def read_xliff(
    path: Path, source_lang: str | None, target_lang: str | None, tags: str
) -> Iterator[Pair | Rejection]:
    """One pair from each translated `<trans-unit>` (1.2) or `<segment>` (2.x)."""
    languages = _Languages(path, source_lang, target_lang)
    for element, id in _segments(path):
        try:
            yield _pair(element, id, languages, tags)
        except UnusableUnit as reason:
            yield Rejection(str(path), line_of(element), readable_id(id), str(reason))
    languages.require_a_match()


def _segments(path: Path) -> Iterator[tuple[_Element, str | None]]:
    """Each translatable element with its id; for 2.x that is the unit's, with the segment's if it has one."""
    units = ("trans-unit", "unit")
    for unit in read_units(path, root="xliff", units=units, containers=("group", "file")):
        id = unit.get("id")
        if local_name(unit) == "trans-unit":
            yield unit, id
            continue
        for segment in unit:
            if local_name(segment) == "segment":
                own = segment.get("id")
                yield segment, "/".join(filter(None, (id, own))) or None


def _pair(element: _Element, id: str | None, languages: _Languages, tags: str) -> Pair:
    source, target = child(element, "source"), child(element, "target")
    languages.require(element, target)
    if _inherited(element, "translate") == "no":
        raise UnusableUnit("marked as not to be translated")
    if source is None:
        raise UnusableUnit("no <source>")
    if target is None:
        raise UnusableUnit("untranslated")
    state = target.get("state") or (element.get("state") if local_name(element) == "segment" else None)
    pair = check_pair(segment_text(source, tags), segment_text(target, tags), id, line_of(element))
    remark = _remark(state, target.get("state-qualifier")) if element.get("approved") != "yes" else None
    if remark and pair.source == pair.target:
        raise UnusableUnit(remark)
    status = "draft" if remark else "approved"
    return replace(pair, context=_context(element), status=status, remark=remark)


def _remark(state: str | None, qualifier: str | None) -> str | None:
    """Why a target is only a draft; None where it is not."""
    if state in UNTRANSLATED | _TO_REVIEW:
        return f"not finished (state {state})"
    if qualifier in _MACHINE_MADE and state not in FINISHED:
        return f"not finished (state-qualifier {qualifier})"
    return None


def _context(element: _Element) -> str | None:
    """element: a `<trans-unit>`, or a `<segment>` of a `<unit>`."""
    unit = element if local_name(element) == "trans-unit" else element.getparent()
    if unit is None:
        return None
    notes = (node.text or "" for node in unit.iter() if local_name(node) == "note")
    named = (unit.get("resname"), unit.get("name"), *notes)
    return next((printable(text.strip()[:MAX_CONTEXT]) for text in named if text and text.strip()), None)


def _inherited(element: _Element, *names: str) -> str | None:
    """The value of the first of these attributes on the element or its nearest ancestor that has one."""
    for node in (element, *element.iterancestors()):
        for name in names:
            value = node.get(name)
            if value:
                return value
    return None


class _Languages:
    """Checks units against the wanted languages. What a file does not declare is taken to be right."""

    def __init__(self, path: Path, source_lang: str | None, target_lang: str | None) -> None:
        self._path = path
        self._wanted = (source_lang, target_lang)
        self._found: set[str] = set()
        self._matched = False

    def require(self, element: _Element, target: _Element | None) -> None:
        """`UnusableUnit` unless the element's languages serve the wanted ones."""
        own = target.get(XML_LANG) if target is not None else None
        found = (
            _inherited(element, "source-language", "srcLang"),
            own or _inherited(element, "target-language", "trgLang"),
        )
        for wanted, declared in zip(self._wanted, found, strict=True):
            if wanted and declared and not match_rank(wanted, declared):
                between = f"{found[0] or '?'} → {found[1] or '?'}"
                if len(self._found) < MAX_LISTED:
                    self._found.add(between)
                raise UnusableUnit(f"is {between}, not {self._wanted[0] or '?'} → {self._wanted[1] or '?'}")
        self._matched = True

    def require_a_match(self) -> None:
        """At the end of a file: an error for people if it had units but none in these languages."""
        if self._found and not self._matched:
            wanted = f"{self._wanted[0] or '?'} → {self._wanted[1] or '?'}"
            found = ", ".join(sorted(self._found)[:20])
            raise FormatError(f"{self._path}: no unit is {wanted}. Languages found: {found}")


def write_xliff(out: TextIO, pairs: Iterable[Pair], source_lang: str, target_lang: str) -> int:
    """Write an XLIFF 1.2 document; return the number of units."""
    out.write(
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">\n'
        f'<file original="memory" datatype="plaintext" source-language="{escape_attribute(source_lang)}" '
        f'target-language="{escape_attribute(target_lang)}">\n<body>\n'
    )
    ids = UniqueNames()
    count = 0
    for count, pair in enumerate(pairs, 1):
        id = escape_attribute(ids.name(pair.id or str(count)))
        name = f' resname="{escape_attribute(pair.context)}"' if pair.context else ""
        is_approved = pair.status == "approved"
        state = "translated" if is_approved else "needs-review-translation"
        out.write(
            f'<trans-unit id="{id}"{name} approved="{"yes" if is_approved else "no"}" xml:space="preserve">\n'
            f"<source>{escape_text(pair.source)}</source>\n"
            f'<target state="{state}">{escape_text(pair.target)}</target>\n</trans-unit>\n'
        )
    out.write("</body>\n</file>\n</xliff>\n")
    return count


def write_xliff2(out: TextIO, pairs: Iterable[Pair], source_lang: str, target_lang: str) -> int:
    """Write an XLIFF 2.0 document; return the number of units.

    A 2.0 id must be an XML name token. An id that is not one stays readable as the unit's `name`.
    """
    out.write(
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<xliff version="2.0" xmlns="urn:oasis:names:tc:xliff:document:2.0" '
        f'srcLang="{escape_attribute(source_lang)}" trgLang="{escape_attribute(target_lang)}">\n'
        '<file id="memory">\n'
    )
    ids = UniqueNames()
    count = 0
    for count, pair in enumerate(pairs, 1):
        wanted = pair.id or str(count)
        id = ids.name(re.sub(r"[^\w.-]", "_", wanted))
        named = pair.context or (wanted if id != wanted else "")
        name = f' name="{escape_attribute(named)}"' if named else ""
        state = "translated" if pair.status == "approved" else "initial"
        out.write(
            f'<unit id="{id}"{name} xml:space="preserve">\n<segment state="{state}">\n'
            f"<source>{escape_text(pair.source)}</source>\n"
            f"<target>{escape_text(pair.target)}</target>\n</segment>\n</unit>\n"
        )
    out.write("</file>\n</xliff>\n")
    return count
