"""Decoding time over the base model's (`speed`): the same engine, the same sentences, the same batches."""

from __future__ import annotations

import time
from functools import partial
from typing import Any, ClassVar

import torch

from experiments import figures
from experiments.budget import Budget
from experiments.data import Slice
from experiments.domains import GENERAL, domain_setting, memory_slice, mixed_setting, test_slice
from experiments.engine import Engine, MemorySpec
from experiments.experiment import Experiment, Paper
from experiments.one_memory import fixed_knn
from experiments.origin import machine
from experiments.pipeline import Pipeline
from experiments.results import Curve, Section, TextTable
from experiments.systems import kster

LEAST_MEMORY = 1_000  # segments; smaller memories cost what a small one costs
FITTED_ON = "koran"  # time does not depend on what the smoother has learned


class Speed(Experiment):
    name = "speed"
    summary = "Decoding time over the base model's: same engine, same batch."
    paper: ClassVar[Paper] = {"en-de": {"kNN-MT": {"time / base": 1.15}, "KSTER": {"time / base": 1.19}}}

    def measure(self, pipeline: Pipeline, budget: Budget) -> dict[str, Any]:
        setting = domain_setting(FITTED_ON, budget)
        fitted = kster(budget).engine(pipeline, setting, budget).smoother
        # Fixed settings that search as many neighbours as KSTER does.
        knn = fixed_knn(0.02, 0.3).engine(pipeline, setting, budget).smoother
        test = test_slice(GENERAL, budget).at_most(budget.timed)
        rows = []
        for spec in _memories(budget):
            engines = {
                "Base": Engine(),
                "kNN-MT": Engine(memory=spec, smoother=knn),
                "KSTER": Engine(memory=spec, smoother=fitted),
            }
            identity = [
                {name: pipeline.identity(engine) for name, engine in engines.items()},
                str(test),
                budget.repeats,
                machine(pipeline.base.device),
                torch.get_num_threads(),
                torch.__version__,
            ]
            measure = partial(_measure, pipeline, spec, engines, test, budget.repeats)
            rows.append({"memory": spec.name, **pipeline.measured("speed", identity, measure)})
        return {"statistics": {"sentences": len(pipeline.corpora.pairs(test)), "rows": rows}}

    def also_reads(self, budget: Budget) -> list[Slice]:
        setting = domain_setting(FITTED_ON, budget)
        return [
            *setting.memory.slices,
            *(slice.at_most(budget.dev) for slice in setting.dev),
            *(slice for spec in _memories(budget) for slice in spec.slices),
            test_slice(GENERAL, budget).at_most(budget.timed),
        ]

    def draw(self, section: Section) -> None:
        rows = [["memory", "entries", "base s", "kNN-MT / base", "KSTER / base"]]
        curves: dict[str, Curve] = {"kNN-MT": ([], []), "KSTER": ([], [])}
        for row in section.statistics["rows"]:
            seconds = row["seconds"]
            cells = []
            for name, (xs, ys) in curves.items():
                ratio = seconds[name] / seconds["Base"]
                xs.append(row["entries"])
                ys.append(ratio)
                quoted = row["memory"] == "mixed" and section.paper
                paper = f" ({section.paper[name]['time / base']:.2f})" if quoted else ""
                cells.append(f"{ratio:.2f}{paper}")
            rows.append([row["memory"], f"{row['entries']:,}", f"{seconds['Base']:.2f}", *cells])
        devices = " and ".join(dict.fromkeys(row["device"] for row in section.statistics["rows"]))
        sentences = section.statistics["sentences"]
        notes = [f"{sentences} sentences on {devices}, the shortest of several times."]
        if section.paper:
            notes.append("In brackets the paper's figure, for a memory of 172 million entries.")
        title = section.title("speed")
        section.tables.append(TextTable(title, rows, tuple(notes)))
        section.data["speed"] = section.statistics
        figure = figures.lines(title, curves, "entries in the memory", "time / base", log_x=True)
        section.figures["speed"] = figure


def _memories(budget: Budget) -> list[MemorySpec]:
    sizes = [size for size in budget.sizes if size >= LEAST_MEMORY] or [budget.sizes[-1]]
    grown = [MemorySpec("it", (memory_slice("it", budget).at_most(size),)) for size in sizes]
    return [*grown, mixed_setting(budget).memory]


def _measure(
    pipeline: Pipeline, spec: MemorySpec, engines: dict[str, Engine], test: Slice, repeats: int
) -> dict[str, Any]:
    return {
        "entries": pipeline.memory(spec).entry_count,
        "seconds": _time(pipeline, engines, test, repeats),
        "device": torch.cuda.get_device_name() if pipeline.base.device.type == "cuda" else "CPU",
    }


def _time(pipeline: Pipeline, engines: dict[str, Engine], test: Slice, repeats: int) -> dict[str, float]:
    """The shortest of several times, after one that is not counted; the systems take turns.

    Each keeps its translator, as a server does: on a GPU the steps recorded the first time are used again.
    """
    sources = [source for source, _ in pipeline.corpora.pairs(test)]
    for engine in engines.values():
        pipeline.make_ready(engine)
    systems = {name: pipeline.translating(engine) for name, engine in engines.items()}
    best: dict[str, float] = {}
    for turn in range(repeats + 1):
        for name, translate in systems.items():
            began = time.perf_counter()
            translate(sources)
            if turn > 0:
                best[name] = min(best.get(name, float("inf")), time.perf_counter() - began)
    return best
