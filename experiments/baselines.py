"""The trained baselines: the base model fine-tuned on a domain, or on everything at once (Joint-training)."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import yaml

from experiments.data import Slice, write_lines
from experiments.engine import MemorySpec
from experiments.pipeline import Pipeline
from experiments.scale import Scale
from experiments.stages import OutOfTime, digest
from kster.training import train

CHARACTERS_PER_TOKEN = 3.5  # of German and English in a 16k vocabulary; only sets how many steps an epoch has
WORTH_COMPILING = 3_000  # steps; on a GPU compiling takes about a minute
SMALL, OFTEN = 30_000, 4.0  # in a mixture, corpora of fewer pairs are seen this many times an epoch


def train_baseline(
    pipeline: Pipeline, memory: MemorySpec, dev: Sequence[Slice], epochs: int, scale: Scale
) -> Path:
    """Where the model will be after so many passes over the text that the memory is made of."""
    steps = (epochs, scale.batch_tokens, scale.least_steps, scale.most_steps)
    name = f"{memory.name}-{digest([memory.identity, steps])}"
    output = pipeline.cache / "models" / name

    def make() -> None:
        pipeline.say(f"fine-tuning on {memory.name}, {epochs} epochs")
        config = _write_config(pipeline, memory, dev, epochs, scale, output)
        if not train(config, max_seconds=pipeline.clock.left).finished:
            raise OutOfTime
        shutil.rmtree(output / "checkpoints", ignore_errors=True)  # several times the model's size

    return pipeline.promise(output / "model", make)


def _write_config(
    pipeline: Pipeline, memory: MemorySpec, dev: Sequence[Slice], epochs: int, scale: Scale, output: Path
) -> Path:
    several = len(memory.slices) > 1
    corpora, tokens = [], 0.0
    for slice in memory.slices:
        pairs = pipeline.corpora.pairs(slice)
        weight = OFTEN if several and len(pairs) < SMALL else 1.0
        tokens += weight * sum(max(map(len, pair)) for pair in pairs) / CHARACTERS_PER_TOKEN
        corpora.append({"name": str(slice), "weight": weight, **_write_text(pipeline, (slice,))})
    steps = round(epochs * tokens / scale.batch_tokens)
    steps = min(max(steps, scale.least_steps), scale.most_steps)
    source_lang, target_lang = pipeline.languages
    settings = {
        "source_lang": source_lang,
        "target_lang": target_lang,
        "data": str(_text_directory(pipeline)),
        "prepared": str(_prepared_directory(pipeline, memory, dev)),
        "output": str(output),
        "init": str(pipeline.base.name),
        "device": str(pipeline.base.device),
        "corpora": corpora,
        "dev": _write_text(pipeline, tuple(dev)),
        "training": {
            "steps": steps,
            "learning_rate": 1e-4,
            "warmup_steps": max(1, steps // 10),
            "batch_tokens": scale.batch_tokens,
            "compile": "auto" if steps > WORTH_COMPILING else False,
            "average_decay": max(0.0, 1.0 - 10.0 / steps),  # about the last tenth of a short run
        },
        "report": {
            "dev_every": max(1, steps // 4),
            "bleu_every": -1,
            "tensorboard": False,
            "checkpoint_every": 500,
            "keep_checkpoints": 1,
        },
    }
    path = output / "config.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(settings, sort_keys=False), encoding="utf-8")
    return path


def _prepared_directory(pipeline: Pipeline, memory: MemorySpec, dev: Sequence[Slice]) -> Path:
    """Tokenised text, the same for every length of training."""
    name = digest([memory.identity, [str(slice) for slice in dev]])
    return (pipeline.cache / "prepared" / f"{memory.name}-{name}").absolute()


def _text_directory(pipeline: Pipeline) -> Path:
    return (pipeline.cache / "text").absolute()


def _write_text(pipeline: Pipeline, slices: tuple[Slice, ...]) -> dict[str, str]:
    """The slices as two plain files, which training reads; returns their names."""
    name = digest([str(slice) for slice in slices])
    names = {"source": f"{name}.source", "target": f"{name}.target"}
    pairs = pipeline.corpora.pairs(*slices)
    for i, file in enumerate(names.values()):
        write_lines(_text_directory(pipeline) / file, (pair[i] for pair in pairs))
    return names
