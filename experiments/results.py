"""From translations to scores and tables: sacreBLEU's BLEU and chrF with significance, averages, sections."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from experiments.data import Corpora, Pairs, Slice
from experiments.domains import NEWS_TRAIN
from experiments.stages import read_json
from kster.errors import KsterError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RESAMPLES = 1_000  # of the paired bootstrap

Numbers = dict[str, dict[str, float]]  # row → column → BLEU, as the paper has it
Curve = tuple[list[float], list[float]]  # xs, ys


def require_sacrebleu() -> None:
    """A run needs it, too: settings are chosen by BLEU on development text."""
    try:
        import sacrebleu  # noqa: F401
    except ImportError as error:
        raise KsterError(
            f"sacreBLEU cannot be imported ({error}): experiments choose settings by its BLEU. Install it; "
            "where there is no network, bring it along: `pip install --target DIR sacrebleu` elsewhere, and "
            "PYTHONPATH=DIR"
        ) from None


def corpus_bleu(lines: Sequence[str], references: Sequence[str]) -> float:
    """sacreBLEU with its defaults, from 0 to 100."""
    from sacrebleu.metrics import BLEU

    return float(BLEU().corpus_score(list(lines), [list(references)]).score)


def bleu_signature() -> str:
    from sacrebleu.metrics import BLEU

    metric = BLEU()
    metric.corpus_score(["a"], [["a"]])  # it signs only what it has scored
    return str(metric.get_signature())


@dataclass(slots=True)
class Score:
    """One cell. An average has no confidence and no p. paper: its figure for the same cell, if it has one."""

    bleu: float | None
    confidence: float | None = None
    p_value: float | None = None  # against the table's baseline
    chrf: float | None = None
    rare: float | None = None  # recall of rare words, %
    paper: float | None = None

    def text(self) -> str:
        ours = "–" if self.bleu is None else f"{self.bleu:.1f}"
        if self.p_value is not None and self.p_value < 0.05:
            ours += "*"
        return ours if self.paper is None else f"{ours} ({self.paper:.2f})"


@dataclass(slots=True)
class ScoredTable:
    """A table, filled in. rows, columns: each name's coordinates (`systems.Coordinates`), in order."""

    baseline: str
    rows: dict[str, dict[str, Any]] = field(default_factory=dict)
    columns: dict[str, dict[str, Any]] = field(default_factory=dict)
    cells: dict[str, dict[str, Score]] = field(default_factory=dict)  # row → column → score
    signatures: dict[str, str] = field(default_factory=dict)
    sentences: dict[str, int] = field(default_factory=dict)  # by column

    def bleu(self, row: str, column: str) -> float | None:
        score = self.cells.get(row, {}).get(column)
        return None if score is None else score.bleu

    def over_rows(self, coordinate: str, column: str) -> dict[str, Curve]:
        """BLEU in one column over a coordinate of the rows that has numbers, a curve for each system."""
        curves: dict[str, Curve] = {}
        for row, at in self.rows.items():
            value = self.bleu(row, column)
            if isinstance(at.get(coordinate), int | float) and value is not None:
                system = ", ".join(filter(None, (at["system"], at.get("variant"))))
                xs, ys = curves.setdefault(system, ([], []))
                xs.append(float(at[coordinate]))
                ys.append(value)
        return curves

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def score_cells(result: dict[str, Any], corpora: Corpora, out: Path, paper: Numbers) -> ScoredTable:
    """Score every cell of a run; the paper's figures go beside ours, its own columns at the end."""
    table = ScoredTable(result["baseline"] or "")
    common = {word for _, target in corpora.pairs(NEWS_TRAIN) for word in _words(target)}
    by_column: dict[str, dict[str, Path]] = {}
    tests: dict[str, Slice] = {}
    for cell in result["cells"]:
        by_column.setdefault(cell["column"], {})[cell["row"]] = out / cell["translation"]
        tests[cell["column"]] = Slice(**cell["test"])
        table.rows[cell["row"]] = cell["row_coordinates"]
        table.columns[cell["column"]] = cell["column_coordinates"]
    for column, files in by_column.items():
        _score_column(table, column, files, corpora.pairs(tests[column]), common)
    _add_averages(table, result["averages"])
    _add_paper(table, paper)
    return table


def _score_column(
    table: ScoredTable, column: str, files: dict[str, Path], pairs: Pairs, common: set[str]
) -> None:
    from kster.evaluation import evaluate

    lines: dict[str, list[str]] = {}
    for row in sorted(files, key=lambda row: row != table.baseline):  # the baseline first
        lines[row] = translated(files[row])
    references = [target for _, target in pairs]
    report = evaluate(lines, references, resamples=RESAMPLES)
    compared = report.baseline == table.baseline
    table.sentences[column] = len(pairs)
    table.signatures |= report.signatures
    for system in report.systems:
        bleu, chrf = system.metrics["BLEU"], system.metrics["chrF2"]
        table.cells.setdefault(system.name, {})[column] = Score(
            bleu.score,
            bleu.confidence,
            bleu.p_value if compared else None,
            chrf.score,
            rare_word_recall(lines[system.name], references, common),
        )


def rare_word_recall(lines: Sequence[str], references: Sequence[str], common: set[str]) -> float | None:
    """How many of the references' words that are not common stand in the translations, in percent: the terms
    of a domain, mostly. None where there are none."""
    wanted = matched = 0
    for line, reference in zip(lines, references, strict=True):
        rare = Counter(word for word in _words(reference) if word not in common)
        wanted += rare.total()
        matched += (rare & Counter(_words(line))).total()
    return 100.0 * matched / wanted if wanted else None


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def translated(path: Path) -> list[str]:
    """The lines of a translation that a run left behind."""
    if not path.is_file():
        raise KsterError(f"{path}: the translations are missing; fetch all of the run's out directory")
    return list(read_json(path)["lines"])


def _add_averages(table: ScoredTable, averages: dict[str, list[str]]) -> None:
    """They come first: a wide table shows them without being moved."""
    table.columns = {name: {"average of": columns} for name, columns in averages.items()} | table.columns
    for name, columns in averages.items():
        for row in table.rows:
            values = [table.bleu(row, column) for column in columns]
            known = [value for value in values if value is not None]
            if len(known) == len(columns):
                table.cells[row][name] = Score(sum(known) / len(known))


def _add_paper(table: ScoredTable, numbers: Numbers) -> None:
    for row, columns in numbers.items():  # a row or column of the paper that we do not have still shows
        table.rows.setdefault(row, {"system": row})
        for column, value in columns.items():
            table.columns.setdefault(column, {"test": column})
            table.cells.setdefault(row, {}).setdefault(column, Score(None)).paper = value


# What a report is made of ------------------------------------------------------------------------------


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


def further_table(scored: ScoredTable, title: str) -> TextTable:
    """chrF and the recall of rare words, of what was translated."""
    rows = [["", *scored.sentences]]
    for row in scored.rows:
        cells = [scored.cells.get(row, {}).get(column) for column in scored.sentences]
        texts = ["–" if c is None or c.chrf is None else f"{c.chrf:.1f}; {_percent(c.rare)}" for c in cells]
        rows.append([row, *texts])
    note = (
        "Rare words: those of the references that 13,064 lines of news (newstest 2008 to 2012) do not have."
    )
    return TextTable(title, rows, (f"chrF2; recall of rare words. {note}",))


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{share:.0f} %"
