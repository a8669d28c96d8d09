"""A translator at work: sentences in order, each reference joining the memory after its translation.

Also the curve of quality over the size of a memory. The smoother is the one nobody has fitted
(`SAFE_KNN`), and one fitted on another domain with general text in the fit, so that it has seen text the
memory knows nothing of: a new customer has neither text nor time to fit.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from kster.experiments.data import Slice
from kster.experiments.pipeline import Engine, MemorySpec, Pipeline
from kster.experiments.scale import Scale
from kster.experiments.stages import OutOfTime, digest, read_json, write_json
from kster.experiments.systems import engine_of
from kster.experiments.tables import domain_setting, kster, memory_slice, test_slice
from kster.formats import Pair
from kster.memory import Memory
from kster.smoothing import SAFE_KNN, SmootherSettings

DOCUMENTS = {"koran": "law", "law": "koran"}  # document → the domain its fitted smoother comes from
SAVE_EVERY = 50  # sentences


def online(pipeline: Pipeline, scale: Scale) -> dict[str, Any]:
    cells: list[dict[str, Any]] = []
    growth: list[dict[str, Any]] = []
    for domain, other in DOCUMENTS.items():
        fitted = engine_of(pipeline, kster(scale, general=True), domain_setting(other, scale), scale).smoother
        smoothers = {"unfitted": SAFE_KNN, f"fitted on {other}": fitted}
        document = test_slice(domain, scale).at_most(scale.online)
        base = pipeline.translate(Engine(), document)
        cells.append(pipeline.cell("without learning", domain, document, base))
        for name, smoother in smoothers.items():
            path = _work(pipeline, document, smoother)
            cells.append(pipeline.cell(f"learning, {name.split(' on ')[0]}", domain, document, path))
        for size in _sizes(pipeline, domain, scale):
            memory = MemorySpec(domain, (memory_slice(domain, scale).at_most(size),))
            for name, smoother in smoothers.items():
                path = pipeline.translate(Engine(memory=memory, smoother=smoother), test_slice(domain, scale))
                growth.append(
                    pipeline.cell(name, domain, test_slice(domain, scale), path) | {"segments": size}
                )
    return {"cells": cells, "baseline": "without learning", "statistics": {"growth": growth}}


def _sizes(pipeline: Pipeline, domain: str, scale: Scale) -> list[int]:
    """Up to all segments of the domain's memory."""
    every = len(pipeline.corpora.pairs(memory_slice(domain, scale)))
    return [*(size for size in scale.sizes if size < every), every]


def _work(pipeline: Pipeline, document: Slice, smoother: SmootherSettings | Path | None) -> Path:
    """Translate the document sentence by sentence with a memory that starts empty; resumable."""
    assert smoother is not None
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
    settings = [domain_setting(domain, scale) for domain in DOCUMENTS]
    return [
        *(slice for setting in settings for slice in setting.memory.slices),
        *(slice.at_most(scale.dev) for setting in settings for slice in setting.dev),
        *(slice.at_most(scale.general_fit) for setting in settings for slice in setting.general),
        *(test_slice(domain, scale) for domain in DOCUMENTS),
    ]
