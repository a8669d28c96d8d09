"""The grammar of gettext catalogues: lines ↔ entries. Pairs are read by it, and catalogues filled in.

A line that cannot be right spoils its entry only, which says so (`Entry.problem`).
"""

from __future__ import annotations

import gettext
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from kster.text.languages import match_rank

_SPACE = " \t\r\f"  # no line break of Unicode's: those are characters like others
_COMMENT = re.compile(r"#(?!,|~[^|])")  # any comment but flags and obsolete entries
_KEYWORD = re.compile(r"(msgctxt|msgid_plural|msgid|msgstr(?:\[\d+\])?)(?!\w)")  # of a broken line, too
_STRING = re.compile(r'(?:(msgctxt|msgid_plural|msgid|msgstr(?:\[\d+\])?)\s*)?"((?:[^"\\]|\\.)*)"')
_CHARSET = re.compile(r"charset=([A-Za-z][\w.-]*)")
_UNSAFE = re.compile(r"[\x00\r\ud800-\udfff]")
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}
_ESCAPES |= {"\v": "\\v", "\b": "\\b", "\f": "\\f", "\a": "\\a"}
_MEANINGS = {escape[1]: character for character, escape in _ESCAPES.items()}

_PLURAL_RULES = {
    "nplurals=1; plural=0;": "id ja ko ms th vi zh",
    "nplurals=2; plural=(n > 1);": "fr pt-BR fa hi tr",
    "nplurals=3; plural=(n==1 ? 0 : n>=2 && n<=4 ? 1 : 2);": "cs sk",
    "nplurals=3; plural=(n==1 ? 0 : n%10>=2 && n%10<=4 && (n%100<12 || n%100>14) ? 1 : 2);": "pl",
    "nplurals=3; plural=(n%10==1 && n%100!=11 ? 0 : n%10>=2 && n%10<=4 && (n%100<12 || n%100>14) ? 1 : 2);": (
        "be bs hr ru sr uk"
    ),
    "nplurals=3; plural=(n%10==1 && n%100!=11 ? 0 : n%10>=2 && (n%100<12 || n%100>19) ? 1 : 2);": "lt",
    "nplurals=3; plural=(n%10==1 && n%100!=11 ? 0 : n != 0 ? 1 : 2);": "lv",
    "nplurals=3; plural=(n==1 ? 0 : n==0 || (n%100>0 && n%100<20) ? 1 : 2);": "ro",
    "nplurals=4; plural=(n%100==1 ? 0 : n%100==2 ? 1 : n%100==3 || n%100==4 ? 2 : 3);": "sl",
    "nplurals=6; plural=(n<3 ? n : n%100>=3 && n%100<=10 ? 3 : n%100>=11 ? 4 : 5);": "ar",
}
_USUAL_RULE = "nplurals=2; plural=(n != 1);"


@dataclass(slots=True)
class Field:
    """What a keyword is given; its lines are those from start up to end, the first line of a file being 0."""

    parts: list[str]
    start: int
    end: int

    @property
    def text(self) -> str:
        return "".join(self.parts)


@dataclass(slots=True)
class Entry:
    """line: its number, from 1; flags: the lines that begin with `#,`; first: where these would come if there
    are none."""

    line: int
    first: int = 0
    flags: list[int] = field(default_factory=list)
    fields: dict[str, Field] = field(default_factory=dict)
    is_fuzzy: bool = False
    is_obsolete: bool = False
    is_complete: bool = False  # a msgstr was seen
    problem: str | None = None

    def text(self, keyword: str) -> str:
        return self.fields[keyword].text if keyword in self.fields else ""

    @property
    def forms(self) -> dict[int, Field]:
        """The translations, by the number of their form."""
        found = ((name, own) for name, own in self.fields.items() if name.startswith("msgstr"))
        return {int(name[7:-1] or 0) if name != "msgstr" else 0: own for name, own in found}

    @property
    def is_header(self) -> bool:
        return not self.text("msgid") and "msgctxt" not in self.fields and "msgstr" in self.fields

    def source_of(self, form: int, singular_form: int, forms: int = 0) -> str:
        """What a form says: a language with one form only says it for any number, as the plural does.

        forms: how many the language has; by default as many as there are here.
        """
        only = (forms or len(self.forms)) == 1
        is_plural = "msgid_plural" in self.fields and (form != singular_form or only)
        return self.text("msgid_plural" if is_plural else "msgid")


def entries(lines: Iterable[str | None]) -> Iterator[Entry]:
    """The entries of a catalogue's lines (None: one that was too long), obsolete ones among them.

    An entry ends where, after a msgstr, anything but its continuation begins.
    """
    entry = Entry(1)
    earlier: int | None = None  # the first `#|` line since the last string
    for number, line in enumerate(lines):
        if line is None:
            entry.problem = entry.problem or f"line {number + 1} is far too long"
            continue
        bare = line.strip(_SPACE)
        if not bare or _COMMENT.match(bare):
            earlier = number if bare.startswith("#|") and earlier is None else earlier
            continue
        if is_obsolete := bare.startswith("#~"):
            bare = bare[2:].lstrip(_SPACE)
        is_flags = bare.startswith("#,")
        keyword = found[1] if (found := _KEYWORD.match(bare)) else None
        if entry.is_complete and (is_flags or keyword in ("msgctxt", "msgid")):
            yield _checked(entry)
            entry = Entry(number + 1)
        if not entry.flags and not entry.fields and entry.problem is None:
            entry.line = number + 1
        if is_flags:
            entry.flags.append(number)
            entry.is_fuzzy = entry.is_fuzzy or re.search(r"\bfuzzy\b", bare) is not None
            continue
        if not entry.fields:
            entry.first = number if earlier is None else earlier
        earlier = None
        entry.is_obsolete = entry.is_obsolete or is_obsolete
        entry.is_complete = entry.is_complete or (keyword or "").startswith("msgstr")
        entry.problem = entry.problem or _take(entry, number, bare)
    if entry.flags or entry.fields or entry.problem:
        yield _checked(entry)


def _take(entry: Entry, number: int, bare: str) -> str | None:
    """Put a line into an entry, or say what is wrong with it."""
    found = _STRING.fullmatch(bare)
    if found is None:
        return f"line {number + 1} is neither a comment nor a quoted PO string"
    if unsafe := _UNSAFE.search(bare):
        return f"line {number + 1} contains the character U+{ord(unsafe[0]):04X}"
    keyword, text = found[1], unescape(found[2])
    if keyword in entry.fields:
        is_next = keyword in ("msgctxt", "msgid")
        return "this entry has no msgstr" if is_next else f"line {number + 1} is a second {keyword}"
    if keyword:
        entry.fields[keyword] = Field([text], number, number + 1)
    elif entry.fields:
        last = next(reversed(entry.fields.values()))
        last.parts.append(text)
        last.end = number + 1
    else:
        return f"line {number + 1} belongs to no entry (msgid and msgstr)"
    return None


def _checked(entry: Entry) -> Entry:
    if entry.problem is None and ("msgid" not in entry.fields or not entry.is_complete):
        entry.problem = f"this entry has no {'msgstr' if 'msgid' in entry.fields else 'msgid'}"
    return entry


# Headers ---------------------------------------------------------------------------------------------


def header_fields(header: str) -> dict[str, str]:
    return dict(re.findall(r"^([\w-]+):[ \t]*(.*?)[ \t]*$", header, re.MULTILINE))


def declared_charset(head: bytes | str) -> str | None:
    """What a catalogue says that its encoding is; a template's `CHARSET` says nothing."""
    text = head[:8192].decode("ascii", "ignore") if isinstance(head, bytes) else head
    found = _CHARSET.search(text)
    return None if found is None or found[1] == "CHARSET" else found[1]


def with_charset(header: str, charset: str) -> str:
    header, found = _CHARSET.subn(f"charset={charset}", header, count=1)
    return header if found else header + f"Content-Type: text/plain; charset={charset}\n"


def plural_forms(rule: str) -> tuple[int, int]:
    """(how many forms a `Plural-Forms` field declares, 0 if none; the number of the one for exactly one)."""
    number, plural = re.search(r"nplurals\s*=\s*(\d{1,2})", rule), re.search(r"plural\s*=\s*([^;]+)", rule)
    try:
        singular = int(gettext.c2py(plural[1].strip())(1)) if plural else 0
    except (ValueError, ArithmeticError):
        singular = 0  # a rule nobody could use; in almost all languages form 0 is the singular
    return int(number[1]) if number else 0, singular


def plural_rule(language: str) -> str:
    """The `Plural-Forms` of a language."""
    for rule, languages in _PLURAL_RULES.items():
        if any(match_rank(known, language) for known in languages.split()):
            return rule
    return _USUAL_RULE


# Strings ---------------------------------------------------------------------------------------------


def unescape(text: str) -> str:
    return re.sub(r"\\(.)", lambda found: _MEANINGS.get(found[1], found[0]), text)


def string_lines(keyword: str, text: str) -> list[str]:
    """A keyword with its string, broken where the text has line breaks."""
    parts = re.findall(r"[^\n]*\n|[^\n]+", text) or [""]
    quoted = ['"' + re.sub(r'[\\"\x07-\r]', lambda c: _ESCAPES[c[0]], part) + '"' for part in parts]
    return [f"{keyword} {quoted[0]}"] if len(quoted) == 1 else [f'{keyword} ""', *quoted]
