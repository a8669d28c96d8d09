"""A translation: its text, its score and, where asked for, its explanation; and how it is put together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from kster.translation.explanation import TokenExplanation
from kster.translation.splitting import Piece, join_pieces


@dataclass(frozen=True, slots=True)
class Translation:
    """A translated text; str() gives the text.

    score: mean of its pieces' length-normalised log-probabilities. alternatives: the other hypotheses of
    an n-best list, for a text translated in one piece. tokens: its explanation, where asked for.
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


@dataclass(frozen=True, slots=True)
class Output:
    """What became of one piece."""

    text: str
    score: float
    alternatives: tuple[str, ...]
    tokens: tuple[TokenExplanation, ...] | None


def assemble(
    text: str, parts: list[Piece], tail: str, outputs: Iterator[Output], explained: bool
) -> Translation:
    """Put the outputs of one text's pieces back together; takes as many from `outputs` as it has pieces."""
    own: list[Output] = [next(outputs) for _ in parts]
    joined = join_pieces(parts, [output.text for output in own], tail)
    return Translation(
        source=text,
        text=joined,
        score=sum(output.score for output in own) / len(own) if own else 0.0,
        alternatives=own[0].alternatives if len(own) == 1 else (),
        tokens=tuple(token for output in own for token in output.tokens or ()) if explained else None,
    )
