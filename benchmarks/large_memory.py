"""How do disk, RAM and time grow with a memory, up to many millions of entries?

    python benchmarks/large_memory.py [--model models/en-de] [--entries 100000,1000000] [--sentences 16]
                                      [--key-format float16]
    python benchmarks/large_memory.py --segments 500000

The memory is the shipped example, its segments repeated with other numbers in the texts and keys that differ
a little, so that no corpus is needed. For each size: seconds and bytes on disk to make it; seconds to open it
and to find the first shortlist in a fresh process, and what that process then holds; and the median
milliseconds of finding and gathering one sentence's shortlist.

With --segments only opening is measured, of so many segments without keys: processor seconds until a text has
been looked for, with the table of segments read from its file and from SQLite, in turns.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from kster.formats import Pair, read_pairs
from kster.memory import Memory
from kster.memory.adding import Origin, drafts_of
from kster.memory.report import bytes_under
from kster.memory.search.retriever import Batch
from kster.memory.store.change import Draft
from kster.model import BaseModel
from machine import describe

EXAMPLES = Path(__file__).parents[1] / "examples"
EXAMPLE_SEGMENTS = 1_000
AT_ONCE = 20_000  # segments of one change
OPENINGS = 3  # of each kind, after one that does not count


def sentences(count: int) -> list[str]:
    return (EXAMPLES / "heldout.en").read_text(encoding="utf-8").splitlines()[:count]


def pairs(count: int) -> list[Pair]:
    own = [pair for pair in read_pairs(EXAMPLES / "ombravella.tmx", "en", "de") if isinstance(pair, Pair)]
    return [
        Pair(f"{pair.source} ({i})" if i else pair.source, f"{pair.target} ({i})" if i else pair.target)
        for i in range(-(-count // len(own)))
        for pair in own
    ][:count]


def varied(drafts: Sequence[Draft], copy: int) -> list[Draft]:
    """Other segments like these: other numbers in the texts, keys moved by a hundredth of their length."""
    random = np.random.default_rng(copy)
    made = []
    for draft in drafts:
        keys = draft.keys.astype(np.float32)
        noise = random.standard_normal(keys.shape, dtype=np.float32)
        noise *= 0.01 * np.linalg.norm(keys, axis=1, keepdims=True) / np.sqrt(keys.shape[1])
        new = replace(draft.new, source=f"{draft.new.source} {copy}", target=f"{draft.new.target} {copy}")
        made.append(Draft(new, (keys + noise).astype(np.float16), draft.values))
    return made


def grow(memory: Memory, drafts: Sequence[Draft], entries: int, copy: int) -> int:
    """Add copies until a memory has this many entries; returns the number of the next copy."""
    while (missing := entries - memory.entry_count) > 0:
        with memory._store.writing() as change:  # as an import does, without a model
            for _ in range(AT_ONCE // len(drafts)):
                for draft in varied(drafts, copy):
                    if missing > 0:
                        change.add(draft)
                    missing -= len(draft.values)
                copy += 1
    return copy


def opened(directory: Path, texts: Sequence[str]) -> None:
    """In a process of its own: open a memory, find shortlists, and print what that took, as JSON."""
    before = held_bytes()
    began = time.perf_counter()
    memory = Memory.open(directory)
    memory.retriever(Batch(texts[:1], torch.device("cpu")))
    first = time.perf_counter() - began
    seconds = []
    for text in texts:
        began = time.perf_counter()
        memory.retriever(Batch([text], torch.device("cpu")))
        seconds.append(time.perf_counter() - began)
    held = (held_bytes() - before) / 1e6
    print(json.dumps({"first": first, "ms": 1000 * statistics.median(seconds), "held_mb": held}))


def opening(model: BaseModel, segments: int, folder: Path | None) -> None:
    text = sentences(1)[0]
    with tempfile.TemporaryDirectory(prefix="kster-", dir=folder) as place:
        directory = Path(place) / "memory"
        with Memory.create(directory, model) as memory:
            memory.import_pairs(pairs(segments), keys="later")
            memory.similar(text, 256)  # the index of sources is written
        seconds: dict[str, list[float]] = {"SQLite, which writes the file": [], "its file": []}
        for turn in range(OPENINGS + 1):
            (directory / "index" / "segments.npz").unlink(missing_ok=True)
            for own in seconds.values():
                began = time.process_time()
                with Memory.open(directory) as memory:
                    memory.similar(text, 256)
                if turn:
                    own.append(time.process_time() - began)
        for way, own in seconds.items():
            print(
                f"{segments:,} segments, their table from {way}: {statistics.median(own):.2f} s of one core"
            )


def held_bytes() -> int:
    """What this process holds for itself, mapped files aside."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("RssAnon"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="models/en-de")
    parser.add_argument("--entries", default="100000,1000000")
    parser.add_argument("--sentences", type=int, default=16)
    parser.add_argument("--key-format", default="float16", help="how keys lie on disk: float16 or int8")
    parser.add_argument("--folder", type=Path, help="where there is room; by default a temporary one")
    parser.add_argument("--segments", type=int, help="measure opening alone")
    parser.add_argument("--open", type=Path, help=argparse.SUPPRESS)
    wanted = parser.parse_args()
    if wanted.open:
        opened(wanted.open, sentences(wanted.sentences))
        return
    model = BaseModel.load(wanted.model, device="cpu")
    if wanted.segments:
        print(describe(model=wanted.model, segments=wanted.segments), flush=True)
        opening(model, wanted.segments, wanted.folder)
        return
    shown = {name: getattr(wanted, name) for name in ("model", "entries", "sentences", "key_format")}
    print(describe(**shown), flush=True)
    drafts = [d for d in drafts_of(model, pairs(EXAMPLE_SEGMENTS), Origin()) if isinstance(d, Draft)]
    with tempfile.TemporaryDirectory(prefix="kster-", dir=wanted.folder) as folder:
        memory, copy = Memory.create(Path(folder) / "memory", model, key_format=wanted.key_format), 0
        for entries in map(int, wanted.entries.split(",")):
            began = time.perf_counter()
            copy = grow(memory, drafts, entries, copy)
            made = time.perf_counter() - began
            memory.close()
            command = [
                sys.executable,
                __file__,
                "--open",
                folder + "/memory",
                "--sentences",
                str(wanted.sentences),
            ]
            lines = [
                subprocess.run(command, capture_output=True, text=True, check=True).stdout for _ in range(2)
            ]
            new, again = (json.loads(line) for line in lines)
            memory = Memory.open(Path(folder) / "memory", model)
            size = bytes_under(memory.directory)
            print(
                f"{memory.entry_count:,} entries, {memory.segment_count():,} segments: made in {made:.0f} s, "
                f"{size / 1e9:.2f} GB ({size / memory.entry_count:.0f} bytes an entry); opened and searched "
                f"for the first time in {new['first']:.1f} s, later in {again['first']:.1f} s; a shortlist "
                f"in {again['ms']:.1f} ms; holds {again['held_mb']:.0f} MB",
                flush=True,
            )
        memory.close()


if __name__ == "__main__":
    main()
