"""ICU messages: `{n, plural, one {# file} other {# files}}` is translated inside its branches.

Keywords, selectors and arguments stay as they are. Each branch is a text of its own; what stands around the
message is translated with the message as one code in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kster.text.codes import Code, Fixed, Token, Written

_HEAD = re.compile(r"\{\s*[\w.$-]+\s*,\s*(plural|selectordinal|select)\s*,\s*(?:offset:\s*\d+\s*)?")
_SELECTOR = re.compile(r"\s*(?:=\d+|[\w-]+)\s*\{")
_END = re.compile(r"\s*\}")
DEEPEST = 8  # messages within branches of messages


@dataclass(frozen=True, slots=True)
class Message(Written):
    """A message with branches, as it stands in a text.

    fixed: what is before the first branch, between each two, and behind the last; branches: their texts.
    counts: whether `#` in a branch stands for the number.
    """

    fixed: tuple[str, ...]
    branches: tuple[str, ...]
    counts: bool

    def __str__(self) -> str:
        return self.written(self.branches)

    def written(self, branches: Sequence[str]) -> str:
        """The message with other branches."""
        parts = [self.fixed[0]]
        for branch, behind in zip(branches, self.fixed[1:], strict=True):
            parts += [branch, behind]
        return "".join(parts)

    def without_syntax(self, token: Token, source: str) -> Token:
        """A token of a branch's translation without signs of the syntax that its source has not."""
        if isinstance(token, Code | Fixed):
            return token
        for sign, instead in (("{", " "), ("}", " "), ("'", "’"), *[("#", " ")] * self.counts):
            if sign not in source:
                token = token.replace(sign, instead)
        return token


def with_messages(text: str) -> Iterator[Token]:
    """The texts between messages, and messages as codes whose data is a `Message`."""
    at = 0
    for head in _HEAD.finditer(text):
        if head.start() < at or (found := _read(text, head)) is None:
            continue
        message, end = found
        if head.start() > at:
            yield text[at : head.start()]
        yield Code("alone", message)
        at = end
    if at < len(text):
        yield text[at:]


def numbers_as_codes(text: str) -> Iterator[Token]:
    """A branch that counts: its `#` are codes."""
    for part in re.split(r"(\#)", text):
        if part:
            yield Code("alone", part) if part == "#" else part


def _read(text: str, head: re.Match[str]) -> tuple[Message, int] | None:
    """The message that begins with this head and where it ends; None if it is not a whole one."""
    fixed, branches = [], []
    begin, at = head.start(), head.end()
    while selector := _SELECTOR.match(text, at):
        end = _closing(text, selector.end())
        if end is None:
            return None
        fixed.append(text[begin : selector.end()])
        branches.append(text[selector.end() : end])
        begin, at = end, end + 1
    last = _END.match(text, at)
    if last is None or not branches:
        return None
    fixed.append(text[begin : last.end()])
    return Message(tuple(fixed), tuple(branches), head[1] != "select"), last.end()


def _closing(text: str, begin: int) -> int | None:
    """Where the brace is that closes a branch; what is in quotes does not count."""
    depth, at = 1, begin
    while at < len(text):
        if text[at] == "'" and text[at + 1 : at + 2] in ("{", "}", "#", "|"):
            at = text.find("'", at + 1)
            if at < 0:
                return None
        elif text[at] == "{":
            depth += 1
        elif text[at] == "}":
            depth -= 1
            if not depth:
                return at
        at += 1
    return None
