"""Decoding time over the base model's: the same engine, the same sentences, the same batches."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import torch

from experiments.blocks import GENERAL, domain_setting, kster, memory_slice, mixed_setting, test_slice
from experiments.data import Slice
from experiments.engine import Engine, MemorySpec
from experiments.origin import machine
from experiments.pipeline import Pipeline
from experiments.scale import Scale
from experiments.systems import engine_of
from kster.smoothing import SmootherSettings

LEAST_MEMORY = 1_000  # segments; smaller memories cost what a small one costs
FITTED_ON = "koran"  # time does not depend on what the smoother has learned

# Fixed settings that search as many neighbours as KSTER does.
KNN = SmootherSettings(
    kernel="gaussian",
    k=16,
    learn_bandwidth=False,
    learn_weight=False,
    bandwidth=0.02,
    mixing_weight=0.3,
    relative=True,
)


def _memories(scale: Scale) -> list[MemorySpec]:
    sizes = [size for size in scale.sizes if size >= LEAST_MEMORY] or [scale.sizes[-1]]
    grown = [MemorySpec("it", (memory_slice("it", scale).at_most(size),)) for size in sizes]
    return [*grown, mixed_setting(scale).memory]


def speed(pipeline: Pipeline, scale: Scale) -> dict[str, Any]:
    fitted = engine_of(pipeline, kster(scale), domain_setting(FITTED_ON, scale), scale).smoother
    test = test_slice(GENERAL, scale).at_most(scale.timed)
    rows = []
    for spec in _memories(scale):
        engines = {
            "Base": Engine(),
            "kNN-MT": Engine(memory=spec, smoother=KNN),
            "KSTER": Engine(memory=spec, smoother=fitted),
        }
        identity = [
            spec.identity,
            {name: engine.identity for name, engine in engines.items()},
            str(test),
            scale.repeats,
            machine(pipeline.base.device),
            torch.get_num_threads(),
            torch.__version__,
        ]
        measure = partial(_measure, pipeline, spec, engines, test, scale.repeats)
        measured = pipeline.measured("speed", identity, measure)
        rows.append({"memory": spec.name, **measured})
    return {"statistics": {"sentences": len(pipeline.corpora.pairs(test)), "rows": rows}}


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


def speed_reads(scale: Scale) -> list[Slice]:
    setting = domain_setting(FITTED_ON, scale)
    return [
        *setting.memory.slices,
        *(slice.at_most(scale.dev) for slice in setting.dev),
        *(slice for spec in _memories(scale) for slice in spec.slices),
        test_slice(GENERAL, scale).at_most(scale.timed),
    ]
