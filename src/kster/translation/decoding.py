"""How translations are searched for."""

from __future__ import annotations

from dataclasses import dataclass

from kster.errors import KsterError

WIDEST_BEAM = 256
DEFAULT_LENGTH_PENALTY = 0.6  # the paper's
STRONGEST_LENGTH_PENALTY = 10.0  # 1024¹⁰ is 10³⁰: scores divided by more would leave single precision


@dataclass(frozen=True, slots=True)
class Decoding:
    """How to search, and what to return.

    length_penalty: None for the one that the memory's fit chose, or else DEFAULT_LENGTH_PENALTY.
    n_best: how many translations of a text. explain: whether to say where each token comes from.
    align: whether to say which characters of a text became which of its translation.
    confidence: whether to say how likely translations and their words are right.
    """

    beam: int = 4
    length_penalty: float | None = None
    n_best: int = 1
    explain: bool = False
    align: bool = False
    confidence: bool = False

    def __post_init__(self) -> None:
        if not 1 <= self.n_best <= self.beam <= WIDEST_BEAM:
            accepted = f"1 ≤ n_best ≤ beam ≤ {WIDEST_BEAM}"
            raise KsterError(f"n_best is {self.n_best} and beam {self.beam}; accepted: {accepted}")
        if not abs(self.length_penalty or 0.0) <= STRONGEST_LENGTH_PENALTY:  # nor nan
            raise KsterError(
                f"length_penalty is {self.length_penalty}; accepted: from −{STRONGEST_LENGTH_PENALTY:g} "
                f"to {STRONGEST_LENGTH_PENALTY:g}"
            )

    def penalty(self, learned: float | None) -> float:
        """What the search divides scores by; learned: what a fit chose."""
        return next(p for p in (self.length_penalty, learned, DEFAULT_LENGTH_PENALTY) if p is not None)
