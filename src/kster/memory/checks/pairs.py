"""Texts that cannot be translations of each other, by what they have besides words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from html import unescape

from kster.memory.checks.number_words import numbers_in_words
from kster.memory.sources.words import folded
from kster.text.recognition import code_spans

# Thousands may be grouped by a mark, or by a space that does not break.
_NUMBER = re.compile(r"\d{1,3}(?:[.,'’\u00a0\u202f]\d{3})+(?!\d)|\d+")
_SMALL = 12  # numbers up to here may be said in other ways: "both", "weekly"
_AFTERNOON = re.compile(r"\d\s?p\.?m\b", re.I)
_POSITION = re.compile(r"%\d+\$")
# "%sLoading" is a conversion before a word, which is translated.
_CONVERSION = re.compile(r"(%[-+ #0]*\d*(?:\.\d+)?(?:hh?|ll?|z)?[diouxXeEfgGcs])[^\W\d_]+")
_TAG_NAMES = re.compile(r"[<\[](/?[A-Za-z][\w:.-]*)")
_MARKS = "\"'(„“”).,;:!?…"
_WORD = re.compile(r"[\"'(„“]?[^\W\d_]+(?:['’-][^\W\d_]+)*[\"')“”.,;:!?…]*")

# Kinds of codes that both sides must have. Addresses, paths, line breaks and entities may be localised.
_TAGS = frozenset({"tag", "element"})
_PLACEHOLDERS = frozenset({"weblate", "braces", "dollar", "percent"})


def numbers_differ(source: str, target: str) -> str | None:
    """Numbers are compared by their digits, however they are grouped; one side may spell them out, or say
    the same number again."""
    found = [_NUMBER.findall(without_codes(text)) for text in (source, target)]
    if _digits("".join(found[0])) == _digits("".join(found[1])):  # 1 000 and 1000
        return None
    first, second = (Counter(_digits(number).lstrip("0") or "0" for number in side) for side in found)
    missing, extra = _unpaired_years(first - second, second - first)
    _remove(missing, numbers_in_words(target))
    _remove(extra, numbers_in_words(source))
    if not (missing and extra):
        _remove(missing, second)
        _remove(extra, first)
    if not missing and not extra:
        return None
    if not (missing and extra) and all(len(n) < 3 and int(n) <= _SMALL for n in (missing or extra)):
        return None
    if _AFTERNOON.search(source) or _AFTERNOON.search(target):
        return None
    return _difference(missing, extra)


def new_numbers(source: str, target: str) -> set[str]:
    """The numbers of a target that its source has in no form; 5 pm may be 17."""
    if not any(map(str.isdecimal, target)):
        return set()
    known, said = (
        {_digits(n).lstrip("0") or "0" for n in _NUMBER.findall(text)} for text in (source, target)
    )
    new = said - known - numbers_in_words(source)
    if _AFTERNOON.search(source):
        new -= {"0", *(str(int(number) + 12) for number in known)}
    return set() if _digits(source) == _digits(target) else new  # 1 000 and 1000


def _remove(numbers: Counter[str], known: Iterable[str]) -> None:
    for number in known:
        numbers.pop(number, None)


def _unpaired_years(missing: Counter[str], extra: Counter[str]) -> tuple[Counter[str], Counter[str]]:
    """What is left when 1987 on one side is paired with 87 on the other."""
    for one, other in ((missing, extra), (extra, missing)):
        for year in [number for number in one if len(number) == 4]:
            short = year[2:].lstrip("0") or "0"
            common = min(one[year], other[short])
            one[year] -= common
            other[short] -= common
    return +missing, +extra


def _digits(text: str) -> str:
    """The digits of any script, as 0 to 9."""
    return "".join(str(int(character)) for character in text if character.isdecimal())


def codes_differ(source: str, target: str) -> str | None:
    """Tags are compared by their names, as attributes may be translated, and placeholders as they are."""
    first, second = _codes(source), _codes(target)
    missing, extra = first - second, second - first
    return _difference(missing, extra) if missing or extra else None


def _codes(text: str) -> Counter[str]:
    found: Counter[str] = Counter()
    for kind, start, end in code_spans(text):
        code = text[start:end]
        if kind in _TAGS or (kind == "break" and code[0] == "<"):
            found.update(f"<{name.lower()}>" for name in _TAG_NAMES.findall(code))
        elif kind in _PLACEHOLDERS:
            found[_POSITION.sub("%", _CONVERSION.sub(r"\1", code))] += 1
    return found


def _difference(missing: Counter[str], extra: Counter[str]) -> str:
    sides = ((missing, "not in the target"), (extra, "not in the source"))
    return "; ".join(f"{', '.join(side.elements())} {where}" for side, where in sides if side)


def is_empty(source: str, target: str) -> str | None:
    if any(map(str.isalnum, target)) or not any(map(str.isalpha, source)):
        return None
    return "the target has no letter or digit"


def is_copy(source: str, target: str) -> str | None:
    """Names and code may be the same in both languages; three words, half of them in lower case, may not."""
    if folded(unescape(source)) != folded(unescape(target)):
        return None
    parts = without_codes(source).split()
    words = [part for part in parts if _WORD.fullmatch(part)]
    small = [word for word in words if not word.strip(_MARKS)[0].isupper()]
    if len(words) < 3 or 2 * len(words) < len(parts) or 2 * len(small) < len(words):
        return None
    return "the target equals the source"


def without_codes(text: str) -> str:
    """A text without its codes."""
    at, pieces = 0, []
    for _, start, end in code_spans(text):
        pieces.append(text[at:start])
        at = end
    return " ".join([*pieces, text[at:]])
