"""gettext catalogues to be translated: empty translations are filled in, every other line stays as it is.

The lines of the file are changed, rather than a catalogue that was read and is written anew: no tool wraps
lines, orders comments or places obsolete entries as another does.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import accumulate

from kster.documents.document import Places, Text, TextDocument, is_prose, plain, require_size
from kster.documents.encoded_text import EncodedText
from kster.documents.plain_text import paragraph_places
from kster.errors import FormatError
from kster.formats.po_grammar import (
    Entry,
    declared_charset,
    entries,
    header_fields,
    plural_forms,
    plural_rule,
    string_lines,
    with_charset,
)
from kster.text.codes import between_tabs
from kster.text.languages import may_be
from kster.text.wrapping import paragraphs


def open_po(data: bytes, source: str, target: str) -> TextDocument:
    return _Catalogue(data, source, target)


class _Catalogue(TextDocument):
    """What a machine has filled in is marked as fuzzy, until somebody has looked at it."""

    def __init__(self, data: bytes, source: str, target: str) -> None:
        file = EncodedText(data, declared_charset(data))
        require_size(len(file.text))
        super().__init__(file, Places(file.text))
        self._lines = file.text.split("\n")
        self._starts = [0, *accumulate(len(line) + 1 for line in self._lines)]
        all_entries = [entry for entry in entries(self._lines) if not entry.is_obsolete]
        for entry in all_entries:
            if entry.problem is not None:
                said = entry.problem.startswith("line ")
                raise FormatError(entry.problem if said else f"line {entry.line}: {entry.problem}")
        header = next((entry for entry in all_entries[:1] if entry.is_header), None)
        self._says = header.text("msgstr") if header else ""
        says = header_fields(self._says)
        self.declared_source = says.get("X-Source-Language") or None
        for wanted, name in ((source, "X-Source-Language"), (target, "Language")):
            if not may_be(wanted, says.get(name)):
                raise FormatError(f"wanted {wanted}, but its header says {name}: {says[name]}")
        rule = says.get("Plural-Forms", "")
        self._lacks_rule = not plural_forms(rule)[0] and any(
            "msgid_plural" in entry.fields for entry in all_entries
        )
        rule = plural_rule(target) if self._lacks_rule else rule
        for entry in all_entries:
            if not entry.is_header:
                self._look(entry, *plural_forms(rule))
        if self.units:
            self._declare(header, target, rule)

    def written(self, translations: Sequence[Text]) -> bytes:
        text = self.places.written(translations)
        if self.file.holds(text):
            return self.file.encode(text)
        return with_charset(text, "UTF-8").encode("utf-8")

    # -------------------------------------------------------------------------------------------------

    def _look(self, entry: Entry, forms: int, singular_form: int) -> None:
        """Note what an entry lacks."""
        before = len(self.units)
        is_plural = "msgid_plural" in entry.fields
        for form, own in entry.forms.items():
            if not own.text and form and form >= forms and self._lacks_rule:  # the language has no such form
                end = min(self._starts[own.end], len(self.file.text))
                self.places.change(self._starts[own.start], end, "")
            elif not own.text:
                keyword = f"msgstr[{form}]" if is_plural else "msgstr"
                source = entry.source_of(form, singular_form, forms)
                self._fill(entry, keyword, source, own.start, own.end)
        end = max(own.end for own in entry.forms.values())
        for form in range(len(entry.forms), forms if is_plural else 0):
            self._fill(entry, f"msgstr[{form}]", entry.source_of(form, singular_form, forms), end, end)
        if len(self.units) > before:
            self._mark_fuzzy(entry)

    def _fill(self, entry: Entry, keyword: str, source: str, start: int, end: int) -> None:
        """Note a translation that is to come into the lines from start to end."""
        if not is_prose(source):
            return
        bare = source.strip()
        ahead, _, behind = source.partition(bare)  # gettext wants the same line breaks at both ends
        inner = paragraph_places(bare)
        is_wrapped = any(paragraph.width for paragraph in paragraphs(bare))
        texts: list[Text] = [unit.text for unit in inner.units] if is_wrapped else [between_tabs(bare)]

        def write(done: Sequence[Text]) -> str:
            inside = inner.written(done) if is_wrapped else plain(done[0]).strip()
            return self._as_lines(string_lines(keyword, ahead + inside + behind), start, end)

        where, context = f"line {entry.line}", entry.text("msgctxt") or None
        begin, behind_it = self._starts[start], self._end_of(start, end)
        self.places.add(begin, behind_it, texts, write, where, context=context, fills=True)

    def _mark_fuzzy(self, entry: Entry) -> None:
        if entry.is_fuzzy:
            return
        if entry.flags:
            place = self._starts[entry.flags[0]] + self._lines[entry.flags[0]].index("#,") + 2
            self.places.change(place, place, " fuzzy,")
        else:
            place = self._starts[entry.first]
            self.places.change(place, place, f"#, fuzzy{self.file.line_end}")

    def _declare(self, header: Entry | None, target: str, rule: str) -> None:
        """Make the header say what it does not: the language, the charset, which forms there are."""
        language = f"Language: {target.replace('-', '_')}\n"
        says = self._says.rstrip("\n") + "\n" if header else ""
        if declared_charset(says) is None:
            says = with_charset(says, "UTF-8")
        if not re.search(r"^Language:[ \t]*\S", says, re.MULTILINE):
            says, found = re.subn(r"^Language:.*\n", language, says, count=1, flags=re.MULTILINE)
            says += "" if found else language
        if self._lacks_rule:
            says = re.sub(r"^Plural-Forms:.*\n", "", says, flags=re.MULTILINE) + f"Plural-Forms: {rule}\n"
        if header is None:
            says += "Content-Transfer-Encoding: 8bit\n"
            new = self._as_lines(['msgid ""', *string_lines("msgstr", says), ""], 0, 0)
            self.places.change(0, 0, new, before_others=True)
        elif says.strip() != self._says.strip():
            own = header.fields["msgstr"]
            new = self._as_lines(string_lines("msgstr", says), own.start, own.end)
            self.places.change(self._starts[own.start], self._end_of(own.start, own.end), new)

    def _as_lines(self, new: list[str], start: int, end: int) -> str:
        """New lines in the place of others, or before a line; each ends as the file's own."""
        text = self.file.line_end.join(new)
        return text if end > start else text + self.file.line_end

    def _end_of(self, start: int, end: int) -> int:
        """Where lines end, without the line end of the last; where a line begins if there are none."""
        if start == end:
            return self._starts[start]
        last = self._lines[end - 1]
        return self._starts[end - 1] + len(last.removesuffix("\r"))
