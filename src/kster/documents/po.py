"""gettext catalogues to be translated: empty translations are filled in, every other line stays as it is.

The lines of the file are changed, rather than a catalogue that was read and is written anew: no tool wraps
lines, orders comments or places obsolete entries as another does.
"""

from __future__ import annotations

import gettext
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from kster.documents.encoded_text import FileText
from kster.errors import KsterError
from kster.text.inline import is_prose, storable
from kster.text.languages import may_be

_CHARSET = re.compile(r"charset=([A-Za-z][\w.-]*)")
# A keyword with a string, or the continuation of a string.
_STRING = re.compile(r'(?:(msgctxt|msgid|msgid_plural|msgstr(?:\[\d+\])?)\s*)?"((?:[^"\\]|\\.)*)"')
_SPACE = " \t\r\f"  # no line break of Unicode's: those are characters like others


@dataclass(slots=True)
class _Field:
    """What a keyword is given; its lines are those from start up to end."""

    text: str
    start: int
    end: int


@dataclass(slots=True)
class _Entry:
    """flags: the lines that begin with `#,`; first: where these would come if there are none."""

    flags: list[int]
    first: int
    fields: dict[str, _Field] = field(default_factory=dict)

    @property
    def forms(self) -> dict[str, _Field]:
        return {name: own for name, own in self.fields.items() if name.startswith("msgstr")}

    @property
    def is_header(self) -> bool:
        return not self.fields["msgid"].text and "msgctxt" not in self.fields and "msgstr" in self.fields


@dataclass(slots=True)
class _Missing:
    """A form to be filled in."""

    entry: _Entry
    keyword: str
    source: str


class PoDocument:
    """What a machine has filled in is marked as fuzzy, until somebody has looked at it."""

    def __init__(self, data: bytes, source: str, target: str) -> None:
        self._target = target
        self._file = FileText(data, _declared_charset(data))
        self._lines = self._file.text.split("\n")
        entries = list(_entries(self._lines))
        self._header = next((entry for entry in entries[:1] if entry.is_header), None)
        says = dict(re.findall(r"^([\w-]+):[ \t]*(.*?)[ \t]*$", self._says, re.MULTILINE))
        self.declared_source: str | None = says.get("X-Source-Language") or None
        for wanted, name in ((source, "X-Source-Language"), (target, "Language")):
            if not may_be(wanted, says.get(name)):
                raise KsterError(f"wanted {wanted}, but its header says {name}: {says[name]}")
        singular = _singular_form(says.get("Plural-Forms", ""))
        self._missing = [missing for entry in entries for missing in _missing(entry, singular)]

    @property
    def pieces(self) -> list[str]:
        return [missing.source for missing in self._missing]

    def again(self, translations: list[str]) -> list[str]:
        return []

    def with_translations(self, translations: list[str], more: Sequence[str] = ()) -> bytes:
        if not self._missing:
            return self._file.encode(self._file.text)
        edits = _Edits(self._lines, "\r" if self._file.line_end == "\r\n" else "")
        done = [storable(translation) for translation in translations]
        for missing, translation in zip(self._missing, done, strict=True):
            text = _with_ends_of(missing.source, translation)
            edits.fill(missing.entry.fields[missing.keyword], missing.keyword, text)
            edits.mark_fuzzy(missing.entry)
        kept = self._file.holds("".join(done))
        self._declare(edits, None if kept and self._charset not in (None, "CHARSET") else "UTF-8")
        text = "\n".join(edits.lines())
        return self._file.encode(text) if kept else text.encode("utf-8")

    # -------------------------------------------------------------------------------------------------

    @property
    def _says(self) -> str:
        return self._header.fields["msgstr"].text if self._header else ""

    @property
    def _charset(self) -> str | None:
        found = _CHARSET.search(self._says)
        return found[1] if found else None

    def _declare(self, edits: _Edits, charset: str | None) -> None:
        """Make the header say the language if it says none, and the charset if it is another now."""
        language = f"Language: {self._target.replace('-', '_')}\n"
        if self._header is None:
            header = f"Content-Type: text/plain; charset=UTF-8\nContent-Transfer-Encoding: 8bit\n{language}"
            edits.insert(0, ['msgid ""', *_string_lines("msgstr", header), ""])
            return
        says = self._says.rstrip("\n") + "\n"
        if charset:
            says, found = _CHARSET.subn(f"charset={charset}", says, count=1)
            says += "" if found else f"Content-Type: text/plain; charset={charset}\n"
        if not re.search(r"^Language:[ \t]*\S", says, re.MULTILINE):
            says, found = re.subn(r"^Language:.*\n", language, says, count=1, flags=re.MULTILINE)
            says += "" if found else language
        if says.strip() != self._says.strip():
            edits.fill(self._header.fields["msgstr"], "msgstr", says)


class _Edits:
    """Changes to the lines of a file, whose places are those of the unchanged lines."""

    def __init__(self, lines: list[str], line_end: str) -> None:
        self._lines = lines
        self._line_end = line_end  # what comes before each line feed
        self._changes: dict[tuple[int, int], list[str]] = {}

    def insert(self, at: int, new: list[str]) -> None:
        """What is inserted last at a place comes first."""
        later = self._changes.get((at, at), [])
        self._changes[at, at] = [line + self._line_end for line in new] + later

    def fill(self, field: _Field, keyword: str, text: str) -> None:
        new = [line + self._line_end for line in _string_lines(keyword, text)]
        if not self._lines[field.end - 1].endswith("\r"):  # perhaps the last line of the file
            new[-1] = new[-1].removesuffix("\r")
        self._changes[field.start, field.end] = new

    def mark_fuzzy(self, entry: _Entry) -> None:
        if any(re.search(r"\bfuzzy\b", self._lines[i]) for i in entry.flags):
            return
        if entry.flags:
            i = entry.flags[0]
            self._changes[i, i + 1] = [re.sub(r"#,\s*", "#, fuzzy, ", self._lines[i], count=1)]
        else:
            self.insert(entry.first, ["#, fuzzy"])

    def lines(self) -> list[str]:
        lines: list[str] = []
        done = 0
        for (start, end), new in sorted(self._changes.items()):
            lines += self._lines[done:start] + new
            done = end
        return lines + self._lines[done:]


def _entries(lines: list[str]) -> Iterator[_Entry]:
    """Raises KsterError where a line is not PO. Obsolete entries are comments."""
    import polib

    entry: _Entry | None = None
    flags: list[int] = []
    first: int | None = None
    for number, line in enumerate(lines):
        bare = line.strip(_SPACE)
        if bare.startswith("#") or not bare:
            if bare.startswith("#~"):
                flags, first = [], None
            elif bare.startswith("#,"):
                flags.append(number)
            elif bare.startswith("#|") and first is None:
                first = number
            continue
        found = _STRING.fullmatch(bare)
        if found is None:
            raise KsterError(f"line {number + 1} is neither a comment nor a quoted PO string")
        keyword, text = found[1], polib.unescape(found[2])
        if keyword == "msgctxt" or (keyword == "msgid" and (entry is None or "msgid" in entry.fields)):
            if entry is not None:
                yield _complete(entry)
            entry = _Entry(flags, number if first is None else first)
            flags, first = [], None
        if entry is None or not (keyword or entry.fields) or keyword in entry.fields:
            raise KsterError(f"line {number + 1} belongs to no entry (msgid and msgstr)")
        if keyword:
            entry.fields[keyword] = _Field(text, number, number + 1)
        else:
            last = list(entry.fields.values())[-1]
            last.text += text
            last.end = number + 1
    if entry is not None:
        yield _complete(entry)


def _complete(entry: _Entry) -> _Entry:
    if "msgid" not in entry.fields or not entry.forms:
        line = next(iter(entry.fields.values())).start + 1
        raise KsterError(f"line {line}: this entry has no {'msgstr' if 'msgid' in entry.fields else 'msgid'}")
    return entry


def _missing(entry: _Entry, singular_form: str) -> Iterator[_Missing]:
    forms = entry.forms
    plural = entry.fields.get("msgid_plural")
    for keyword, form in forms.items():
        # A language with one form only says it for any number: that is what the plural says.
        is_singular = plural is None or (keyword == singular_form and len(forms) > 1)
        source = entry.fields["msgid"].text if is_singular or plural is None else plural.text
        if not form.text and is_prose(source):
            yield _Missing(entry, keyword, source)


def _singular_form(rule: str) -> str:
    """The keyword of the form for exactly one."""
    plural = re.search(r"plural\s*=\s*([^;]+)", rule)
    try:
        return f"msgstr[{int(gettext.c2py(plural[1].strip())(1)) if plural else 0}]"
    except (ValueError, ArithmeticError):
        return "msgstr[0]"  # a rule nobody could use; in almost all languages this is the singular


def _string_lines(keyword: str, text: str) -> list[str]:
    """A string as PO has it, broken where the text has line breaks."""
    import polib

    parts = [f'"{polib.escape(part)}"' for part in re.findall(r"[^\n]*\n|[^\n]+", text)] or ['""']
    return [f"{keyword} {parts[0]}"] if len(parts) == 1 else [f'{keyword} ""', *parts]


def _with_ends_of(source: str, translation: str) -> str:
    """gettext demands that both begin and end with a line break, or neither; spaces are kept, too."""
    bare = source.strip()
    before, _, after = source.partition(bare)
    return before + translation.strip() + after


def _declared_charset(data: bytes) -> str | None:
    found = _CHARSET.search(data[:8192].decode("ascii", "ignore"))
    return None if found is None or found[1] == "CHARSET" else found[1]
