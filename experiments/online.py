"""A translator at work (`online`): each reference joins the memory after its sentence was translated.

Also the curve of quality over the size of a memory, on text of its domain and on general text. Nothing is
fitted: the smoother is the one that the base model carries, or the universal one; a new customer has neither
text nor time to fit.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

from experiments import figures
from experiments.budget import Budget
from experiments.data import EXAMPLE, Slice
from experiments.domains import GENERAL, memory_slice, test_slice
from experiments.engine import Engine, MemorySpec
from experiments.experiment import Column, Experiment, cell
from experiments.pipeline import Pipeline
from experiments.results import Curve, Section, TextTable, bleu_signature, corpus_bleu
from experiments.stages import OutOfTime, digest, read_json, say, write_json
from kster.formats import Pair
from kster.memory import Memory
from kster.smoothing import Smoother

DOCUMENTS = ("koran", "law", "docs_adobe")  # IT's lines are no running text
SAVE_EVERY = 50  # sentences
WINDOWS = 10  # parts of a document in the curve of quality over time
UNFITTED = Engine(smoother="carried")

Growth = dict[str, dict[int, list[float]]]  # test → segments → BLEU of each draw


class Online(Experiment):
    name = "online"
    summary = "A translator at work: each reference joins the memory after its sentence."

    def measure(self, pipeline: Pipeline, budget: Budget) -> dict[str, Any]:
        cells = [cell for domain in _documents(budget) for cell in _day(pipeline, domain, budget)]
        growth = [cell for domain in (*budget.domains, EXAMPLE) for cell in _growth(pipeline, domain, budget)]
        return {"cells": cells, "baseline": "without learning", "statistics": {"growth": growth}}

    def measured_parts(self, budget: Budget) -> list[Callable[[Pipeline], object]]:
        return [
            *(partial(_day, domain=domain, budget=budget) for domain in _documents(budget)),
            *(partial(_growth, domain=domain, budget=budget) for domain in (*budget.domains, EXAMPLE)),
        ]

    def also_reads(self, budget: Budget) -> list[Slice]:
        return [
            test_slice(GENERAL, budget),
            *(memory_slice(domain, budget) for domain in (*budget.domains, EXAMPLE)),
            *(test_slice(domain, budget) for domain in (*budget.domains, EXAMPLE)),
        ]

    def draw(self, section: Section) -> None:
        """Quality over the document, and over the size of a memory."""
        over_time: dict[str, dict[str, Curve]] = {}
        for at in section.result["cells"]:
            lines, references = section.texts(at)
            size = max(1, len(lines) // WINDOWS)
            starts = range(0, len(lines) - size + 1, size)
            scores = [corpus_bleu(lines[i : i + size], references[i : i + size]) for i in starts]
            curve = ([float(i + size) for i in starts], scores)
            over_time.setdefault(at["column"], {})[at["row"]] = curve
        growth: dict[str, Growth] = {}  # by domain
        for at in section.statistics["growth"]:
            place = at["column_coordinates"]
            of_test = growth.setdefault(place["memory"], {}).setdefault(_kind(place), {})
            of_test.setdefault(place["segments"], []).append(corpus_bleu(*section.texts(at)))
        for domain, series in over_time.items():
            title = f"Learning while translating, {domain}, {section.direction}"
            figure = figures.lines(title, series, "sentence", "BLEU of the last part")
            section.figures[f"online-{domain}"] = figure
        signature = bleu_signature()
        notes = (
            "Segments; where several memories of a size were drawn: mean (lowest to highest) BLEU.",
            f"BLEU: `{signature}`",
        )
        for domain, curves in growth.items():
            title = f"Quality over memory size, {domain}, {section.direction}"
            figure = figures.lines(title, _shown(curves), "segments", "BLEU", log_x=True)
            section.figures[f"size-{domain}"] = figure
            sizes = next(iter(curves.values()))
            rows = [["test", *(f"{size:,}" if size else "base" for size in sizes)]]
            rows += [[name, *map(_mean_and_range, curve.values())] for name, curve in curves.items()]
            section.tables.append(TextTable(title, rows, notes))
        section.data["online"] = {"over_time": over_time, "growth": growth, "signature": signature}


def _documents(budget: Budget) -> list[str]:
    return [domain for domain in budget.domains if domain in DOCUMENTS]


def _kind(place: dict[str, Any]) -> str:
    return GENERAL if place["test"] == GENERAL else "in-domain"


def _shown(curves: Growth) -> dict[str, Curve]:
    """Means over the draws, and the base model's level; a logarithmic axis has no place for no segments."""
    shown: dict[str, Curve] = {}
    for name, curve in curves.items():
        sizes = [float(size) for size in curve if size]
        shown[name] = (sizes, [fmean(scores) for size, scores in curve.items() if size])
        shown[f"{name}, base"] = ([sizes[0], sizes[-1]], [curve[0][0]] * 2)
    return shown


def _mean_and_range(scores: list[float]) -> str:
    mean = f"{fmean(scores):.1f}"
    return mean if len(scores) == 1 else f"{mean} ({min(scores):.1f}–{max(scores):.1f})"


def _day(pipeline: Pipeline, domain: str, budget: Budget) -> list[dict[str, Any]]:
    document = test_slice(domain, budget).at_most(budget.online)
    column = Column(domain, document, {"test": domain, "memory": domain})
    base, learning = pipeline.translate(Engine(), document), _work(pipeline, document)
    translations = {"without learning": base, "learning": learning}
    return [cell(pipeline, row, {"system": row}, column, path) for row, path in translations.items()]


def _growth(pipeline: Pipeline, domain: str, budget: Budget) -> list[dict[str, Any]]:
    """Translations with memories of growing size, the first being none; "segments" says how many.

    Segments are spread evenly over the domain's: its first lines would be one chapter or one product. Small
    memories are drawn several times.
    """
    whole = memory_slice(domain, budget)
    available = len(pipeline.corpora.pairs(whole))
    cells = []

    def translate(engine: Engine, test: str, size: int) -> None:
        at = {"test": test, "memory": domain, "segments": size}
        column = Column(f"{test}, {size:,} of {domain}", test_slice(test, budget), at)
        path = pipeline.translate(engine, column.test)
        cells.append(
            cell(pipeline, "KSTER, unfitted", {"system": "KSTER", "variant": "unfitted"}, column, path)
        )

    translate(Engine(), domain, 0)
    translate(Engine(), GENERAL, 0)
    for size in [*(size for size in budget.sizes if size < available), available]:
        draws = min(budget.draws, available // size) if size <= budget.drawn_up_to else 1
        for draw in range(draws):
            memory = MemorySpec(domain, (whole.sample(size, available, draw, draws),))
            engine = Engine(memory=memory, smoother="carried")
            translate(engine, domain, size)
            if draw == 0:
                translate(engine, GENERAL, size)
    return cells


def _work(pipeline: Pipeline, document: Slice) -> Path:
    """The document translated sentence by sentence with a memory that starts empty."""
    settings = {
        "online": pipeline.identity(UNFITTED)["smoother"],
        "test": str(document),
        **pipeline.base_identity,
    }
    path = pipeline.out / "translations" / pipeline.direction / f"{digest(settings)}.json.gz"

    def make() -> None:
        lines = _work_through(pipeline, document, digest(settings))
        write_json(path, {**settings, "lines": lines})
        say(f"worked through {document}, learning")

    pipeline.once(path, make)
    return path


def _work_through(pipeline: Pipeline, document: Slice, name: str) -> list[str]:
    """Resumable: what was translated so far is kept every few sentences."""
    begun = pipeline.cache / "online" / f"{name}.json"  # the translations so far
    lines: list[str] = read_json(begun) if begun.is_file() else []
    pairs = pipeline.corpora.pairs(document)
    directory = begun.with_suffix(".memory")
    shutil.rmtree(directory, ignore_errors=True)
    translator, ready = pipeline.translator(UNFITTED), pipeline.smoother(UNFITTED)
    assert isinstance(ready, Smoother)
    with Memory.create(directory, pipeline.base) as memory:
        memory.import_pairs((Pair(*pair) for pair in pairs[: len(lines)]), keys="now")
        for source, target in pairs[len(lines) :]:
            if len(lines) % SAVE_EVERY == 0:
                write_json(begun, lines)
                try:
                    pipeline.clock.check()
                except OutOfTime:
                    say(f"online {document}: {len(lines)} of {len(pairs)} sentences")
                    raise
            lines.append(str(translator.translate([source], memory=memory, smoother=ready)[0]))
            memory.import_pairs([Pair(source, target)])
    shutil.rmtree(directory)
    return lines
