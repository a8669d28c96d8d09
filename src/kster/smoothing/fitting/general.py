"""General-domain text for fits: what a memory of a narrow domain should leave to the base model."""

from __future__ import annotations

from pathlib import Path

from kster.text.languages import match_rank

TEXTS = Path(__file__).parent / "general_text"


def general_text(source: str | None, target: str | None) -> list[tuple[str, str]]:
    """The pairs that ship for these languages (`en`, `de_DE`, `eng_Latn`, …), in either direction; none for
    others."""
    for path in sorted(TEXTS.glob("*.tsv")):
        left, right = path.stem.split("-")
        if _are((source, left), (target, right)):
            return _read(path)
        if _are((source, right), (target, left)):
            return [(theirs, ours) for ours, theirs in _read(path)]
    return []


def _are(*languages: tuple[str | None, str]) -> bool:
    return all(given is not None and match_rank(given, shipped) for given, shipped in languages)


def _read(path: Path) -> list[tuple[str, str]]:
    lines = path.read_text(encoding="utf-8").splitlines()
    return [(left, right) for left, _, right in (line.partition("\t") for line in lines)]
