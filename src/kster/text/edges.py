"""How a translation begins and ends: with a capital and with a mark, if its source does.

Examples teach habits: of messages in lower case, of titles without a full stop. Where the source is of
another kind, they do not count.
"""

from __future__ import annotations

import re
import unicodedata

from kster.text.codes import OBJECT, CodedText
from kster.text.languages import match_rank

_FIRST = re.compile(r"\W*([^\W\d_]+)(?![-_.\d])")
_MARKS = ".!?:…"
_SCRIPTS = ("LATIN", "CYRILLIC")  # others have marks of their own
_LEAST = 4  # letters of a last word that is no abbreviation


def with_edges_of(source: CodedText, translation: CodedText, source_language: str) -> CodedText:
    """The translation, beginning with a capital and ending with a mark as its source does."""
    return _with_end(source, _with_capital(source.plain, translation, source_language))


def _with_capital(source: str, translation: CodedText, language: str) -> CodedText:
    first, own = _FIRST.match(source), _FIRST.match(translation.plain)
    if first is None or own is None or not first[1][0].isupper() or not own[1].islower():
        return translation
    if match_rank("de", language) and source.rstrip()[-1:] not in _MARKS:
        return translation  # any noun has a capital
    if re.search(rf"(?<!\w){re.escape(own[1])}(?!\w)", source):
        return translation  # a name that is written so
    at = own.start(1)
    plain = translation.plain
    return CodedText(plain[:at] + plain[at].upper() + plain[at + 1 :], translation.codes)


def _with_end(source: CodedText, translation: CodedText) -> CodedText:
    wanted, plain = source.plain.rstrip(), translation.plain.rstrip()
    if not wanted or not plain:
        return translation
    at = len(plain)
    if wanted[-1] in _MARKS and _may_end(plain[-1]):
        mark = "..." if wanted.endswith("...") else wanted[-1]
        behind = sum(place >= len(wanted) for place, _ in source.codes)  # codes, such as the end of bold text
        before = max(sum(place <= at for place, _ in translation.codes) - behind, 0)
        return _inserted(translation, at, mark, before)
    word = re.search(rf"(?:[^\W\d_]{{{_LEAST},}}|{OBJECT})\.\Z", plain)
    if word is not None and _may_end(wanted[-1]):
        codes = ((place - (place >= at), code) for place, code in translation.codes)
        return CodedText(plain[:-1] + translation.plain[at:], tuple(codes))
    return translation


def _inserted(text: CodedText, at: int, mark: str, before: int) -> CodedText:
    """before: how many codes stand before the mark."""
    codes = (
        (place if i < before else max(place, at) + len(mark), code)
        for i, (place, code) in enumerate(text.codes)
    )
    return CodedText(text.plain[:at] + mark + text.plain[at:], tuple(codes))


def _may_end(character: str) -> bool:
    """Whether a mark may follow."""
    if character == OBJECT or character.isdecimal():
        return True
    return character.isalpha() and unicodedata.name(character, "").startswith(_SCRIPTS)
