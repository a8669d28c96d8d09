"""Paragraphs of plain text: lines that somebody or some program broke at a column are one text.

A line break comes from wrapping if the next line's first word would not have fitted before it. People also
break lines earlier: between other breaks from wrapping, one within a sentence counts as such, too. The breaks
of verses, addresses and lists are different, and stay as they are. Where every line ends with a sentence,
lines stay lines, since no sentence is torn by that.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

NARROWEST = 40  # columns; shorter lines are lines of their own
_MOST_HEADINGS = 3  # lines right above a paragraph
_LINE = re.compile(r"[^\n]*(?:\n|\Z)")
_INDENT = re.compile(r"[ \t]*(?:(?:[-*•–+]|\d{1,3}[.)])[ \t]+|(?:>[ \t]?)+)?")
_SENTENCE_END = re.compile(r"[.!?…:][\"'”’“»)\]]*$")
_ITEM = re.compile(r"[ \t]*(?:[-*•–+]|\d{1,3}[.)])[ \t]+\S")


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A part of a text, from start to end: without what comes before its first word and its last line end.

    width: the column where its lines were broken, 0 if it is one line; before: what comes before its first
    line (spaces, a bullet, a sign of quoting); indent: before its other lines.
    """

    start: int
    end: int
    text: str
    width: int = 0
    indent: str = ""
    before: str = ""
    line_end: str = "\n"

    def wrapped(self, text: str) -> str:
        """Another text in its place, broken at the same column."""
        if not self.width:
            return text
        lines = textwrap.wrap(
            self.before + text,
            self.width,
            subsequent_indent=self.indent,
            break_long_words=False,
            break_on_hyphens=False,
            expand_tabs=False,
            replace_whitespace=False,
        )
        return self.line_end.join(lines)[len(self.before) :]


def paragraphs(text: str) -> Iterator[Paragraph]:
    """The paragraphs of a text, and its other lines with something in them one by one."""
    lines = [(found.start(), found[0]) for found in _LINE.finditer(text) if found[0]]
    at = 0
    while at < len(lines):
        end = at + 1
        while end < len(lines) and _may_go_on(lines[end - 1][1], lines[end][1], is_second=end == at + 1):
            end += 1
        # A paragraph may stand right below a heading.
        begin = next((i for i in range(at, min(at + _MOST_HEADINGS, end)) if _is_wrapped(lines[i:end])), end)
        for i in range(at, begin):
            if lines[i][1].strip():
                yield _paragraph(lines[i : i + 1])
        if begin < end:
            yield _paragraph(lines[begin:end])
        at = end


def _paragraph(lines: list[tuple[int, str]]) -> Paragraph:
    (start, first), (last_start, last) = lines[0], lines[-1]
    before = _indent(first)
    end = last_start + len(last.rstrip())
    if len(lines) == 1:
        rest = first[len(before) :] if not any(map(str.isdigit, before)) else first
        return Paragraph(start + len(first) - len(rest.lstrip()), end, rest.strip())
    indent = _indent(lines[1][1])
    bodies = [first[len(before) :].strip(), *(line[len(indent) :].strip() for _, line in lines[1:])]
    return Paragraph(
        start + len(before),
        end,
        " ".join(bodies),
        max(len(line.rstrip()) for _, line in lines),
        indent,
        before,
        "\r\n" if first.endswith("\r\n") else "\n",
    )


def _is_wrapped(lines: list[tuple[int, str]]) -> bool:
    bodies = [line.rstrip() for _, line in lines]
    width = max(map(len, bodies))
    early = [
        (line, after) for line, after in pairwise(bodies) if len(line) + 1 + len(after.split()[0]) <= width
    ]
    goes_on = all(after.lstrip()[0].islower() and not _SENTENCE_END.search(line) for line, after in early)
    is_torn = not all(map(_SENTENCE_END.search, bodies[:-1]))
    return width >= NARROWEST and 2 * len(early) < len(lines) - 1 and goes_on and is_torn


def _may_go_on(line: str, following: str, *, is_second: bool) -> bool:
    """Whether two lines could be of one paragraph, whose first line alone may stand further out or in."""
    if not line.strip() or not following.strip() or _ITEM.match(following):
        return False
    return is_second or _indent(line) == _indent(following)


def _indent(line: str) -> str:
    found = _INDENT.match(line)
    return found[0] if found else ""
