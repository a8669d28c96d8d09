"""Numbers written in words, in English and German: "ninetieth", "fünfundzwanzig"."""

from __future__ import annotations

import re
from functools import cache

_ENGLISH_ONES = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
_ENGLISH_TEENS = [
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
]
_ENGLISH_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_ENGLISH_ORDINALS = {"one": "first", "two": "second", "three": "third", "five": "fifth", "eight": "eighth"}
_ENGLISH_ORDINALS |= {"nine": "ninth", "twelve": "twelfth"}
_GERMAN_ONES = ["ein", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun"]
_GERMAN_TEENS = [
    "zehn",
    "elf",
    "zwölf",
    "dreizehn",
    "vierzehn",
    "fünfzehn",
    "sechzehn",
    "siebzehn",
    "achtzehn",
    "neunzehn",
]
_GERMAN_TENS = ["zwanzig", "dreißig", "vierzig", "fünfzig", "sechzig", "siebzig", "achtzig", "neunzig"]
_GERMAN_ORDINALS = {"ein": "erst", "drei": "dritt", "sieben": "siebt", "acht": "acht"}
_ENDING = re.compile("(?<=t)e[nmrs]?$")  # of German ordinals
_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")


def numbers_in_words(text: str) -> set[str]:
    """The numbers from 1 to 99 that are written in words, as digits."""
    known = _words()
    words = (word.lower().replace("ss", "ß") for word in _WORD.findall(text))
    found = (known.get(word) or known.get(_ENDING.sub("", word)) for word in words)
    return {number for number in found if number is not None}


@cache
def _words() -> dict[str, str]:
    words: dict[str, int] = {}
    tens = range(20, 100, 10)
    english = dict(enumerate(_ENGLISH_ONES + _ENGLISH_TEENS, 1)) | dict(zip(tens, _ENGLISH_TENS, strict=True))
    german = dict(enumerate(_GERMAN_ONES + _GERMAN_TEENS, 1)) | dict(zip(tens, _GERMAN_TENS, strict=True))
    for ten in tens:
        english |= {ten + i: f"{english[ten]}-{one}" for i, one in enumerate(_ENGLISH_ONES, 1)}
        german |= {ten + i: f"{one}und{german[ten]}" for i, one in enumerate(_GERMAN_ONES, 1)}
    for number, word in english.items():
        before, _, last = word.rpartition("-")
        last = _ENGLISH_ORDINALS.get(last, last[:-1] + "ieth" if last.endswith("y") else last + "th")
        words |= {word: number, f"{before}-{last}" if before else last: number}
    for number, word in german.items():
        ordinal = _GERMAN_ORDINALS.get(word, word + ("t" if number < 20 else "st"))
        words |= {word: number, ordinal: number}
    return {word: str(number) for word, number in words.items()}
