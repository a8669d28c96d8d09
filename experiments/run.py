"""The GPU-side half of an experiment: everything up to translations and statistics in small files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from experiments.blocks import Block
from experiments.data import Slice
from experiments.extras import EXTRAS, PARTS, READS
from experiments.origin import origin
from experiments.pipeline import Pipeline
from experiments.scale import Scale
from experiments.stages import write_json
from experiments.systems import System, engine_of
from experiments.tables import TABLES
from kster.errors import KsterError
from kster.smoothing import FitSettings

WHOLE_TEST = 2_500  # lines of a test set, for want of a better guess
FITTED_AS_LINES = 2_000  # translated in the time that a system takes to fit or to choose
TRAINED_AS_LINES = 30_000  # … that a baseline takes to train
EXTRA_AS_LINES = 40_000
PART_LINES = 20_000  # of one part, if it can be divided: short ones fill the processes to the end


def experiment_names() -> list[str]:
    return [*TABLES, *(name for name in EXTRAS if name not in TABLES)]


def result_file(out: Path, name: str, direction: str) -> Path:
    return out / name / f"{direction}.run.json"


def run(name: str, pipeline: Pipeline, scale: Scale, unseen: tuple[str, ...] = ()) -> Path:
    """Run one experiment in the pipeline's direction; returns the file the report starts from."""
    require_known(name)
    pipeline.say(f"== {name} {pipeline.direction} ({scale.name})")
    result: dict[str, Any] = {
        "experiment": name,
        "direction": pipeline.direction,
        "scale": scale.name,
        "origin": origin(name, pipeline.base, scale.name, FitSettings(**scale.fit).seed, unseen),
        "cells": [],
        "averages": {},
        "baseline": None,
        "statistics": {},
    }
    if name in TABLES:
        table = TABLES[name](scale, unseen)
        result |= {
            "cells": [cell for block in table.blocks for cell in _cells(pipeline, block, scale)],
            "averages": table.averages,
            "baseline": table.baseline,
        }
    if name in EXTRAS:
        result |= EXTRAS[name](pipeline, scale)
    path = result_file(pipeline.out, name, pipeline.direction)
    write_json(path, result)
    pipeline.say(f"{path} written")
    return path


@dataclass(frozen=True, slots=True)
class Part:
    """Of an experiment; size: roughly how long it takes, in translated lines."""

    do: Callable[[Pipeline], object]
    size: int


def parts(name: str, scale: Scale, unseen: tuple[str, ...] = ()) -> list[Part]:
    """What of an experiment can be done side by side; afterwards `run` finds everything made.

    None for an experiment that measures time: it must have the machine to itself.
    """
    require_known(name)
    found = []
    for block in TABLES[name](scale, unseen).blocks if name in TABLES else ():
        for systems, size in _divided(block):
            some = replace(block, systems=systems)
            found.append(Part(partial(_cells, block=some, scale=scale), size))
    found += [Part(do, EXTRA_AS_LINES) for do in (PARTS[name](scale) if name in PARTS else ())]
    return found


def _divided(block: Block) -> Iterator[tuple[tuple[System, ...], int]]:
    """A block's systems by and by, as many at a time as make a part; with its size."""
    lines = sum(test.count or WHOLE_TEST for _, test in block.tests)
    some: list[System] = []
    size = 0
    for system in block.systems:
        own = lines + (TRAINED_AS_LINES if system.kind in ("finetuned", "joint") else FITTED_AS_LINES)
        if some and size + own > PART_LINES:
            yield tuple(some), size
            some, size = [], 0
        some.append(system)
        size += own
    yield tuple(some), size


def _cells(pipeline: Pipeline, block: Block, scale: Scale) -> list[dict[str, Any]]:
    cells = []
    for system in block.systems:
        engine = engine_of(pipeline, system, block.setting, scale)
        for column, test in block.tests:
            path = pipeline.translate(engine, test)
            cells.append(pipeline.cell(system.name, column, test, path) | {"engine": engine.identity})
    return cells


def require_known(name: str) -> None:
    if name not in experiment_names():
        raise KsterError(f"experiment {name!r} is unknown; accepted: {', '.join(experiment_names())}, all")


def needed_data(name: str, scale: Scale, unseen: tuple[str, ...] = ()) -> list[Slice]:
    """The slices an experiment reads (its noisy corpora are made of these)."""
    slices: dict[Slice, None] = {}
    for block in TABLES[name](scale, unseen).blocks if name in TABLES else ():
        setting = block.setting
        calibrated = any(system.calibrate for system in block.systems)
        dev_sets = (*setting.dev, *(setting.general if calibrated else ()))
        for slice in (
            *setting.memory.slices,
            *(setting.searched.slices if setting.searched is not None else ()),
            *(dev.at_most(scale.dev) for dev in dev_sets),
            *(test for _, test in block.tests),
        ):
            slices[slice] = None
    for slice in READS.get(name, lambda scale: ())(scale):
        slices[slice] = None
    return list(slices)
