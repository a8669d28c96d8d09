"""Word senses: how often a system scores the right translation above every wrong one."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from typing import Any

from experiments.bleu import corpus_bleu
from experiments.blocks import kster, mixed_setting
from experiments.contrastive import Contrast, read_selected
from experiments.data import Slice
from experiments.engine import Engine
from experiments.pipeline import Pipeline
from experiments.scale import Scale
from experiments.systems import engine_of


def wsd(pipeline: Pipeline, scale: Scale) -> dict[str, Any]:
    """Accuracy and BLEU of the base model and of KSTER with the mixed memory, on each domain's examples."""
    selected = read_selected(pipeline.corpora, scale)
    engines = {"Base": Engine(), "KSTER": engine_of(pipeline, kster(scale), mixed_setting(scale), scale)}
    rows = []
    for domain, contrasts in selected["domains"].items():
        for name, engine in engines.items():
            identity = [engine.identity, [asdict(contrast) for contrast in contrasts]]
            found = pipeline.measured("wsd", identity, partial(_measure, pipeline, engine, contrasts))
            rows.append({"domain": domain, "system": name, **found})
    facts = {key: selected[key] for key in ("origin", "pool", "embeddings")}
    return {"statistics": {"rows": rows, **facts}}


def _measure(pipeline: Pipeline, engine: Engine, contrasts: list[Contrast]) -> dict[str, Any]:
    scores = iter(
        _scores(
            pipeline,
            engine,
            [c.source for c in contrasts for _ in (c.reference, *c.contrastive)],
            [text for c in contrasts for text in (c.reference, *c.contrastive)],
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


def _scores(pipeline: Pipeline, engine: Engine, sources: list[str], targets: list[str]) -> list[float]:
    return pipeline.translator(engine).score(sources, targets, **pipeline.options(engine))


def wsd_reads(scale: Scale) -> list[Slice]:
    setting = mixed_setting(scale)
    return [*setting.memory.slices, *(slice.at_most(scale.dev) for slice in setting.dev)]
