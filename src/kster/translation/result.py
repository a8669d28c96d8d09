"""A translation: its text, its score and, where asked for, its explanation; and how it is put together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from kster.translation.decoding import Decoding
from kster.translation.explanation import TokenExplanation
from kster.translation.splitting import SplitText, join_pieces


@dataclass(frozen=True, slots=True)
class Translation:
    """A translated text; str() gives the text.

    score: mean of its pieces' length-normalised log-probabilities; pieces are sentences, or lines.
    alternatives: the others of an n-best list, by that score; of a text in several pieces, the best ways to
    choose a hypothesis of each. tokens: its explanation, where asked for, piece after piece, each with its
    end of sentence.
    """

    source: str
    text: str
    score: float
    alternatives: tuple[str, ...] = ()
    tokens: tuple[TokenExplanation, ...] | None = None

    def __str__(self) -> str:
        return self.text

    def to_json(self) -> dict[str, Any]:
        data: dict[str, Any] = {"source": self.source, "text": self.text, "score": self.score}
        if self.alternatives:
            data["alternatives"] = list(self.alternatives)
        if self.tokens is not None:
            data["tokens"] = [token.to_json() for token in self.tokens]
        return data


_Chain = tuple["_Chain", str] | None  # texts chosen, the last one first


@dataclass(frozen=True, slots=True)
class Output:
    """What became of one piece: its hypotheses, each with its score, the best first."""

    hypotheses: tuple[tuple[str, float], ...]
    tokens: tuple[TokenExplanation, ...] | None


def assemble(split: SplitText, outputs: Iterator[Output], decoding: Decoding) -> Translation:
    """Put the outputs of one text's pieces back together; takes as many from `outputs` as it has pieces."""
    parts, tail = split.pieces, split.tail
    own: list[Output] = [next(outputs) for _ in parts]
    (score, best), *rest = _combined([output.hypotheses for output in own], decoding.n_best)
    return Translation(
        source=split.text,
        text=join_pieces(parts, best, tail),
        score=score / len(own) if own else 0.0,
        alternatives=tuple(join_pieces(parts, other, tail) for _, other in rest),
        tokens=tuple(token for output in own for token in output.tokens or ()) if decoding.explain else None,
    )


def _combined(lists: Sequence[Sequence[tuple[str, float]]], n_best: int) -> list[tuple[float, list[str]]]:
    """The best ways to choose one of each list, which is sorted: the sum of their scores, and the choice."""
    best: list[tuple[float, _Chain]] = [(0.0, None)]
    for hypotheses in lists:
        # Way i with hypothesis j is beaten by (i + 1) · (j + 1) − 1 others.
        longer: list[tuple[float, _Chain]] = [
            (total + score, (chosen, text))
            for i, (total, chosen) in enumerate(best)
            for text, score in hypotheses[: n_best // (i + 1)]
        ]
        best = sorted(longer, key=lambda way: -way[0])[:n_best]
    return [(total, _unchained(chosen)) for total, chosen in best]


def _unchained(chain: _Chain) -> list[str]:
    texts = []
    while chain is not None:
        chain, text = chain
        texts.append(text)
    return texts[::-1]
