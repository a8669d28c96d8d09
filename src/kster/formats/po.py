"""gettext PO catalogues.

polib reads whole files and gives up at the first mistake. Here the file is cut into entries first, and
polib is given some hundreds at a time: memory stays bounded, and a broken entry is one rejection.

Untranslated, fuzzy and obsolete entries are rejections too, so that an import can say how many there were.
A plural entry gives one pair for the singular and one for each plural form.
"""

from __future__ import annotations

import gettext
import re
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from kster.errors import KsterError
from kster.formats.encoding import text_lines
from kster.formats.names import UniqueNames
from kster.formats.pair import Pair, Rejection, UnusableUnit
from kster.formats.text import check_pair, readable_id
from kster.text.languages import match_rank

if TYPE_CHECKING:
    from polib import POEntry

_BATCH = 500  # entries given to polib at a time

_CHARSET = re.compile(rb"charset=([A-Za-z][\w.-]*)")
# A line of an entry: a keyword with a string, or the continuation of a string, closed on the same line.
_STRING_LINE = re.compile(
    r'\s*(?:#~\s*)?(?:msgctxt|msgid|msgid_plural|msgstr|msgstr\[\d\])?\s*"(?:[^"\\]|\\.)*"\s*'
)
_KEYWORD = re.compile(r"\s*(?:#~\s*)?(msgctxt|msgid|msgstr)\b")  # also in a line that is otherwise broken
_COMMENT = re.compile(r"\s*#(?!,|~[^|])")  # any comment but flags and obsolete entries


@dataclass(slots=True)
class _Entry:
    """The lines of one entry, as they are in the file. `problem` is set if they cannot be right."""

    line: int
    lines: list[str] = field(default_factory=list)
    problem: str | None = None
    complete: bool = False  # a msgstr was seen


def read_po(
    path: Path, source_lang: str | None, target_lang: str | None, *, tags: str, max_chars: int
) -> Iterator[Pair | Rejection]:
    """The pairs of a catalogue. `tags` is ignored: PO has no inline elements."""
    singular_form = 0
    entries = 0
    for first, parsed in _parsed(path):
        for item in parsed:
            if isinstance(item, Rejection):
                yield item
                continue
            entries += 1
            if item.msgid == "" and not item.msgctxt:
                if first:
                    singular_form = _header(path, item.msgstr, source_lang, target_lang)
                continue
            unit = readable_id(item.msgctxt or item.msgid)
            try:
                for source, target in _translations(item, singular_form):
                    yield check_pair(source, target, item.msgctxt or None, max_chars, item.linenum)
            except UnusableUnit as reason:
                yield Rejection(str(path), item.linenum, unit, str(reason))
    if not entries:
        raise KsterError(f"{path}: no PO entries (msgid and msgstr) in this file")


def _translations(entry: POEntry, singular_form: int) -> Iterator[tuple[str, str]]:
    if entry.obsolete:
        raise UnusableUnit("obsolete")
    if "fuzzy" in entry.flags:
        raise UnusableUnit("fuzzy")
    if not entry.msgid_plural:
        yield entry.msgid, entry.msgstr
        return
    forms = sorted(entry.msgstr_plural.items())
    for number, text in forms:
        # A language with one form only says it for any number: that is what the plural says.
        singular = number == singular_form and len(forms) > 1
        yield entry.msgid if singular else entry.msgid_plural, text


def _header(path: Path, header: str, source_lang: str | None, target_lang: str | None) -> int:
    """Check the languages that the header names; return the number of the form used for exactly one."""
    fields = dict(re.findall(r"^([\w-]+):[ \t]*(.*)$", header, re.MULTILINE))
    for wanted, name in ((source_lang, "X-Source-Language"), (target_lang, "Language")):
        declared = fields.get(name, "").strip()
        if wanted and declared and not match_rank(wanted, declared):
            raise KsterError(f"{path}: wanted {wanted}, but its header says {name}: {declared}")
    rule = re.search(r"plural\s*=\s*([^;]+)", fields.get("Plural-Forms", ""))
    try:
        return int(gettext.c2py(rule.group(1).strip())(1)) if rule else 0
    except (ValueError, ArithmeticError):
        return 0  # a rule nobody could use; in almost all languages form 0 is the singular


def _parsed(path: Path) -> Iterator[tuple[bool, list[POEntry | Rejection]]]:
    """Batches of entries in the order of the file; True comes with the first batch."""
    first = True
    with tempfile.TemporaryDirectory(prefix="kster-po-") as scratch:
        batch: list[_Entry] = []
        for entry in _entries(path):
            batch.append(entry)
            if len(batch) == _BATCH:
                yield first, _parse_batch(path, batch, Path(scratch) / "batch.po")
                first, batch = False, []
        yield first, _parse_batch(path, batch, Path(scratch) / "batch.po")


def _parse_batch(path: Path, batch: list[_Entry], scratch: Path) -> list[POEntry | Rejection]:
    sound = [entry for entry in batch if entry.problem is None]
    try:
        parsed = _parse(sound, scratch)
    except OSError:  # polib's syntax error; find the entry that it was
        parsed = []
        for entry in sound:
            try:
                parsed += _parse([entry], scratch)
            except OSError:
                entry.problem = "not valid PO syntax"
    by_line: dict[int, POEntry | Rejection] = {item.linenum: item for item in parsed}
    by_line |= {e.line: Rejection(str(path), e.line, None, e.problem) for e in batch if e.problem is not None}
    return [by_line[entry.line] for entry in batch]


def _parse(entries: list[_Entry], scratch: Path) -> list[POEntry]:
    """polib's reading of these entries. It goes through a file, because given a string polib breaks lines
    wherever Unicode allows it, in the middle of translations too."""
    import polib

    scratch.write_text("\n\n".join("\n".join(entry.lines) for entry in entries) + "\n", encoding="utf-8")
    parsed = list(polib.pofile(str(scratch), encoding="utf-8", klass=_plain_file_class()))
    if len(parsed) != len(entries):
        raise OSError("entries were joined or lost")
    for item, entry in zip(parsed, entries, strict=True):
        item.linenum = entry.line
    return parsed


def _plain_file_class() -> type:
    """A polib file in which the header is an entry like any other, so that entries can be counted."""
    import polib

    class PlainFile(polib.POFile):
        def find(self, *args: object, **kwargs: object) -> None:
            return None

    return PlainFile


def _entries(path: Path) -> Iterator[_Entry]:
    """Cut the file into entries: one ends where, after a msgstr, anything but its continuation begins."""
    entry = _Entry(line=1)
    for number, line in enumerate(text_lines(path, _declared_charset), 1):
        if line is None:
            entry.problem = entry.problem or f"line {number} is far too long"
            continue
        if not line.strip() or _COMMENT.match(line):
            continue
        flags = line.lstrip().startswith("#,")
        found = _KEYWORD.match(line)
        keyword = found.group(1) if found else None
        if entry.complete and (flags or keyword in ("msgctxt", "msgid")):
            yield entry
            entry = _Entry(line=number)
        if not entry.lines:
            entry.line = number
        if not flags and not _STRING_LINE.fullmatch(line):
            entry.problem = entry.problem or f"line {number} is neither a comment nor a quoted PO string"
        elif problem := _raw_character(line):
            entry.problem = entry.problem or f"line {number} {problem}"
        entry.complete = entry.complete or keyword == "msgstr"
        entry.lines.append(line.strip())
    if entry.lines:
        if not entry.complete:
            entry.problem = entry.problem or "the file ends before its msgstr"
        yield entry


def _raw_character(line: str) -> str | None:
    """What is wrong with a line that would not survive being written to a file and read again."""
    found = re.search(r"[\x00\r\ud800-\udfff]", line)
    return f"contains the character U+{ord(found.group()):04X}" if found else None


def _declared_charset(head: bytes) -> str | None:
    found = _CHARSET.search(head[:8192])
    charset = found.group(1).decode("ascii") if found else None
    return None if charset == "CHARSET" else charset  # a template's placeholder


def write_po(out: TextIO, pairs: Iterable[Pair], source_lang: str, target_lang: str) -> int:
    """Write a catalogue; return the number of entries.

    A catalogue cannot hold two entries with the same text and context, but a memory may well hold two
    translations of one text: the second gets a context that ends in `-2`.
    """
    import polib

    header = polib.POEntry(
        msgid="",
        msgstr=(
            "MIME-Version: 1.0\nContent-Type: text/plain; charset=UTF-8\nContent-Transfer-Encoding: 8bit\n"
            f"Language: {target_lang.replace('-', '_')}\nX-Source-Language: {source_lang.replace('-', '_')}\n"
            "X-Generator: kster\n"
        ),
    )
    out.write(header.__unicode__(wrapwidth=0) + "\n")
    contexts = UniqueNames()
    count = 0
    for pair in pairs:
        context = contexts.name(pair.id or "", within=pair.source)
        entry = polib.POEntry(msgctxt=context or None, msgid=pair.source, msgstr=pair.target)
        out.write(entry.__unicode__(wrapwidth=0) + "\n")
        count += 1
    return count
