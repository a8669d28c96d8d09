"""A fit, moved to where it translates best: what kNN-MT is given, for KSTER.

A fit is the most likely one. BLEU might like larger weights, as it does with kNN-MT, and other kernels; so
all bandwidths and weights are moved together, by three numbers, chosen by BLEU on development text.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

from experiments.climbing import climb
from experiments.pipeline import Pipeline
from experiments.stages import part_of

SHIFT = 0.75  # a step: a λ of 0.5 becomes 0.68 or 0.32
GENERAL_WEIGHT = 0.5  # what a point of BLEU on general text is worth, beside one on the domain's


@dataclass(frozen=True, slots=True)
class Move:
    """What `Smoother.moved` is told."""

    bandwidth: float = 1.0
    shift: float = 0.0
    sharpness: float = 1.0

    @property
    def around(self) -> list[Move]:
        """One step each, up and down."""
        return [
            *(replace(self, shift=self.shift + step) for step in (SHIFT, -SHIFT)),
            *(replace(self, bandwidth=self.bandwidth * factor) for factor in (0.5, 2.0)),
            *(replace(self, sharpness=self.sharpness * factor) for factor in (2.0, 0.5)),
        ]


def calibrated(pipeline: Pipeline, fit: Path, choose: Callable[[list[Path]], Path], steps: int) -> Path:
    """The fit, moved from where likelihood left it; its directory is made when it is read.

    First with larger weights, and kernels as they are or wider, for these go together; then step by step.
    choose: the smoother with the highest BLEU on development text, among equals the first.
    """

    def best_of(moves: list[Move]) -> Move:
        places = [moved(pipeline, fit, move) for move in moves]
        return moves[places.index(choose(places))]

    start = best_of([Move(bandwidth, up * SHIFT) for bandwidth in (1.0, 2.0) for up in range(4)])
    best = climb(start, lambda move: move.around, best_of, steps)
    return moved(pipeline, fit, best)


def moved(pipeline: Pipeline, fit: Path, move: Move) -> Path:
    if move == Move():
        return fit
    name = f"{fit.name}-bandwidth-x{move.bandwidth:g}-weight{move.shift:+g}-x{move.sharpness:g}"
    directory = fit.with_name(name)
    return pipeline.promise(directory, partial(_make, pipeline, fit, move, directory))


def _make(pipeline: Pipeline, fit: Path, move: Move, directory: Path) -> None:
    part = part_of(directory)
    pipeline.smoother(fit).moved(**asdict(move)).save(part)
    part.rename(directory)
