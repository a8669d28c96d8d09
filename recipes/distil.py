"""Sequence-level distillation: a teacher translates the training text, a smaller network learns from that.

    python recipes/distil.py recipes/en-de.yaml --teacher runs/teacher/model --output runs/en-de/distilled
    kster train recipes/en-de.yaml --set prepared=runs/en-de/distilled --set output=runs/en-de/student

The prepared data of the recipe are written again with the teacher's translations as targets; `--mix` keeps a
share of the original ones. It works in blocks: stopped or interrupted, the same command goes on after the
last finished one, and the same comes out. Long sentences come first, together with others of their length:
little is padded, and a lack of memory shows at once.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import sys
import time
from pathlib import Path

import numpy as np

from kster.errors import KsterError
from kster.files import new_directory, replacing
from kster.model import BaseModel
from kster.training.prepared import MANIFEST, SIDES, PreparedData, Side
from kster.training.recipe import load_settings
from kster.training.settings import TrainSettings
from kster.translation import Translator


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("config", help="the recipe whose prepared data are translated")
    parser.add_argument("--teacher", type=Path, required=True, help="a model of the recipe's direction")
    parser.add_argument("--output", type=Path, required=True, help="the prepared directory to make")
    parser.add_argument("--beam", type=int, default=4)
    parser.add_argument("--mix", type=float, default=0.0, help="share of pairs that keep their own target")
    parser.add_argument("--block", type=int, default=20_000, help="sentences translated between two savings")
    parser.add_argument("--max-seconds", type=float, default=float("inf"), help="stop after so long")
    options = parser.parse_args(arguments)
    try:
        finished = distil(
            load_settings(options.config),
            options.teacher,
            options.output,
            beam=options.beam,
            mix=options.mix,
            block=options.block,
            deadline=time.monotonic() + options.max_seconds,
        )
    except KsterError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"distilled data in {options.output}" if finished else "stopped; the same command goes on")
    return 0


def distil(
    settings: TrainSettings,
    teacher: Path,
    output: Path,
    *,
    beam: int,
    mix: float,
    block: int,
    deadline: float,
) -> bool:
    """Make `output`, or go on with it; True when it is complete."""
    if (output / MANIFEST).is_file():
        return True
    prepared = PreparedData.open(settings.prepared_directory)
    swap = settings.direction == "swap"
    source, target = prepared.split("train", swap=swap)
    vocabulary = prepared.vocabulary()
    chosen = _chosen(source, mix, settings.seed)
    blocks = output.with_name(f".{output.name}.blocks")
    _begin(blocks, {"teacher": _fingerprint(teacher), "beam": beam, "mix": mix, "block": block})
    translator: Translator | None = None
    for number, start in enumerate(range(0, len(chosen), block)):
        file = blocks / f"{number:06}.npz"
        if file.is_file():
            continue
        if time.monotonic() > deadline:
            return False
        translator = translator or Translator(BaseModel.load(teacher, device=settings.device))
        rows = chosen[start : start + block]
        texts = [vocabulary.decode(_row(source, i), int(swap)) for i in rows]
        made = translator.translate(texts, beam=beam, split_sentences=False)
        tokens, lengths = vocabulary.encode([t.text for t in made], int(not swap), threads=4)
        with replacing(file) as stream:
            np.savez(stream, tokens=tokens, lengths=lengths)
        print(f"{start + len(rows):,} of {len(chosen):,} sentences", flush=True)
    _join(prepared, blocks, chosen, target, output, swap=swap, longest=settings.cleaning.max_tokens)
    shutil.rmtree(blocks)
    return True


def _chosen(source: Side, mix: float, seed: int) -> np.ndarray:
    """The pairs that the teacher translates, the longest first."""
    count = len(source.lengths)
    own = np.random.default_rng([seed, 17]).random(count) < mix
    by_length = np.argsort(-source.lengths, kind="stable")
    return by_length[~own[by_length]]


def _row(side: Side, i: int) -> np.ndarray:
    return side.tokens[side.offsets[i] : side.offsets[i + 1]]


def _begin(blocks: Path, facts: dict[str, object]) -> None:
    """Make the place of the blocks, or see that those in it were made in the same way."""
    file = blocks / "facts.json"
    if file.is_file() and json.loads(file.read_text()) != facts:
        raise KsterError(f"{blocks} was begun with other settings; it was left untouched: delete it")
    blocks.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(facts))


def _fingerprint(teacher: Path) -> str:
    weights = teacher / "model.safetensors"
    if not weights.is_file():
        raise KsterError(f"{teacher} has no model.safetensors; nothing was written")
    return hashlib.sha256(weights.read_bytes()).hexdigest()[:16]


def _join(
    prepared: PreparedData,
    blocks: Path,
    chosen: np.ndarray,
    target: Side,
    output: Path,
    *,
    swap: bool,
    longest: int,
) -> None:
    """Write the prepared directory again with the new targets; a translation too long is not taken."""
    rows = [_row(target, i) for i in range(len(target.lengths))]
    first = 0
    for file in sorted(blocks.glob("*.npz")):
        made = np.load(file)
        parts = np.split(made["tokens"], np.cumsum(made["lengths"])[:-1])
        for i, part in zip(chosen[first : first + len(parts)], parts, strict=True):
            if 1 < len(part) <= longest:
                rows[i] = part
        first += len(parts)
    name = SIDES[0 if swap else 1]
    offsets = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    manifest = {**prepared.manifest, "distilled": json.loads((blocks / "facts.json").read_text())}
    manifest["train"] = {**manifest["train"], f"{name}_tokens": int(offsets[-1])}
    with new_directory(output) as partial:
        shutil.copytree(prepared.directory, partial, dirs_exist_ok=True)
        np.save(partial / f"train.{name}.tokens.npy", np.concatenate(rows).astype(np.uint16))
        np.save(partial / f"train.{name}.offsets.npy", offsets.astype(target.offsets.dtype))
        (partial / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
