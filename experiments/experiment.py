"""An experiment: its table, what else it measures, what it reads, its figure and the paper's numbers.

The paper's tables, and most of its figures, are blocks: one memory, the systems that use it (rows), the test
sets they translate (columns). What is left, an experiment measures by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from experiments import figures
from experiments.budget import Budget
from experiments.data import Corpora, Slice
from experiments.domains import (
    GENERAL,
    MIXED,
    NEWS_TRAIN,
    Setting,
    domain_setting,
    mixed_setting,
    test_slice,
)
from experiments.origin import origin
from experiments.pipeline import Pipeline
from experiments.results import Numbers, Section
from experiments.stages import say, write_json
from experiments.systems import Coordinates, System
from kster.smoothing import FitSettings

Paper = dict[str, Numbers]  # the paper's figures by direction

SPECIFIC_AVERAGE = "average specific"
GENERAL_AVERAGE = "average general"
WHOLE_TEST = 2_500  # lines of a test set, for want of a better guess
MEASURED_AS_LINES = 40_000  # translated in the time that other measurements take
PART_LINES = 20_000  # of one part, if it can be divided: short ones fill the processes to the end


@dataclass(frozen=True, slots=True)
class Column:
    """A test set to translate; coordinates: see `systems.Coordinates`."""

    name: str
    test: Slice
    coordinates: Coordinates


@dataclass(frozen=True, slots=True)
class Block:
    """Rows and columns that share a memory."""

    setting: Setting
    systems: tuple[System, ...]
    columns: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """An experiment's blocks; averages: a further column → the columns it is the mean of.

    baseline: the row that others are compared with by paired bootstrap.
    """

    blocks: tuple[Block, ...] = ()
    averages: dict[str, tuple[str, ...]] = field(default_factory=dict)
    baseline: str | None = None


@dataclass(frozen=True, slots=True)
class Part:
    """Of an experiment; size: roughly how long it takes, in translated lines."""

    do: Callable[[Pipeline], object]
    size: int


class Experiment:
    """The base of all: translates its table, and draws it as bars."""

    name: ClassVar[str]
    summary: ClassVar[str]
    paper: ClassVar[Paper] = {}

    def table(self, budget: Budget) -> Table:
        """What is translated."""
        return Table()

    def measure(self, pipeline: Pipeline, budget: Budget) -> dict[str, Any]:
        """What else belongs into the result: "statistics", and "cells" that no table describes."""
        return {}

    def measured_parts(self, budget: Budget) -> list[Callable[[Pipeline], object]]:
        """What of `measure` can be done side by side, so that it finds everything made afterwards."""
        return []

    def also_reads(self, budget: Budget) -> list[Slice]:
        """The text that `measure` reads."""
        return []

    def prepare(self, corpora: Corpora, budget: Budget) -> list[Path]:
        """Make the text that is missing, before a run and on any CPU; it is kept, and travels in a pack.

        Returns the files that are no corpora and must be copied as they are.
        """
        return []

    def prepared_from(self, budget: Budget) -> list[Slice]:
        """Text that is read to prepare alone: it need not be packed."""
        return []

    def draw(self, section: Section) -> None:
        """Figures and further tables: every row a series, every column that we have a group."""
        scored = section.scored
        columns = [c for c in scored.columns if any(scored.bleu(row, c) is not None for row in scored.rows)]
        rows = [row for row in scored.rows if any(scored.bleu(row, c) is not None for c in columns)]
        series = {row: [scored.bleu(row, column) for column in columns] for row in rows}
        title = f"{self.name}, {section.direction}"
        section.figures[self.name] = figures.bars(title, columns, series, "BLEU")

    def run(self, pipeline: Pipeline, budget: Budget) -> Path:
        """Everything in the pipeline's direction; returns the file the report starts from."""
        say(f"== {self.name} {pipeline.direction} ({budget.name})")
        table = self.table(budget)
        seed = FitSettings(**budget.fit).seed
        result: dict[str, Any] = {
            "experiment": self.name,
            "direction": pipeline.direction,
            "scale": budget.name,
            "origin": origin(self.name, pipeline.base, budget, seed),
            "cells": [cell for block in table.blocks for cell in _cells(pipeline, block, budget)],
            "averages": table.averages,
            "baseline": table.baseline,
            "statistics": {},
        }
        result |= self.measure(pipeline, budget)
        path = result_file(pipeline.out, self.name, pipeline.direction)
        write_json(path, result)
        say(f"{path} written")
        return path

    def parts(self, budget: Budget) -> list[Part]:
        """What can be done side by side; afterwards `run` finds everything made.

        None for an experiment that measures time: it must have the machine to itself.
        """
        found = []
        for block in self.table(budget).blocks:
            for systems, size in _divided(block):
                some = replace(block, systems=systems)
                found.append(Part(partial(_cells, block=some, budget=budget), size))
        return found + [Part(do, MEASURED_AS_LINES) for do in self.measured_parts(budget)]

    def reads(self, budget: Budget) -> list[Slice]:
        """All text (disturbed corpora are made of theirs); with each memory the test set it leaves out.

        NEWS_TRAIN tells the report which words are rare.
        """
        slices: list[Slice] = []
        for block in self.table(budget).blocks:
            setting = block.setting
            slices += setting.memory.slices + (setting.searched.slices if setting.searched else ())
            slices += (dev.at_most(budget.dev) for dev in setting.dev)
            slices += (column.test for column in block.columns)
        slices += [*self.also_reads(budget), NEWS_TRAIN]
        left_out = [slice.tests for slice in slices if slice.split != slice.tests.split]
        return list(dict.fromkeys([*slices, *left_out]))


def result_file(out: Path, name: str, direction: str) -> Path:
    return out / name / f"{direction}.run.json"


def cell(
    pipeline: Pipeline, row: str, row_coordinates: Coordinates, column: Column, path: Path
) -> dict[str, Any]:
    """One translated test set, as the report finds it."""
    return {
        "row": row,
        "column": column.name,
        "row_coordinates": row_coordinates,
        "column_coordinates": column.coordinates,
        "test": asdict(column.test),
        "translation": path.relative_to(pipeline.out).as_posix(),
    }


def _cells(pipeline: Pipeline, block: Block, budget: Budget) -> list[dict[str, Any]]:
    cells = []
    for system in block.systems:
        engine = system.engine(pipeline, block.setting, budget)
        for column in block.columns:
            path = pipeline.translate(engine, column.test)
            found = cell(pipeline, system.name, system.coordinates, column, path)
            cells.append(found | {"engine": pipeline.identity(engine)})
    return cells


def _divided(block: Block) -> Iterator[tuple[tuple[System, ...], int]]:
    """A block's systems by and by, as many at a time as make a part; with its size."""
    lines = sum(column.test.count or WHOLE_TEST for column in block.columns)
    some: list[System] = []
    size = 0
    for system in block.systems:
        own = lines + system.lines_of_work
        if some and size + own > PART_LINES:
            yield tuple(some), size
            some, size = [], 0
        some.append(system)
        size += own
    yield tuple(some), size


# Shapes that several tables have -----------------------------------------------------------------------


def columns(*tests: str, budget: Budget, memory: str, prefix: str = "") -> tuple[Column, ...]:
    """memory: a domain's name, or MIXED; prefix: of the columns' names."""
    return tuple(
        Column(prefix + test, test_slice(test, budget), {"test": test, "memory": memory}) for test in tests
    )


def by_domain(systems: tuple[System, ...], budget: Budget, baseline: str = "kNN-MT") -> Table:
    """A memory for each domain; its test set, and the general one with the same memory."""
    blocks = []
    for domain in budget.domains:
        (general,) = columns(GENERAL, budget=budget, memory=domain)
        tests = (*columns(domain, budget=budget, memory=domain), replace(general, name=_general_with(domain)))
        blocks.append(Block(domain_setting(domain, budget), systems, tests))
    averages = {SPECIFIC_AVERAGE: budget.domains, GENERAL_AVERAGE: tuple(map(_general_with, budget.domains))}
    return Table(tuple(blocks), averages, baseline)


def _general_with(domain: str) -> str:
    return f"{GENERAL} with {domain}"


def mixed(systems: tuple[System, ...], budget: Budget, baseline: str = "kNN-MT") -> Table:
    """One memory of general and domain text for all tests."""
    tests = columns(GENERAL, *budget.domains, budget=budget, memory=MIXED)
    block = Block(mixed_setting(budget), systems, tests)
    return Table((block,), {SPECIFIC_AVERAGE: budget.domains}, baseline)


def by_domain_and_mixed(
    single: tuple[System, ...], joined: tuple[System, ...], budget: Budget, baseline: str
) -> Table:
    """As `by_domain`, and the same tests with one memory for all."""
    table = by_domain(single, budget, baseline)
    tests = columns(GENERAL, *budget.domains, budget=budget, memory=MIXED, prefix="mixed ")
    averages = table.averages | {"average mixed specific": tuple(f"mixed {d}" for d in budget.domains)}
    blocks = (*table.blocks, Block(mixed_setting(budget), joined, tests))
    return Table(blocks, averages, baseline)


def paper_rows(names: str, rows: dict[str, tuple[float, ...]]) -> Numbers:
    """The paper's figures, row by row. names: of the columns, separated by commas."""
    return {row: dict(zip(names.split(", "), values, strict=True)) for row, values in rows.items()}
