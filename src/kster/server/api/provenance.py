"""Explained translations as JSON: tokens grouped into words, each with the examples that decided it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from difflib import SequenceMatcher
from math import prod
from typing import Any

from kster.translation import TokenExplanation, Translation
from kster.translation.words import placed_words

EXAMPLES = 8  # listed of each token, the weightiest; their weights say how much the rest matters


def words_of(
    translation: Translation, homes: Mapping[str, dict[str, Any]], end_token: str
) -> list[dict[str, Any]]:
    """The words of an explained translation, in order; punctuation marks are words of their own.

    Each has its text, where it stands in the translation (`start`, `end`; None where the tokenizer's text
    differs), and its tokens. Its `mixing_weight` is the largest of its tokens': how much the memory counted;
    `term` is the source of the term it was written for, if any; `taught` is the example whose word was taken
    over as a whole, if any; `confidence` is None unless it was asked for. homes: what clients call the memory
    in a directory.
    """
    words: list[dict[str, Any]] = []
    tokens = translation.tokens or ()
    for word, start, end in placed_words([token.token for token in tokens], translation.text, end_token):
        group = tokens[word.first : word.last]
        weights = [token.mixing_weight for token in group]
        strongest = group[weights.index(max(weights))]
        words.append(
            {
                "text": word.text,
                "start": start,
                "end": end,
                "mixing_weight": strongest.mixing_weight,
                "bandwidth": strongest.bandwidth,
                "probability": prod(token.probability for token in group),
                "base_probability": prod(token.base_probability for token in group),
                "term": next((token.term for token in group if token.term is not None), None),
                "taught": _lesson(group, homes),
                "confidence": group[0].confidence,
                "tokens": [_token(token, homes) for token in group],
                "segments": _segments(group, homes),
            }
        )
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


def plain_words(text: str) -> list[dict[str, Any]]:
    """Words of a translation that was not explained."""
    found = re.finditer(r"\S+", text)
    return [{"text": word[0], "start": word.start(), "end": word.end()} for word in found]


def _token(token: TokenExplanation, homes: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    ranked = sorted(token.examples, key=lambda example: -example.weight)[:EXAMPLES]
    return {
        "token": token.token,
        "probability": token.probability,
        "base_probability": token.base_probability,
        "example_probability": token.example_probability,
        "mixing_weight": token.mixing_weight,
        "bandwidth": token.bandwidth,
        "examples": [{**asdict(example), "memory": homes.get(example.memory)} for example in ranked],
    }


def _lesson(group: Sequence[TokenExplanation], homes: Mapping[str, dict[str, Any]]) -> dict[str, Any] | None:
    lesson = next((token.taught for token in group if token.taught is not None), None)
    return None if lesson is None else asdict(lesson) | {"memory": homes.get(lesson.memory)}


def _segments(group: Sequence[TokenExplanation], homes: Mapping[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """The segments that spoke for this word, most influential first."""
    shares: dict[tuple[str, int], float] = {}
    texts: dict[tuple[str, int], tuple[str, str]] = {}
    for token in group:
        for example in token.examples:
            if example.token != token.token:
                continue  # it spoke for another word
            key = (example.memory, example.segment)
            shares[key] = shares.get(key, 0.0) + token.mixing_weight * example.weight / len(group)
            texts[key] = (example.source, example.target)
    ranked = sorted(shares.items(), key=lambda item: -item[1])[:EXAMPLES]
    return [
        {
            "memory": homes.get(directory),
            "segment": segment,
            "source": texts[directory, segment][0],
            "target": texts[directory, segment][1],
            "share": share,
        }
        for (directory, segment), share in ranked
    ]
