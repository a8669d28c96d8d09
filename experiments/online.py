"""A translator at work: sentences in order, each reference joining the memory after its translation.

Also the curve of quality over the size of a memory, on text of its domain and on general text. Nothing is
fitted: the smoother is the one the base model carries, or safe kNN-MT; a new customer has neither text nor
time to fit.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from experiments.blocks import DOMAINS, GENERAL, memory_slice, test_slice
from experiments.data import Slice
from experiments.engine import Engine, MemorySpec
from experiments.example import EXAMPLE
from experiments.pipeline import Pipeline
from experiments.scale import Scale
from experiments.stages import OutOfTime, digest, read_json, write_json
from kster.formats import Pair
from kster.memory import Memory
from kster.smoothing import SmootherSettings

DOCUMENTS = ("koran", "law")
GROWING = (*DOMAINS, EXAMPLE)
IN_DOMAIN = "in-domain"
SAVE_EVERY = 50  # sentences


def online(pipeline: Pipeline, scale: Scale) -> dict[str, Any]:
    cells = [cell for domain in DOCUMENTS for cell in _day(pipeline, domain, scale)]
    growth = [cell for domain in GROWING for cell in _growth(pipeline, domain, scale)]
    return {"cells": cells, "baseline": "without learning", "statistics": {"growth": growth}}


def online_parts(scale: Scale) -> list[Callable[[Pipeline], object]]:
    """What can be done side by side."""
    return [
        *(partial(_day, domain=domain, scale=scale) for domain in DOCUMENTS),
        *(partial(_growth, domain=domain, scale=scale) for domain in GROWING),
    ]


def _day(pipeline: Pipeline, domain: str, scale: Scale) -> list[dict[str, Any]]:
    document = test_slice(domain, scale).at_most(scale.online)
    base = pipeline.translate(Engine(), document)
    learning = _work(pipeline, document, pipeline.default_smoother())
    return [
        pipeline.cell("without learning", domain, document, base),
        pipeline.cell("learning", domain, document, learning),
    ]


def _growth(pipeline: Pipeline, domain: str, scale: Scale) -> list[dict[str, Any]]:
    """Translations with memories of growing size, the first being none; "segments" says how many.

    Segments are spread evenly over the domain's: its first lines would be one chapter or one product. Small
    memories are drawn several times.
    """
    test, general = test_slice(domain, scale), test_slice(GENERAL, scale)
    whole, smoother = memory_slice(domain, scale), pipeline.default_smoother()
    available = len(pipeline.corpora.pairs(whole))
    cells = []

    def translate(engine: Engine, row: str, test: Slice, size: int) -> None:
        path = pipeline.translate(engine, test)
        cells.append(pipeline.cell(row, domain, test, path) | {"segments": size})

    translate(Engine(), IN_DOMAIN, test, 0)
    translate(Engine(), GENERAL, general, 0)
    for size in [*(size for size in scale.sizes if size < available), available]:
        draws = min(scale.draws, available // size) if size <= scale.drawn_up_to else 1
        for draw in range(draws):
            memory = MemorySpec(domain, (whole.sample(size, available, draw, draws),))
            engine = Engine(memory=memory, smoother=smoother)
            translate(engine, IN_DOMAIN, test, size)
            if draw == 0:
                translate(engine, GENERAL, general, size)
    return cells


def _work(pipeline: Pipeline, document: Slice, smoother: SmootherSettings | Path) -> Path:
    """The document translated sentence by sentence with a memory that starts empty."""
    settings = {
        "online": Engine(smoother=smoother).identity["smoother"],
        "test": str(document),
        **pipeline.base_identity,
    }
    path = pipeline.out / "translations" / pipeline.direction / f"{digest(settings)}.json.gz"

    def make() -> None:
        lines = _work_through(pipeline, document, smoother, digest(settings))
        write_json(path, {**settings, "lines": lines})
        pipeline.say(f"worked through {document}, learning")

    pipeline.once(path, make)
    return path


def _work_through(
    pipeline: Pipeline, document: Slice, smoother: SmootherSettings | Path, name: str
) -> list[str]:
    """Resumable: what was translated so far is kept every few sentences."""
    begun = pipeline.cache / "online" / f"{name}.json"  # the translations so far
    lines: list[str] = read_json(begun) if begun.is_file() else []
    pairs = pipeline.corpora.pairs(document)
    directory = begun.with_suffix(".memory")
    shutil.rmtree(directory, ignore_errors=True)
    translator, ready = pipeline.translator(Engine()), pipeline.smoother(smoother)
    with Memory.create(directory, pipeline.base) as memory:
        memory.import_pairs(Pair(*pair) for pair in pairs[: len(lines)])
        for source, target in pairs[len(lines) :]:
            if len(lines) % SAVE_EVERY == 0:
                write_json(begun, lines)
                try:
                    pipeline.clock.check()
                except OutOfTime:
                    pipeline.say(f"online {document}: {len(lines)} of {len(pairs)} sentences")
                    raise
            lines.append(str(translator.translate([source], memory=memory, smoother=ready)[0]))
            memory.import_pairs([Pair(source, target)])
    shutil.rmtree(directory)
    return lines


def online_reads(scale: Scale) -> list[Slice]:
    return [
        test_slice(GENERAL, scale),
        *(memory_slice(domain, scale) for domain in GROWING),
        *(test_slice(domain, scale) for domain in GROWING),
    ]
