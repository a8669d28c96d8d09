"""How likely a translation is right: a number between 0 and 1 for a sentence and for each of its words.

Of a sentence it is the probability that its chrF against a person's translation is at least `chrf` (as the
model's file says), which is where little is left to edit; of a word, that a person would have written it.
Two logistic regressions compute it from what the forced pass of explanations knows: how probable the tokens
were, how much the memory counted, how near its examples and its best fuzzy match were, and lengths. No number
depends on the scale of a model's states, so one file serves all models: `benchmarks/confidence.py` fits it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from math import exp, log
from operator import mul
from statistics import fmean
from typing import Any

from kster.translation.explanation import TokenExplanation
from kster.translation.words import placed_words, words_of

FILE = "confidence.json"
LEAST_LOG = -12.0  # all that is less probable than e⁻¹² counts the same
FARTHEST = 1.5  # of a state's length: no example is nearer than that, or there is none
DOUBTFUL = 0.5  # tokens that are less probable are counted
_WORD = re.compile(r"\w+")

SENTENCE_FEATURES = (
    "mean log p",
    "least log p",
    "share of doubtful tokens",
    "mean log p of the base model",
    "mean log of p over its favourite's",
    "mean mixing weight",
    "mean share of the memory",
    "mean nearest distance",
    "share of tokens with an example next to them",
    "best fuzzy match",
    "log length",
    "log length over the source's",
    "mean of the least quarter of log p",
    "good part of the best fuzzy match",
    "a memory was asked",
    "the source ends as sentences do",
    "log characters a token",
    "share of words that are in the source",
    "share of words with a capital",
)
WORD_FEATURES = (
    "least log p",
    "log p",
    "least log p of the base model",
    "mixing weight",
    "share of the memory",
    "nearest distance",
    "log p of the word before",
    "log p of the word behind",
    "log length",
    "punctuation",
    "digits",
    "in the source",
    "confidence of the sentence",
    "best fuzzy match",
)


@dataclass(frozen=True, slots=True)
class WordConfidence:
    """A word of a translation, where it stands there, and how likely it is right."""

    text: str
    start: int | None  # None where the tokenizer's text differs from the translation's
    end: int | None
    confidence: float


@dataclass(frozen=True, slots=True)
class Regression:
    """Standardised numbers → the logarithm of the odds → a probability."""

    mean: Sequence[float]  # (f,)
    scale: Sequence[float]  # (f,)
    weights: Sequence[float]  # (f,)
    bias: float

    def __call__(self, numbers: Sequence[float], shift: float = 0.0) -> float:
        given = [(x - m) / s for x, m, s in zip(numbers, self.mean, self.scale, strict=True)]
        return probability(sum(map(mul, self.weights, given)) + self.bias + shift)


def probability(odds: float) -> float:
    """Of the odds' logarithm."""
    return 1.0 / (1.0 + exp(-max(-30.0, min(30.0, odds))))


@dataclass(frozen=True, slots=True)
class ConfidenceModel:
    """chrf: what a translation must reach to count as right."""

    chrf: float
    sentence: Regression
    word: Regression

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> ConfidenceModel:
        return cls(data["chrf"], Regression(**data["sentence"]), Regression(**data["word"]))

    def judge(
        self, tokens: Sequence[TokenExplanation], source: str, text: str, match: int, shift: float = 0.0
    ) -> tuple[float, list[TokenExplanation]]:
        """The confidence of a sentence, and its tokens with that of their words.

        tokens: end with the end of sentence. match: the percentage of the best fuzzy match, 0 for none.
        shift: of the sentence's log odds, as a fit of the memory has chosen it (`calibration.py`).
        """
        sentence = self.sentence(sentence_features(tokens, source, text, match), shift)
        judged = list(tokens)
        for first, last, numbers in word_features(tokens, source, sentence, match):
            own = self.word(numbers)
            judged[first:last] = [replace(token, confidence=own) for token in tokens[first:last]]
        return sentence, judged


@cache
def shipped_confidence() -> ConfidenceModel:
    return ConfidenceModel.from_json(json.loads(files(__package__).joinpath(FILE).read_text("utf-8")))


def word_confidences(tokens: Sequence[TokenExplanation], text: str) -> Iterator[WordConfidence]:
    """The words of a judged translation, one sentence's tokens after the other's, and where they stand."""
    if tokens:
        for word, start, end in placed_words([token.token for token in tokens], text, tokens[-1].token):
            own = tokens[word.first].confidence
            yield WordConfidence(word.text, start, end, 1.0 if own is None else own)


def sentence_features(tokens: Sequence[TokenExplanation], source: str, text: str, match: int) -> list[float]:
    """As SENTENCE_FEATURES names them."""
    words, known = _WORD.findall(text), set(_WORD.findall(source.casefold()))
    logs = [log_of(token.probability) for token in tokens]
    base = [log_of(token.base_probability) for token in tokens]
    nearest = [_nearest(token) for token in tokens]
    return [
        fmean(logs),
        min(logs),
        fmean(token.probability < DOUBTFUL for token in tokens),
        fmean(base),
        fmean(own - log_of(token.favourite_probability) for own, token in zip(base, tokens, strict=True)),
        fmean(token.mixing_weight for token in tokens),
        fmean(token.memory_share for token in tokens),
        fmean(nearest),
        fmean(distance < 0.1 for distance in nearest),
        match / 100,
        log(len(tokens)),
        log((1 + len(text)) / (1 + len(source))),
        fmean(sorted(logs)[: max(1, len(logs) // 4)]),
        max(0, match - 70) / 30,
        float(any(token.bandwidth is not None for token in tokens)),
        float(source.rstrip().endswith((".", "!", "?"))),
        log(0.1 + len(text) / len(tokens)),
        _share(word.casefold() in known for word in words),
        _share(word[0].isupper() for word in words),
    ]


def word_features(
    tokens: Sequence[TokenExplanation], source: str, sentence: float, match: int
) -> list[tuple[int, int, list[float]]]:
    """The first and the last token (excluded) of each word, and what is known of it, as in WORD_FEATURES."""
    end = tokens[-1].token
    words = words_of([token.token for token in tokens], end)
    totals = [sum(log_of(token.probability) for token in tokens[word.first : word.last]) for word in words]
    found = []
    known = source.casefold()
    for i, word in enumerate(words):
        own = tokens[word.first : word.last]
        numbers = [
            min(log_of(token.probability) for token in own),
            max(LEAST_LOG, totals[i]),
            min(log_of(token.base_probability) for token in own),
            max(token.mixing_weight for token in own),
            fmean(token.memory_share for token in own),
            max(map(_nearest, own)),
            max(LEAST_LOG, totals[i - 1]) if i else 0.0,
            max(LEAST_LOG, totals[i + 1]) if i + 1 < len(words) else 0.0,
            log(len(own)),
            float(not any(map(str.isalnum, word.text))),
            float(any(map(str.isdigit, word.text))),
            float(word.text.casefold() in known),
            sentence,
            match / 100,
        ]
        found.append((word.first, word.last, numbers))
    return found


def log_of(probability: float) -> float:
    return max(LEAST_LOG, log(probability)) if probability > 0 else LEAST_LOG


def _share(flags: Iterable[bool]) -> float:
    counted = list(flags)
    return sum(counted) / len(counted) if counted else 0.0


def _nearest(token: TokenExplanation) -> float:
    return FARTHEST if token.nearest is None else min(FARTHEST, token.nearest)
