"""Explained translations as JSON: tokens grouped into words, each with the examples that decided it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from math import prod
from typing import Any

from kster.translation import TokenExplanation, Translation
from kster.translation.explanation import Example, Lesson
from kster.translation.words import placed_words

EXAMPLES = 8  # listed of each token, the weightiest; their weights say how much the rest matters
SEGMENTS = 3  # listed of each word
FAINT = 0.005  # a smaller share or weight is not worth a line
DIGITS = 4  # significant ones: more mean nothing to a person


class SegmentTable:
    """The segments that an answer speaks of, each named once and elsewhere referred to by its number."""

    def __init__(self, homes: Mapping[str, dict[str, Any]]) -> None:
        """homes: for each memory's directory, how to name it to clients."""
        self._homes = homes
        self._numbers: dict[tuple[str, int], int] = {}
        self._waiting: list[dict[str, Any]] = []

    def number(self, example: Example | Lesson) -> int:
        key = (example.memory, example.segment)
        if key not in self._numbers:
            self._numbers[key] = len(self._numbers)
            self._waiting.append(
                {
                    "number": self._numbers[key],
                    "memory": self._homes.get(example.memory),
                    "segment": example.segment,
                    "source": example.source,
                    "target": example.target,
                }
            )
        return self._numbers[key]

    def take_new(self) -> list[dict[str, Any]]:
        """The rows that were not taken before."""
        new, self._waiting = self._waiting, []
        return new


def words_of(
    translation: Translation, table: SegmentTable, end_token: str, *, with_tokens: bool
) -> list[dict[str, Any]]:
    """The words of an explained translation, in order; punctuation marks are words of their own.

    Each has its text, where it stands in the translation (`start`, `end`; None where the tokenizer's text
    differs), and the segments that spoke for it. Its `mixing_weight` is the largest of its tokens': how much
    the memory counted. Where it applies, `term` is the source of the term it was written for, `taught` the
    number of the segment whose word was taken over as a whole, and `confidence` how likely it is right.
    """
    words: list[dict[str, Any]] = []
    tokens = translation.tokens or ()
    for word, start, end in placed_words([token.token for token in tokens], translation.text, end_token):
        group = tokens[word.first : word.last]
        taught = next((token.taught for token in group if token.taught is not None), None)
        more = {
            "term": next((token.term for token in group if token.term is not None), None),
            "taught": None if taught is None else table.number(taught),
            "confidence": _short(group[0].confidence),
        }
        explained = {
            "text": word.text,
            "start": start,
            "end": end,
            "mixing_weight": _short(max(token.mixing_weight for token in group)),
            "probability": _short(prod(token.probability for token in group)),
            "base_probability": _short(prod(token.base_probability for token in group)),
            "segments": _segments(group, table),
        } | {name: value for name, value in more.items() if value is not None}
        if with_tokens:
            explained["tokens"] = [_token(token, table) for token in group]
        words.append(explained)
    return words


def mark_changes(base: list[dict[str, Any]], adapted: list[dict[str, Any]]) -> None:
    """Set `changed` on the words of two translations of one text that the other does not have."""
    before, after = [w["text"] for w in base], [w["text"] for w in adapted]
    for word in (*base, *adapted):
        word["changed"] = False
    for operation, i, j, k, m in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if operation != "equal":
            for word in (*base[i:j], *adapted[k:m]):
                word["changed"] = True


def words_alone(translation: Translation, end_token: str) -> list[dict[str, Any]]:
    """The same words, with nothing but their places."""
    tokens = [token.token for token in translation.tokens or ()]
    placed = placed_words(tokens, translation.text, end_token)
    return [{"text": word.text, "start": start, "end": end} for word, start, end in placed]


def plain_words(text: str) -> list[dict[str, Any]]:
    """Words of a translation that was not explained."""
    found = re.finditer(r"\S+", text)
    return [{"text": word[0], "start": word.start(), "end": word.end()} for word in found]


def _token(token: TokenExplanation, table: SegmentTable) -> dict[str, Any]:
    ranked = sorted(token.examples, key=lambda example: -example.weight)[:EXAMPLES]
    listed = [example for at, example in enumerate(ranked) if at == 0 or example.weight > FAINT]
    return {
        "token": token.token,
        "probability": _short(token.probability),
        "base_probability": _short(token.base_probability),
        "example_probability": _short(token.example_probability),
        "mixing_weight": _short(token.mixing_weight),
        "bandwidth": _short(token.bandwidth),
        "examples": [
            {
                "number": table.number(example),
                "position": example.position,
                "token": example.token,
                "distance": _short(example.distance),
                "weight": _short(example.weight),
            }
            for example in listed
        ],
    }


def _segments(group: Sequence[TokenExplanation], table: SegmentTable) -> list[dict[str, Any]]:
    """The segments that spoke for this word, most influential first."""
    shares: dict[tuple[str, int], float] = {}
    spoke: dict[tuple[str, int], Example] = {}
    for token in group:
        for example in token.examples:
            if example.token != token.token:
                continue  # it spoke for another word
            key = (example.memory, example.segment)
            shares[key] = shares.get(key, 0.0) + token.mixing_weight * example.weight / len(group)
            spoke[key] = example
    ranked = sorted(shares.items(), key=lambda item: -item[1])[:SEGMENTS]
    return [
        {"number": table.number(spoke[key]), "share": _short(share)} for key, share in ranked if share > FAINT
    ]


def _short(number: float | None) -> float | None:
    return None if number is None else float(f"{number:.{DIGITS}g}")
