"""What a report is made of: tables as text and figures, for one experiment in one direction."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from experiments.scoring import ScoredTable

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True)
class TextTable:
    """A table whose cells are text; the first row is its heading."""

    title: str
    rows: list[list[str]]
    notes: tuple[str, ...] = ()

    def to_markdown(self) -> str:
        heading, *rows = self.rows
        rule = ["---", *("---:" for _ in heading[1:])]
        lines = ["| " + " | ".join(row) + " |" for row in (heading, rule, *rows)]
        notes = ["", *(f"- {note}" for note in self.notes)] if self.notes else []
        return "\n".join([f"**{self.title}**", "", *lines, *notes]) + "\n"


@dataclass(slots=True)
class Section:
    """One direction of an experiment; origin: how it was made; data is what a machine reads."""

    direction: str
    origin: dict[str, Any]
    tables: list[TextTable] = field(default_factory=list)
    figures: dict[str, Figure] = field(default_factory=dict)  # by file name, without its ending
    data: dict[str, Any] = field(default_factory=dict)


def bleu_table(scored: ScoredTable, title: str) -> TextTable:
    """Ours, and the paper's figure in brackets."""
    rows = [["", *scored.columns]]
    for row in scored.rows:
        cells = scored.cells.get(row, {})
        rows.append([row, *(cells[c].text() if c in cells else "–" for c in scored.columns)])
    counts = "; ".join(f"{column}: {count:,}" for column, count in scored.sentences.items())
    notes = [f"BLEU. Sentences: {counts}."]
    if any(score.paper is not None for cells in scored.cells.values() for score in cells.values()):
        notes.append("In brackets the paper's figure, whose averages are over its own domains.")
    if scored.baseline:
        notes.append(f"* differs from {scored.baseline} (paired bootstrap, p < 0.05).")
    notes += [f"{name}: `{signature}`" for name, signature in scored.signatures.items()]
    return TextTable(title, rows, tuple(notes))
