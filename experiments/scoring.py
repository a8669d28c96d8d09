"""From translations to scores: BLEU and chrF with significance, and the averages of a table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from experiments.data import Corpora, Slice
from experiments.paper import PAPER, paper_value
from experiments.stages import read_json
from kster.errors import KsterError

RESAMPLES = 1_000  # of the paired bootstrap


@dataclass(slots=True)
class Score:
    """One cell. An average has no confidence and no p. paper: its figure for the same cell, if it has one."""

    bleu: float | None
    confidence: float | None = None
    p_value: float | None = None  # against the table's baseline
    chrf: float | None = None
    paper: float | None = None

    def text(self) -> str:
        ours = "–" if self.bleu is None else f"{self.bleu:.1f}"
        if self.p_value is not None and self.p_value < 0.05:
            ours += "*"
        return ours if self.paper is None else f"{ours} ({self.paper:.2f})"


@dataclass(slots=True)
class ScoredTable:
    """A table of the paper, filled in."""

    baseline: str
    rows: list[str] = field(default_factory=list)
    columns: list[str] = field(default_factory=list)
    cells: dict[str, dict[str, Score]] = field(default_factory=dict)  # row → column → score
    signatures: dict[str, str] = field(default_factory=dict)
    sentences: dict[str, int] = field(default_factory=dict)  # by column

    def bleu(self, row: str, column: str) -> float | None:
        score = self.cells.get(row, {}).get(column)
        return None if score is None else score.bleu

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def score_cells(result: dict[str, Any], data: Path, out: Path) -> ScoredTable:
    """Score every cell of a run; the paper's figures go beside ours, its own columns at the end."""
    direction = tuple(result["direction"].split("-"))
    corpora = Corpora(data, (direction[0], direction[1]))
    table = ScoredTable(result["baseline"] or "")
    by_column: dict[str, dict[str, Path]] = {}
    tests: dict[str, Slice] = {}
    for cell in result["cells"]:
        by_column.setdefault(cell["column"], {})[cell["row"]] = out / cell["translation"]
        tests[cell["column"]] = Slice(**cell["test"])
        if cell["row"] not in table.rows:
            table.rows.append(cell["row"])
    for column, files in by_column.items():
        _score_column(table, column, files, corpora.pairs(tests[column]))
    _add_averages(table, result["averages"])
    _add_paper(table, result["experiment"], result["direction"])
    return table


def _score_column(
    table: ScoredTable, column: str, files: dict[str, Path], pairs: list[tuple[str, str]]
) -> None:
    from kster.evaluation import evaluate

    lines: dict[str, list[str]] = {}
    for row in sorted(files, key=lambda row: row != table.baseline):  # the baseline first
        lines[row] = translated(files[row])
    report = evaluate(lines, [target for _, target in pairs], resamples=RESAMPLES)
    compared = report.baseline == table.baseline
    table.columns.append(column)
    table.sentences[column] = len(pairs)
    table.signatures |= report.signatures
    for system in report.systems:
        bleu, chrf = system.metrics["BLEU"], system.metrics["chrF2"]
        table.cells.setdefault(system.name, {})[column] = Score(
            bleu.score, bleu.confidence, bleu.p_value if compared else None, chrf.score
        )


def bleu_scorer() -> tuple[Callable[[list[str], list[str]], float], str]:
    """sacreBLEU of some translations and their references, for many of them; and its signature."""
    from sacrebleu.metrics import BLEU

    metric = BLEU()

    def score(lines: list[str], references: list[str]) -> float:
        return float(metric.corpus_score(lines, [references]).score)

    score(["a"], ["a"])  # it signs only what it has scored
    return score, str(metric.get_signature())


def translated(path: Path) -> list[str]:
    """The lines of a translation that a run left behind."""
    if not path.is_file():
        raise KsterError(f"{path}: the translations are missing; fetch all of the run's out directory")
    return list(read_json(path)["lines"])


def _add_averages(table: ScoredTable, averages: dict[str, list[str]]) -> None:
    """They come first: a wide table shows them without being moved."""
    table.columns[:0] = averages
    for name, columns in averages.items():
        for row in table.rows:
            values = [table.bleu(row, column) for column in columns]
            known = [value for value in values if value is not None]
            if len(known) == len(columns):
                table.cells[row][name] = Score(sum(known) / len(known))


def _add_paper(table: ScoredTable, experiment: str, direction: str) -> None:
    numbers = PAPER.get(experiment, {}).get(direction, {})
    for row in numbers:  # a row of the paper that we do not have still shows
        if row not in table.rows:
            table.rows.append(row)
    for columns in numbers.values():
        table.columns += [column for column in columns if column not in table.columns]
    for row in table.rows:
        for column in table.columns:
            value = paper_value(experiment, direction, row, column)
            if value is not None:
                cells = table.cells.setdefault(row, {})
                cells.setdefault(column, Score(None)).paper = value
