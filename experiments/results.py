"""What a report is made of: tables as text and figures, for one experiment in one direction."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from experiments.data import Corpora, Slice
from experiments.scoring import Numbers, ScoredTable, translated

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
    """One direction of an experiment. result: what its run left behind; data: what a machine will read.

    paper: its figures for this direction; scored: the table of BLEU, where translations were scored.
    """

    result: dict[str, Any]
    corpora: Corpora
    out: Path
    paper: Numbers = field(default_factory=dict)
    scored: ScoredTable = field(default_factory=lambda: ScoredTable(""))
    tables: list[TextTable] = field(default_factory=list)
    figures: dict[str, Figure] = field(default_factory=dict)  # by file name, without its ending
    data: dict[str, Any] = field(default_factory=dict)

    @property
    def direction(self) -> str:
        return str(self.result["direction"])

    @property
    def statistics(self) -> dict[str, Any]:
        found: dict[str, Any] = self.result["statistics"]
        return found

    def title(self, subject: str) -> str:
        return f"{subject}, {self.direction} ({self.result['scale']})"

    def texts(self, cell: dict[str, Any]) -> tuple[list[str], list[str]]:
        """The translations of one cell and their references."""
        references = [target for _, target in self.corpora.pairs(Slice(**cell["test"]))]
        return translated(self.out / cell["translation"]), references


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
