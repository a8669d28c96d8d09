"""TBX, the exchange format of term bases: TBX-Core and TBX-Basic, version 3 (`<tbx>`) and 2 (`<martif>`).

An entry gives a term for each of its source words, every one with all target words of the entry; what is
deprecated or superseded is left out. Files are written as TBX-Basic version 2, which every tool reads. What
TBX has no category for stands in private ones (`x-case`, `x-translate`, `x-inside-words`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from kster.errors import FormatError, KsterError
from kster.formats.encoding import text_chunks
from kster.formats.language_picker import LanguagePicker
from kster.formats.pair import Rejection, UnusableUnit
from kster.formats.text import readable_id
from kster.formats.xml import (
    XML_LANG,
    declared_encoding,
    escape_attribute,
    escape_text,
    line_of,
    local_name,
    read_units,
)
from kster.terms.term import GENDERS, Term, term
from kster.text.languages import bcp47

if TYPE_CHECKING:
    from lxml.etree import _Element

LANGUAGE_SECTIONS = ("langSet", "langSec")  # of versions 2 and 3
TERM_SECTIONS = ("tig", "ntig", "termSec")
NOT_USED = re.compile(r"deprecated|superseded|obsolete", re.IGNORECASE)
PREFERRED = re.compile(r"preferred", re.IGNORECASE)


def read_tbx(path: Path, source_lang: str, target_lang: str) -> Iterator[Term | Rejection]:
    picker = LanguagePicker(path, source_lang, target_lang)
    for entry in read_units(path, _root(path), ("termEntry", "conceptEntry")):
        id = entry.get("id")
        try:
            yield from _terms(entry, picker)
        except (UnusableUnit, KsterError) as reason:
            yield Rejection(str(path), line_of(entry), readable_id(id), str(reason))
    picker.require_a_match()


def _root(path: Path) -> str:
    begin = next(text_chunks(path, declared_encoding), "")
    found = re.search(r"<(?:\w+:)?(martif|tbx)\b", begin)
    if found is None:
        raise FormatError(f"{path}: not a TBX file (its outermost element is neither <tbx> nor <martif>)")
    return found.group(1)


def _terms(entry: _Element, picker: LanguagePicker) -> list[Term]:
    sections = [node for node in entry if local_name(node) in LANGUAGE_SECTIONS]
    chosen = picker.pick([section.get(XML_LANG) or section.get("lang") or "" for section in sections])
    sources, targets = (_words(sections[i]) for i in chosen)
    if not sources or not targets:
        raise UnusableUnit(f"no {'target' if sources else 'source'} term that is still in use")
    notes = [_text(node) for node in entry.iter() if local_name(node) == "note"]
    return [
        term(
            text,
            [target for target, _ in targets],
            part_of_speech=facts.get("partOfSpeech") or targets[0][1].get("partOfSpeech"),
            case=facts.get("x-case", "any"),
            note=" ".join(" ".join(notes).split()),
            translate=facts.get("x-translate") != "no",
            inside_words=facts.get("x-inside-words") == "yes",
            gender=_gender(targets[0][1]),
        )
        for text, facts in sources
    ]


def _gender(facts: dict[str, str]) -> str | None:
    """TBX also knows terms of other or several genders."""
    named = facts.get("grammaticalGender", "").strip().lower()
    return named if named in GENDERS else None


def _words(section: _Element) -> list[tuple[str, dict[str, str]]]:
    """The words of one language, the preferred ones first, each with what is said about it."""
    words = []
    for node in section:
        if local_name(node) not in TERM_SECTIONS:
            continue
        text, facts = "", {}
        for part in node.iter():
            name = local_name(part)
            if name == "term":
                text = _text(part)
            elif name == "termNote":
                facts[part.get("type", "")] = _text(part)
            elif name:  # version 3 writes categories as elements, too: <min:partOfSpeech>
                facts.setdefault(name, _text(part))
        status = facts.get("administrativeStatus") or facts.get("normativeAuthorization") or ""
        if text.strip() and not NOT_USED.search(status):
            words.append((text, facts, PREFERRED.search(status) is None))
    return [(text, facts) for text, facts, _ in sorted(words, key=lambda word: word[2])]


def _text(node: _Element) -> str:
    return " ".join("".join(str(piece) for piece in node.itertext()).split())


def write_tbx(out: TextIO, terms: Iterable[Term], source_lang: str, target_lang: str) -> int:
    """Write a TBX-Basic document; returns the number of terms."""
    source, target = escape_attribute(bcp47(source_lang)), escape_attribute(bcp47(target_lang))
    out.write(
        '<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE martif SYSTEM "TBXBasiccoreStructV02.dtd">\n'
        f'<martif type="TBX-Basic" xml:lang="{source}">\n<martifHeader><fileDesc><sourceDesc>'
        "<p>Written by KSTER</p></sourceDesc></fileDesc></martifHeader>\n<text><body>\n"
    )
    count = 0
    for count, one in enumerate(terms, 1):
        out.write(f'<termEntry id="t{one.id or count}">\n')
        if one.note:
            out.write(f"<note>{escape_text(one.note)}</note>\n")
        out.write(f'<langSet xml:lang="{source}">{_tig(one.source, _facts(one))}</langSet>\n')
        part = {"partOfSpeech": _tbx_name(one)} if one.part_of_speech else {}
        ranks = ["preferredTerm-admn-sts", *["admittedTerm-admn-sts"] * (len(one.targets) - 1)]
        gender = {"grammaticalGender": one.gender} if one.gender else {}
        tigs = (
            _tig(text, part | gender | {"administrativeStatus": rank})
            for text, rank in zip(one.targets, ranks, strict=True)
        )
        out.write(f'<langSet xml:lang="{target}">{"".join(tigs)}</langSet>\n</termEntry>\n')
    out.write("</body></text>\n</martif>\n")
    return count


def _facts(one: Term) -> dict[str, str]:
    facts = {"partOfSpeech": _tbx_name(one)} if one.part_of_speech else {}
    if one.case == "exact":
        facts["x-case"] = one.case
    if not one.translate:
        facts["x-translate"] = "no"
    if one.inside_words:
        facts["x-inside-words"] = "yes"
    return facts


def _tbx_name(one: Term) -> str:
    return "properNoun" if one.part_of_speech == "proper noun" else one.part_of_speech or ""


def _tig(text: str, facts: dict[str, str]) -> str:
    notes = "".join(
        f'<termNote type="{name}">{escape_text(value)}</termNote>' for name, value in facts.items()
    )
    return f"<tig><term>{escape_text(text)}</term>{notes}</tig>"
