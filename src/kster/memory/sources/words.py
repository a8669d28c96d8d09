"""What an index of sources sees of a text: words, and pairs of characters where words are not separated."""

from __future__ import annotations

import re
import unicodedata
from functools import cache, lru_cache, reduce
from hashlib import blake2b
from operator import xor

ENDINGS = ("s", "es", "d", "ed", "ing", "e", "en", "n", "er", "em", "ern")
LEAST_STEM = 4  # letters

# Scripts that write words without spaces: Thai, Lao, Myanmar, Khmer, kana, Han.
UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u9fff"
    "\uf900-\ufaff\U00020000-\U0003ffff"
)


def terms_of(text: str) -> list[str]:
    """The terms a source is found by, repetitions included; never empty.

    Words in lower case; of scripts without spaces all pairs of neighbouring characters. A text without
    letters and digits is one term as a whole.
    """
    text = folded(text)
    if text.isascii():
        return _ASCII_WORDS.findall(text) or [text]
    terms: list[str] = []
    for word in _words().findall(text):
        if len(word) > 2 and _unspaced().match(word):
            terms += [word[i : i + 2] for i in range(len(word) - 1)]
        else:
            terms.append(word)
    return terms or [text]


def forms_of(word: str) -> list[list[str]]:
    """The terms of what stands between two spaces, each with others that may be forms of it; none if that is
    not a word.

    Forms are guessed by endings of European languages. A few are wrong ("even", "evening"), which does no
    harm.
    """
    if not any(map(str.isalnum, word)) or _unspaced().search(word):
        return []
    return [_forms(term) for term in terms_of(word)]


@lru_cache(maxsize=1 << 16)
def _forms(term: str) -> list[str]:
    if not term.isalpha() or len(term) < LEAST_STEM:
        return [term]
    stems = {term} | {term.removesuffix(ending) for ending in ENDINGS}
    stems = {stem for stem in stems if len(stem) >= LEAST_STEM}
    return [term, *sorted(stems.union(stem + ending for stem in stems for ending in ENDINGS) - {term})]


@lru_cache(maxsize=1 << 12)
def tokens_of(text: str) -> tuple[str, ...]:
    """The tokens whose edits count in a fuzzy match: words, single characters of scripts without spaces,
    and every other character that is no white space."""
    return tuple(_tokens().findall(folded(text)))


def folded(text: str) -> str:
    """A text without differences in case, white space and the encoding of characters."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    return " ".join(text.casefold().split())


@lru_cache(maxsize=1 << 18)
def term_number(term: str) -> int:
    """64 bits that stand for a term in every index: two terms share one with probability 2⁻⁶⁴."""
    return int.from_bytes(blake2b(term.encode("utf-8", "replace"), digest_size=8).digest(), "little")


def signature_of(text: str) -> int:
    """Equal for sources with the same terms, whatever their order: `Postings.signatures`."""
    return reduce(xor, map(term_number, set(terms_of(text))))


_ASCII_WORDS = re.compile(r"[a-z0-9]+")


@cache
def _words() -> re.Pattern[str]:
    return re.compile(f"[{UNSPACED}]+|(?:(?![{UNSPACED}_])[\\w{_marks()}])+")


@cache
def _tokens() -> re.Pattern[str]:
    return re.compile(f"[{UNSPACED}]|(?:(?![{UNSPACED}_])[\\w{_marks()}])+|\\S")


@cache
def _unspaced() -> re.Pattern[str]:
    return re.compile(f"[{UNSPACED}]")


@cache
def _marks() -> str:
    r"""Vowel signs and accents, which belong to words though `\w` does not match them."""
    blocks = (range(0x300, 0x1E00), range(0x20D0, 0x2100), range(0xA800, 0xAC00))
    return "".join(chr(c) for block in blocks for c in block if unicodedata.category(chr(c))[0] == "M")
