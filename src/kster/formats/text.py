"""What the text of a segment may hold: the rule shared by all readers and all writers.

Control characters (other than tab, line feed, carriage return), surrogates and noncharacters have no
place in a translation, and XML 1.0 cannot hold most of them. Readers reject the unit that has one;
writers put U+FFFD in its place.

The XML filter (`kster.formats.xml`) cannot let such characters through to the parser, which would
refuse the whole file. It puts *marks* in their place, made of noncharacters, and `check_pair` here
turns a mark back into a reason.
"""

from __future__ import annotations

import re

from kster.formats.pair import MAX_CHARS, Pair, UnusableUnit
from kster.text.characters import UNUSABLE, printable

CHARACTER_MARK = "\ufdd0"  # followed by the code point in hexadecimal and a semicolon
ENTITY_MARK = "\ufdd1"  # followed by the entity's name and a semicolon
CUT_MARK = "\ufdd2"  # text was cut here because it was too long for the parser

_MARK = re.compile(f"{CHARACTER_MARK}([0-9A-F]+);|{ENTITY_MARK}([^;]+);|{CUT_MARK}")


def character_mark(code: int) -> str:
    """The mark that stands for a character the parser must not see."""
    return f"{CHARACTER_MARK}{code:04X};"


def entity_mark(name: str) -> str:
    """The mark that stands for a reference to an entity, none of which is ever resolved."""
    return f"{ENTITY_MARK}{name};"


def check_pair(source: str, target: str, id: str | None, line: int | None = None) -> Pair:
    """The pair, or `UnusableUnit` with the reason why it cannot be an example."""
    if not source.strip():
        raise UnusableUnit("empty source")
    if not target.strip():
        raise UnusableUnit("untranslated")
    for side, text in (("source", source), ("target", target), ("id", id or "")):
        _check_characters(side, text)
        if len(text) > MAX_CHARS:
            raise UnusableUnit(f"{side} has {len(text):,} characters, more than the limit of {MAX_CHARS:,}")
    return Pair(source, target, id, line)


def _check_characters(side: str, text: str) -> None:
    found = UNUSABLE.search(text)
    if found is None:
        return
    mark = _MARK.match(text, found.start())
    if mark is None:
        raise UnusableUnit(f"{side} contains the character U+{ord(found.group()):04X}")
    code, entity = mark.groups()
    if code:
        raise UnusableUnit(f"{side} contains the character U+{code}")
    if entity:
        raise UnusableUnit(f"{side} contains the entity reference &{entity}; (entities are not resolved)")
    raise UnusableUnit(f"{side} is far too long")


def readable_id(id: str | None) -> str | None:
    """An id as a report shows it: short, and without marks."""
    if not id:
        return None
    shown = printable(id)
    return shown if len(shown) <= 80 else shown[:79] + "…"


def one_line(text: str) -> str:
    """`text` for a format that has no way to write a line break or a tab: each becomes a space."""
    return re.sub(r"\r\n|[\r\n\t]", " ", text)
