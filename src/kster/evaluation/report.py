"""What an evaluation found: scores, their uncertainty, and how they were made."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

SIGNIFICANT = 0.05


@dataclass(frozen=True, slots=True)
class MetricResult:
    """One metric of one system.

    mean, confidence: over the bootstrap resamples; 95 % of them lie within mean ± confidence.
    p_value: that a difference from the baseline this large is chance; None for the baseline itself.
    """

    score: float
    mean: float
    confidence: float
    p_value: float | None = None

    @property
    def significant(self) -> bool:
        """Whether it differs from the baseline beyond chance (p < 0.05)."""
        return self.p_value is not None and self.p_value < SIGNIFICANT


@dataclass(frozen=True, slots=True)
class SystemResult:
    """One system's metrics, by the metric's name ("BLEU", "chrF2")."""

    name: str
    metrics: dict[str, MetricResult]


@dataclass(frozen=True, slots=True)
class EvaluationReport:
    """Every system against the first one, the baseline.

    signatures: how each metric was computed, in sacreBLEU's notation, seed and resamples included.
    """

    systems: tuple[SystemResult, ...]
    signatures: dict[str, str]
    sentences: int
    resamples: int
    seed: int

    @property
    def baseline(self) -> str:
        return self.systems[0].name

    def __getitem__(self, name: str) -> SystemResult:
        for system in self.systems:
            if system.name == name:
                return system
        raise KeyError(name)

    def to_json(self) -> dict[str, Any]:
        return {"baseline": self.baseline, **asdict(self)}

    def rows(self) -> list[list[str]]:
        """The table as text: a heading, then one row for each system."""
        names = list(self.signatures)
        heading = ["system", *(part for name in names for part in (name, "± 95 %", "p"))]
        return [heading, *([system.name, *self._cells(system)] for system in self.systems)]

    def _cells(self, system: SystemResult) -> list[str]:
        cells = []
        for name in self.signatures:
            result = system.metrics[name]
            p = "" if result.p_value is None else f"{result.p_value:.3f}{'*' if result.significant else ''}"
            cells += [f"{result.score:.1f}", f"{result.confidence:.1f}", p]
        return cells

    def notes(self) -> list[str]:
        """What a reader needs to know about the numbers, one line each."""
        lines = [f"{self.sentences:,} {'sentence' if self.sentences == 1 else 'sentences'}"]
        if len(self.systems) > 1:
            lines[0] += (
                f"; p: paired bootstrap against {self.baseline}, {self.resamples:,} resamples "
                f"(* p < {SIGNIFICANT})"
            )
        return lines + [f"{name}: {signature}" for name, signature in self.signatures.items()]

    def to_markdown(self) -> str:
        heading, *rows = self.rows()
        rule = ["---", *("---:" for _ in heading[1:])]
        table = "\n".join("| " + " | ".join(row) + " |" for row in (heading, rule, *rows))
        return table + "\n\n" + "\n".join(f"- {line}" for line in self.notes()) + "\n"
