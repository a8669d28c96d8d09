"""What takes long and is made in parts: memories, and the trained baselines.

Baselines are the base model fine-tuned on a domain, or on everything at once (Joint-training); or a model of
its shape trained on everything from scratch.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import yaml

from experiments.data import Corpora, Pairs, Slice, write_lines
from experiments.engine import MemorySpec, Training
from experiments.sentence_knn import SentenceMemory
from experiments.stages import Clock, digest, read_json, say, write_json
from kster.formats import Pair
from kster.memory import Memory, SearchSettings
from kster.model import BaseModel
from kster.training import train

IMPORT_AT_ONCE = 20_000  # pairs between two looks at the clock
KEYS_AT_ONCE = 4_096  # pairs; a GPU wants large batches
KEYS_ON_DEMAND = 64  # segments whose keys a translation waits for, where an import has made none
CHARACTERS_PER_TOKEN = 3.5  # of German and English in a 16k vocabulary; only sets how many steps an epoch has
WORTH_COMPILING = 3_000  # steps; on a GPU compiling takes about a minute
SMALL, OFTEN = 30_000, 4.0  # in a mixture, corpora of fewer pairs are seen this many times an epoch


def build_memory(spec: MemorySpec, pairs: Pairs, directory: Path, base: BaseModel, clock: Clock) -> None:
    """A memory of these pairs; stopped, it is gone on with from where it was."""
    part = directory.with_name(directory.name + ".part")
    progress = part.with_name(part.name + ".json")  # how many pairs are in for certain
    if not progress.is_file():
        shutil.rmtree(part, ignore_errors=True)
        part.parent.mkdir(parents=True, exist_ok=True)
        Memory.create(part, base).close()
        write_json(progress, 0)
    with Memory.open(part, base) as memory:
        for first in range(read_json(progress), len(pairs), IMPORT_AT_ONCE):
            clock.check()
            chunk = pairs[first : first + IMPORT_AT_ONCE]
            # Pairs of a chunk that a killed run had already committed are recognised as duplicates.
            # Each chunk has a context of its own, or it would replace earlier pairs with the same source.
            memory.import_pairs(
                (Pair(source, target, context=f"from {first}") for source, target in chunk),
                at_once=KEYS_AT_ONCE,
                keys="later" if spec.keys_on_demand else "now",
            )
            write_json(progress, first + len(chunk))
            say(f"memory {spec.name}: {first + len(chunk):,} of {len(pairs):,} pairs")
    part.rename(directory)
    progress.unlink()


def open_memory(directory: Path, base: BaseModel, sentences: int | None) -> Memory:
    """sentences: of it that SK-MT searches for each that is translated; None for any other system."""
    if sentences is None:
        return Memory.open(directory, base, search=SearchSettings(keys_on_demand=KEYS_ON_DEMAND))
    return SentenceMemory.open(directory, base, search=SearchSettings(shortlist=sentences))


def train_baseline(
    wanted: Training, base: BaseModel, corpora: Corpora, cache: Path, output: Path, seconds: float | None
) -> bool:
    """Train into `output`, for so many seconds at most; whether it is finished. Called again, it goes on."""
    text = cache.absolute() / "text"
    parts, tokens = [], 0.0
    for slice in wanted.memory.slices:
        pairs = corpora.learnable_pairs(slice)
        weight = OFTEN if len(wanted.memory.slices) > 1 and len(pairs) < SMALL else 1.0
        tokens += weight * sum(max(map(len, pair)) for pair in pairs) / CHARACTERS_PER_TOKEN
        parts.append({"name": str(slice), "weight": weight, **_write_text(text, (slice,), pairs)})
    steps = round(wanted.epochs * tokens / wanted.batch_tokens)
    steps = min(max(steps, wanted.least_steps), wanted.most_steps)
    tokenised = digest([wanted.memory.identity, [str(slice) for slice in wanted.dev]])
    settings = {
        "source_lang": corpora.direction[0],
        "target_lang": corpora.direction[1],
        "data": str(text),
        "prepared": str(cache.absolute() / "prepared" / f"{wanted.memory.name}-{tokenised}"),
        "output": str(output),
        **(_like(base) if wanted.from_scratch else {"init": str(base.name)}),
        "device": str(base.device),
        "corpora": parts,
        "dev": _write_text(text, wanted.dev, corpora.pairs(*wanted.dev)),
        "training": {
            "steps": steps,
            "learning_rate": 1e-3 if wanted.from_scratch else 1e-4,
            "warmup_steps": max(1, steps // 10),
            "batch_tokens": wanted.batch_tokens,
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
    output.mkdir(parents=True, exist_ok=True)
    config = output / "config.yaml"
    config.write_text(yaml.safe_dump(settings, sort_keys=False), encoding="utf-8")
    return train(config, max_seconds=seconds).finished


def _like(base: BaseModel) -> dict[str, Any]:
    """The keys of a recipe for a network of the base model's shape, with its vocabulary."""
    shape = base.network.config
    network = {
        "encoder_layers": shape.encoder_layers,
        "decoder_layers": shape.decoder_layers,
        "dimension": shape.d_model,
        "feed_forward": shape.decoder_ffn_dim,
        "heads": shape.decoder_attention_heads,
        "activation": shape.activation_function,
        "positions": shape.max_position_embeddings,
    }
    return {"vocabulary": {"reuse": str(base.directory)}, "network": network}


def _write_text(directory: Path, slices: tuple[Slice, ...], pairs: Pairs) -> dict[str, str]:
    """The pairs as two plain files, which training reads; returns their names."""
    name = digest([str(slice) for slice in slices])
    names = {"source": f"{name}.source", "target": f"{name}.target"}
    for side, file in enumerate(names.values()):
        write_lines(directory / file, (pair[side] for pair in pairs))
    return names
