"""Tables of words that follow no rule; they lie beside the modules."""

from __future__ import annotations

from importlib.resources import files


def word_table(name: str) -> dict[str, tuple[str, ...]]:
    """A tab-separated file: the first word of a line → the others."""
    lines = files("kster.terms").joinpath(name).read_text(encoding="utf-8").splitlines()
    return {word: tuple(others) for word, *others in (line.split("\t") for line in lines)}
