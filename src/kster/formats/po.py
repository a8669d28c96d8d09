"""gettext PO catalogues, read into pairs and written.

Fuzzy entries are drafts. Untranslated and obsolete ones are rejections, so that an import can say how many
there were. A plural entry gives one pair for the singular and one for each plural form.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TextIO

from kster.errors import FormatError
from kster.formats.encoding import text_lines
from kster.formats.names import UniqueNames
from kster.formats.pair import Pair, Rejection, UnusableUnit
from kster.formats.po_grammar import (
    Entry,
    declared_charset,
    entries,
    header_fields,
    plural_forms,
    string_lines,
)
from kster.formats.text import check_pair, readable_id
from kster.text.languages import match_rank


def read_po(
    path: Path, source_lang: str | None, target_lang: str | None, tags: str
) -> Iterator[Pair | Rejection]:
    """The pairs of a catalogue. `tags` is ignored: PO has no inline elements."""
    singular_form = 0
    sound = 0
    for entry in entries(text_lines(path, declared_charset)):
        if entry.problem is not None:
            yield Rejection(str(path), entry.line, None, entry.problem)
            continue
        sound += 1
        if entry.is_header:
            singular_form = _header(path, entry.text("msgstr"), source_lang, target_lang)
            continue
        context = entry.text("msgctxt") or None
        try:
            for source, target in _translations(entry, singular_form):
                pair = check_pair(source, target, context, entry.line)
                pair = replace(pair, context=context)
                yield replace(pair, status="draft", remark="fuzzy") if entry.is_fuzzy else pair
        except UnusableUnit as reason:
            unit = readable_id(context or entry.text("msgid"))
            yield Rejection(str(path), entry.line, unit, str(reason))
    if not sound:
        raise FormatError(f"{path}: no PO entries (msgid and msgstr) in this file")


def _translations(entry: Entry, singular_form: int) -> Iterator[tuple[str, str]]:
    if entry.is_obsolete:
        raise UnusableUnit("obsolete")
    for form, own in sorted(entry.forms.items()):
        yield entry.source_of(form, singular_form), own.text


def _header(path: Path, header: str, source_lang: str | None, target_lang: str | None) -> int:
    """Check the languages that the header names; return the number of the form used for exactly one."""
    fields = header_fields(header)
    for wanted, name in ((source_lang, "X-Source-Language"), (target_lang, "Language")):
        declared = fields.get(name, "")
        if wanted and declared and not match_rank(wanted, declared):
            raise FormatError(f"{path}: wanted {wanted}, but its header says {name}: {declared}")
    return plural_forms(fields.get("Plural-Forms", ""))[1]


def write_po(out: TextIO, pairs: Iterable[Pair], source_lang: str, target_lang: str) -> int:
    """Write a catalogue; return the number of entries.

    A catalogue cannot hold two entries with the same text and context, but a memory may well hold two
    translations of one text: the second gets a context that ends in `-2`.
    """
    header = (
        "MIME-Version: 1.0\nContent-Type: text/plain; charset=UTF-8\nContent-Transfer-Encoding: 8bit\n"
        f"Language: {target_lang.replace('-', '_')}\nX-Source-Language: {source_lang.replace('-', '_')}\n"
        "X-Generator: kster\n"
    )
    _write_entry(out, None, "", header)
    contexts = UniqueNames()
    count = 0
    for pair in pairs:
        context = contexts.name(pair.context or pair.id or "", within=pair.source)
        if pair.status != "approved":
            out.write("#, fuzzy\n")
        _write_entry(out, context or None, pair.source, pair.target)
        count += 1
    return count


def _write_entry(out: TextIO, context: str | None, source: str, target: str) -> None:
    lines = string_lines("msgctxt", context) if context is not None else []
    lines += [*string_lines("msgid", source), *string_lines("msgstr", target)]
    out.write("\n".join(lines) + "\n\n")
