"""Word senses (`wsd`): how often a system scores the right translation above every wrong one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from math import comb
from pathlib import Path
from typing import Any

from experiments import figures
from experiments.budget import Budget
from experiments.contrastive import Contrast, prepare, read_selected, searched_slices, text_slices
from experiments.data import Corpora, Slice
from experiments.domains import mixed_setting
from experiments.engine import Engine
from experiments.experiment import Experiment
from experiments.pipeline import Pipeline
from experiments.results import Section, TextTable, corpus_bleu
from experiments.systems import kster


class WordSenses(Experiment):
    name = "wsd"
    summary = "Telling right translations of ambiguous words from wrong ones."

    def measure(self, pipeline: Pipeline, budget: Budget) -> dict[str, Any]:
        """Accuracy and BLEU of the base model and of KSTER with the mixed memory, by domain."""
        selected = read_selected(pipeline.corpora, budget)
        ours = kster(budget).engine(pipeline, mixed_setting(budget), budget)
        rows = []
        for domain, contrasts in selected["domains"].items():
            for name, engine in (("Base", Engine()), ("KSTER", ours)):
                identity = [pipeline.identity(engine), [asdict(contrast) for contrast in contrasts]]
                found = pipeline.measured("wsd", identity, partial(_measure, pipeline, engine, contrasts))
                rows.append({"domain": domain, "system": name, **found})
        facts = {key: selected[key] for key in ("origin", "pool")}
        return {"statistics": {"rows": rows, **facts}}

    def measured_parts(self, budget: Budget) -> list[Callable[[Pipeline], object]]:
        return [partial(self.measure, budget=budget)]

    def also_reads(self, budget: Budget) -> list[Slice]:
        setting = mixed_setting(budget)
        return [*setting.memory.slices, *(slice.at_most(budget.dev) for slice in setting.dev)]

    def prepare(self, corpora: Corpora, budget: Budget) -> list[Path]:
        return prepare(corpora, budget)

    def prepared_from(self, budget: Budget) -> list[Slice]:
        return [*text_slices(budget), *searched_slices(budget)]

    def draw(self, section: Section) -> None:
        statistics = section.statistics
        rows = [["domain", "system", "examples", "accuracy %", "won and lost against base", "BLEU"]]
        series: dict[str, list[float | None]] = {}
        base = {row["domain"]: row["right"] for row in statistics["rows"] if row["system"] == "Base"}
        for row in statistics["rows"]:
            accuracy = [f"{row['examples']:,}", f"{row['accuracy']:.1f}"]
            compared = "" if row["system"] == "Base" else won_and_lost(base[row["domain"]], row["right"])
            rows.append([row["domain"], row["system"], *accuracy, compared, f"{row['bleu']:.1f}"])
            series.setdefault(row["system"], []).append(row["accuracy"])
        notes = (
            f"Examples: {statistics['origin']}; {statistics['pool']:,} in all, each domain's those most like "
            "its own text by TF-IDF.",
            "p: two-sided sign test over the examples that one system has right and the other wrong.",
        )
        title = section.title("Word senses")
        section.tables.append(TextTable(title, rows, notes))
        section.data["wsd"] = statistics
        domains = list(dict.fromkeys(row["domain"] for row in statistics["rows"]))
        section.figures["wsd"] = figures.bars(title, domains, series, "accuracy %")


def won_and_lost(base: list[int], ours: list[int]) -> str:
    """Examples that only we have right, that only the base model has, and how likely that is by chance."""
    won = sum(we > they for they, we in zip(base, ours, strict=True))
    lost = sum(we < they for they, we in zip(base, ours, strict=True))
    n = won + lost
    tail = sum(comb(n, i) for i in range(min(won, lost) + 1)) / 2**n
    return f"{won}, {lost} (p = {min(1.0, 2 * tail):.2g})"


def _measure(pipeline: Pipeline, engine: Engine, contrasts: list[Contrast]) -> dict[str, Any]:
    options = pipeline.options(engine)
    scores = iter(
        pipeline.translator(engine).score(
            [c.source for c in contrasts for _ in (c.reference, *c.contrastive)],
            [text for c in contrasts for text in (c.reference, *c.contrastive)],
            **options,
        )
    )
    right = []
    for contrast in contrasts:
        reference = next(scores)
        wrong = [next(scores) for _ in contrast.contrastive]
        right.append(int(all(reference > score for score in wrong)))
    lines = pipeline.translating(engine)([c.source for c in contrasts])
    return {
        "examples": len(contrasts),
        "right": right,
        "accuracy": 100.0 * sum(right) / len(right),
        "bleu": corpus_bleu(lines, [c.reference for c in contrasts]),
    }
