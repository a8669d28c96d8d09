"""General-domain text for fits: what a memory of a narrow domain should leave to the base model."""

from __future__ import annotations

from pathlib import Path

TEXTS = Path(__file__).parent / "general_text"


def general_text(source: str | None, target: str | None) -> list[tuple[str, str]]:
    """The pairs that ship for these languages (`en`, `de_DE`, …), in either direction; none for others."""
    languages = [_language(source), _language(target)]
    path = TEXTS / f"{'-'.join(languages)}.tsv"
    if path.is_file():
        return _read(path)
    path = TEXTS / f"{'-'.join(reversed(languages))}.tsv"
    if path.is_file():
        return [(right, left) for left, right in _read(path)]
    return []


def _language(code: str | None) -> str:
    return (code or "").replace("_", "-").split("-")[0].lower()


def _read(path: Path) -> list[tuple[str, str]]:
    lines = path.read_text(encoding="utf-8").splitlines()
    return [(left, right) for left, _, right in (line.partition("\t") for line in lines)]
