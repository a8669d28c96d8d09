"""The GPU-side half of an experiment: everything up to translations and statistics in small files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kster.errors import KsterError
from kster.experiments.data import Slice
from kster.experiments.extras import EXTRAS, READS
from kster.experiments.pipeline import Pipeline
from kster.experiments.scale import Scale
from kster.experiments.stages import write_json
from kster.experiments.systems import engine_of
from kster.experiments.tables import TABLES, Table


def experiment_names() -> list[str]:
    return [*TABLES, *(name for name in EXTRAS if name not in TABLES)]


def result_file(out: Path, name: str, direction: str) -> Path:
    return out / name / f"{direction}.run.json"


def run(name: str, pipeline: Pipeline, scale: Scale, unseen: tuple[str, ...] = ()) -> Path:
    """Run one experiment in the pipeline's direction; returns the file the report starts from."""
    if name not in experiment_names():
        raise KsterError(f"experiment {name!r} is unknown; accepted: {', '.join(experiment_names())}, all")
    pipeline.say(f"== {name} {pipeline.direction} ({scale.name})")
    result: dict[str, Any] = {
        "experiment": name,
        "direction": pipeline.direction,
        "scale": scale.name,
        "model": str(pipeline.base.name),
        "fingerprint": pipeline.base.fingerprint,
        "device": pipeline.base.device.type,
        "cells": [],
        "averages": {},
        "baseline": None,
        "statistics": {},
    }
    if name in TABLES:
        table = TABLES[name](scale, unseen)
        result |= {
            "cells": _cells(table, pipeline, scale),
            "averages": table.averages,
            "baseline": table.baseline,
        }
    if name in EXTRAS:
        result |= EXTRAS[name](pipeline, scale)
    path = result_file(pipeline.out, name, pipeline.direction)
    write_json(path, result)
    pipeline.say(f"{path} written")
    return path


def _cells(table: Table, pipeline: Pipeline, scale: Scale) -> list[dict[str, Any]]:
    cells = []
    for block in table.blocks:
        for system in block.systems:
            engine = engine_of(pipeline, system, block.setting, scale)
            for column, test in block.tests:
                path = pipeline.translate(engine, test)
                cells.append(pipeline.cell(system.name, column, test, path) | {"engine": engine.identity})
    return cells


def needed_data(name: str, scale: Scale, unseen: tuple[str, ...] = ()) -> list[Slice]:
    """The slices an experiment reads (its noisy corpora are made of these)."""
    slices: dict[Slice, None] = {}
    for block in TABLES[name](scale, unseen).blocks if name in TABLES else ():
        for slice in (
            *block.setting.memory.slices,
            *(dev.at_most(scale.dev) for dev in block.setting.dev),
            *(test for _, test in block.tests),
        ):
            slices[slice] = None
    for slice in READS.get(name, lambda scale: ())(scale):
        slices[slice] = None
    return list(slices)
