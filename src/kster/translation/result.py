"""A translation: its text, its score and, where asked for, its explanation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, TypeVar

from kster.text.codes import Token
from kster.text.projection import Link
from kster.translation.confidence import WordConfidence
from kster.translation.explanation import TokenExplanation

Chosen = TypeVar("Chosen")


@dataclass(frozen=True, slots=True)
class Translation:
    """A translated text; str() gives the text.

    score: mean of its pieces' length-normalised log-probabilities; pieces are sentences, or lines.
    alternatives: the others of an n-best list, by that score; for a text in several pieces, the best
    combinations of their hypotheses. tokens: its explanation, if wanted, piece after piece, each with its end
    of sentence. repaired: whether placeholders or tags were lost and put back where they seem to belong:
    somebody should check. content: texts and codes, for documents. confidence, words: if wanted, how likely
    it is right, from 0 to 1 (of several pieces the mean, weighted by length), and how likely each word is.
    """

    source: str
    text: str
    score: float
    alternatives: tuple[str, ...] = ()
    tokens: tuple[TokenExplanation, ...] | None = None
    repaired: bool = False
    content: tuple[Token, ...] = field(default=(), repr=False)
    confidence: float | None = None
    words: tuple[WordConfidence, ...] | None = None

    def __str__(self) -> str:
        return self.text

    def to_json(self) -> dict[str, Any]:
        """The translation as `kster translate --json` writes it.

        Returns:
            What it has, by name; what was not asked for is left out.
        """
        data: dict[str, Any] = {"source": self.source, "text": self.text, "score": self.score}
        if self.alternatives:
            data["alternatives"] = list(self.alternatives)
        if self.repaired:
            data["repaired"] = True
        if self.confidence is not None:
            data["confidence"] = self.confidence
        if self.words is not None:
            data["words"] = [asdict(word) for word in self.words]
        if self.tokens is not None:
            data["tokens"] = [token.to_json() for token in self.tokens]
        return data


@dataclass(frozen=True, slots=True)
class Output:
    """What became of one piece: its hypotheses, each with its score, the best first.

    Those that have the same marks as the piece come before those that do not. tokens, confidence: of the
    first; links: of each.
    """

    hypotheses: tuple[tuple[str, float], ...]
    tokens: tuple[TokenExplanation, ...] | None = None
    links: tuple[tuple[Link, ...], ...] | None = None
    confidence: float | None = None


def best_choices(
    lists: Sequence[Sequence[tuple[Chosen, float]]], n_best: int
) -> list[tuple[float, list[Chosen]]]:
    """The best combinations of one item of each list: the sum of their scores, and the items.

    The first item of a list is its best, whatever its score: it was taken for what it says (`choice.py`).
    """
    best: list[tuple[float, Any]] = [(0.0, None)]  # with what was chosen as a chain, the last one first
    for hypotheses in lists:
        # Way i with hypothesis j is beaten by (i + 1) · (j + 1) − 1 others.
        longer = [
            (total + min(score, hypotheses[0][1]), (chosen, own))
            for i, (total, chosen) in enumerate(best)
            for own, score in hypotheses[: n_best // (i + 1)]
        ]
        best = sorted(longer, key=lambda way: -way[0])[:n_best]
    return [(total, _unchained(chosen)) for total, chosen in best]


def _unchained(chain: Any) -> list[Any]:
    chosen = []
    while chain is not None:
        chain, own = chain
        chosen.append(own)
    return chosen[::-1]
