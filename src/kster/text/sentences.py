"""Where the sentences of a line end.

A full stop is a sentence's end or an abbreviation's. In doubt there is no cut: two sentences translated as
one lose little, half a sentence loses its sense.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from kster.text.codes import OBJECT

Span = tuple[int, int]  # of a line: begin and end in characters

_CLOSING = "\"'»«›‹”“’‘)\\]}*"
_ENDS = re.compile(
    # A space follows, but none that forbids a line break: "Nr.\xa05".
    rf"(?<=[.!?…।॥؟۔։።။។])[{_CLOSING}]*[^\S\xa0\u202f]+"
    # Chinese and Japanese need none. What follows a closing quote there is often "… he said".
    r"|(?<=[。！？｡])(?![。！？｡…])(?:[」』”’）】〉》]+(?=\s|[「『“‘（【〈《])|(?![」』”’）】〉》]))\s*"
)
_ANY_END = re.compile(rf"(?<=[.!?…।॥؟۔։።။។])[{_CLOSING}]*\s+|(?<=[。！？｡])(?![。！？｡])[」』”’）】〉》]*\s*")

_NEAR = 40  # characters looked at before and behind a possible end; keeps strange lines cheap
_WORD_BEFORE = re.compile(rf"([^\s()\[\]{{<\"„“”‚‘«»‹›/]+)\s?\.[{_CLOSING}]*\s*$")  # "22 . Juli", too
_BRACKETS = re.compile(r"[(\[（「『【〈《)\]）」』】〉》]")
_OPENING = "([（「『【〈《"
_NO_LETTERS = re.compile(r"(?:\{\w*\}|[\W\d_])*+")

_NUMBER = re.compile(r"\d{1,3}(?:\.\d+)*|%[diu]")  # ordinals, dates, sections: "3. Mai"; no years
_ROMAN = re.compile(r"[IVX]+")
_ENGLISH = """
    mr mrs ms mx dr prof rev hon gov sen rep gen col capt lt sgt st mt ft messrs vs viz cf al eg ie co
    dept univ assn bros ed eds transl approx est incl excl resp
"""
_GERMAN = """
    hr hrn fr frl dipl ing phil jur habil nat str bzw ca vgl ggf evtl inkl exkl zzgl zzt sog usf gem nr
    abl bspw allg betr bez dgl einschl entspr geb gest hrsg insb insbes urspr verh vorm zit dt engl
    franz jh mio mrd std hl ev kath durchschnittl nördl südl östl westl
"""
_NUMBERED = """
    no nos art arts abs fig figs vol vols sec sect ch chap pp para par cl reg eq ref refs app ver max
    min mind tel abb tab kap bd bde ziff anm rn rz randnr anh anl pos aufl jg lit jan feb mar apr jun
    jul aug sep sept oct nov dec mär okt dez
"""
_NO_END = frozenset((_ENGLISH + " " + _GERMAN).split())  # hardly ever; not so "etc." and "usw."
_NO_END_BEFORE_NUMBERS = frozenset(_NUMBERED.split())  # "No. 5", but "He said no. She left."


def sentences(line: str) -> list[Span]:
    """The sentences of a line, without the white space between them."""
    cuts = [0, *_cuts(line), len(line)]
    spans = (stripped(line, begin, end) for begin, end in pairwise(cuts))
    return _with_letters(line, [(begin, end) for begin, end in spans if begin < end])


def clauses(line: str, begin: int, end: int) -> list[Span]:
    """A stretch of a line cut behind everything that could be a sentence's end."""
    cuts = [match.end() for match in _ANY_END.finditer(line, begin, end)]
    spans = (stripped(line, b, e) for b, e in pairwise([begin, *cuts, end]))
    return [(b, e) for b, e in spans if b < e]


def stripped(line: str, begin: int, end: int) -> Span:
    """The same span without white space at its ends."""
    body = line[begin:end]
    begin += len(body) - len(body.lstrip())
    return begin, begin + len(body.strip())


def _cuts(line: str) -> Iterator[int]:
    """Never within brackets that are closed later: what stands there belongs to the sentence around it."""
    closed_later = len(re.findall(r"[)\]）」』】〉》]", line))
    depth = at = 0
    for match in _ENDS.finditer(line):
        for bracket in _BRACKETS.findall(line, at, match.end()):
            opens = bracket in _OPENING
            depth = depth + 1 if opens else max(depth - 1, 0)
            closed_later -= not opens
        at = match.end()
        if not (depth and closed_later) and _is_end(line, match):
            yield at


def _is_end(line: str, match: re.Match[str]) -> bool:
    follows = line[match.end() : match.end() + _NEAR]
    first = next((character for character in follows if character.isalnum() or character == OBJECT), "")
    if first != first.title():  # a lower-case letter, in scripts that begin sentences with capitals
        return False
    before = _WORD_BEFORE.search(line[max(match.start() - _NEAR, 0) : match.end()])
    if before is None:
        return True  # no full stop
    word = before[1].lstrip("'’")
    last = re.split(r"[.-]", word)[-1]  # of "Dipl.-Ing." and "e.g."
    if _NUMBER.fullmatch(word) or _ROMAN.fullmatch(word) or (len(last) == 1 and last.isalpha()):
        return False
    if last.lower() in _NO_END:
        return False
    return not (last.lower() in _NO_END_BEFORE_NUMBERS and first.isdigit())


def _with_letters(line: str, spans: list[Span]) -> list[Span]:
    """A piece without letters (a number, a placeholder) is not a sentence: it stays with its neighbour."""
    kept: list[Span] = []
    is_bare = False  # the last one
    for begin, end in spans:
        joins = _NO_LETTERS.fullmatch(line, begin, end) is not None
        if kept and (is_bare or joins):
            kept[-1] = (kept[-1][0], end)
            is_bare = is_bare and joins
        else:
            kept.append((begin, end))
            is_bare = joins
    return kept
