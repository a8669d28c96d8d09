"""A translator at work: sentences in order, each reference joining the memory after its translation.

Also the curve of quality over the size of a memory, on text of its domain and on general text. Nothing is
fitted: the smoother is the one the base model carries, or safe kNN-MT; a new customer has neither text nor
time to fit.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from kster.experiments.data import Slice
from kster.experiments.example import EXAMPLE
from kster.experiments.pipeline import Engine, MemorySpec, Pipeline
from kster.experiments.scale import Scale
from kster.experiments.stages import OutOfTime, digest, read_json, write_json
from kster.experiments.tables import DOMAINS, GENERAL, memory_slice, test_slice
from kster.formats import Pair
from kster.memory import Memory
from kster.smoothing import SmootherSettings

DOCUMENTS = ("koran", "law")
GROWING = (*DOMAINS, EXAMPLE)
SAVE_EVERY = 50  # sentences


def online(pipeline: Pipeline, scale: Scale) -> dict[str, Any]:
    smoother = pipeline.default_smoother()
    cells = []
    for domain in DOCUMENTS:
        document = test_slice(domain, scale).at_most(scale.online)
        base = pipeline.translate(Engine(), document)
        cells.append(pipeline.cell("without learning", domain, document, base))
        cells.append(pipeline.cell("learning", domain, document, _work(pipeline, document, smoother)))
    growth = [cell for domain in GROWING for cell in _growth(pipeline, domain, smoother, scale)]
    return {"cells": cells, "baseline": "without learning", "statistics": {"growth": growth}}


def _growth(
    pipeline: Pipeline, domain: str, smoother: SmootherSettings | Path, scale: Scale
) -> list[dict[str, Any]]:
    """Translations with memories of growing size, the first being none; "segments" says how many."""
    cells = []
    tests = {"in-domain": test_slice(domain, scale), GENERAL: test_slice(GENERAL, scale)}
    for size in (0, *_sizes(pipeline, domain, scale)):
        engine = Engine()
        if size:
            memory = MemorySpec(domain, (memory_slice(domain, scale).at_most(size),))
            engine = Engine(memory=memory, smoother=smoother)
        for row, test in tests.items():
            path = pipeline.translate(engine, test)
            cells.append(pipeline.cell(row, domain, test, path) | {"segments": size})
    return cells


def _sizes(pipeline: Pipeline, domain: str, scale: Scale) -> list[int]:
    """Up to all segments of the domain's memory."""
    every = len(pipeline.corpora.pairs(memory_slice(domain, scale)))
    return [*(size for size in scale.sizes if size < every), every]


def _work(pipeline: Pipeline, document: Slice, smoother: SmootherSettings | Path) -> Path:
    """Translate the document sentence by sentence with a memory that starts empty; resumable."""
    settings = {
        "online": Engine(smoother=smoother).identity["smoother"],
        "test": str(document),
        "fingerprint": pipeline.base.fingerprint,
        "precision": str(pipeline.base.dtype),
    }
    path = pipeline.out / "translations" / pipeline.direction / f"{digest(settings)}.json.gz"
    if path.is_file():
        return path
    begun = pipeline.cache / "online" / f"{digest(settings)}.json"  # the translations so far
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
    write_json(path, {**settings, "lines": lines})
    shutil.rmtree(directory)
    pipeline.say(f"worked through {document}, learning")
    return path


def online_reads(scale: Scale) -> list[Slice]:
    return [
        test_slice(GENERAL, scale),
        *(memory_slice(domain, scale) for domain in GROWING),
        *(test_slice(domain, scale) for domain in GROWING),
    ]
