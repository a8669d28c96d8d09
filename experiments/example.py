"""The translation memory that ships with the project, as a corpus: its segments, and those held out."""

from __future__ import annotations

from pathlib import Path

from kster.errors import KsterError
from kster.formats import Pair, read_pairs

EXAMPLE = "example"
DIRECTORY = Path(__file__).parents[1] / "examples"


def example_pairs(split: str, direction: tuple[str, str]) -> list[tuple[str, str]]:
    """split: "train" or "test"."""
    if not DIRECTORY.is_dir():
        raise KsterError(f"{DIRECTORY}: no example memory there; it comes with a checkout of the repository")
    if split == "train":
        pairs = read_pairs(DIRECTORY / "ombravella.tmx", *direction)
        return [(pair.source, pair.target) for pair in pairs if isinstance(pair, Pair)]
    sides = [
        (DIRECTORY / f"heldout.{language}").read_text(encoding="utf-8").splitlines() for language in direction
    ]
    return list(zip(*sides, strict=True))
