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
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from kster.formats import Pair, read_pairs
from kster.memory import Memory
from kster.memory.adding import Origin, drafts_of
from kster.memory.report import bytes_under
from kster.memory.search.retriever import Batch
from kster.memory.store.change import Change, Draft
from kster.memory.store.database import INSERT, NewSegment, texts_of
from kster.memory.store.entry_files import checksum_of
from kster.model import BaseModel
from kster.translation import Translator
from machine import describe

EXAMPLES = Path(__file__).parents[1] / "examples"
EXAMPLE_SEGMENTS = 1_000
BLOCK = 32  # segments of the example whose keys are varied together
NOISE = 0.01  # of a key's length: how far its copies are from it
COPIES_AT_ONCE = 100  # of the example in one change
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


@dataclass(frozen=True)
class Block:
    """Some segments of the example, few enough that their keys stay in a core's cache."""

    segments: list[NewSegment]
    counts: list[int]  # entries of each
    keys: torch.Tensor  # (n, d) float32
    spread: torch.Tensor  # (n, 1) what a standard deviation of noise is for each key
    values: np.ndarray  # (n,)


def blocks_of(drafts: Sequence[Draft]) -> list[Block]:
    blocks = []
    for first in range(0, len(drafts), BLOCK):
        some = drafts[first : first + BLOCK]
        keys = torch.from_numpy(np.concatenate([draft.keys for draft in some])).float()
        spread = NOISE * keys.norm(dim=1, keepdim=True) / keys.shape[1] ** 0.5
        values = np.concatenate([draft.values for draft in some])
        blocks.append(
            Block([draft.new for draft in some], [len(draft.values) for draft in some], keys, spread, values)
        )
    return blocks


class Grower:
    """Adds copies of the example to a memory, in the way an import does, but many segments at a time."""

    def __init__(self, drafts: Sequence[Draft]) -> None:
        self._blocks = blocks_of(drafts)
        self._words = sorted({word for draft in drafts for word in draft.new.source.split()})
        self._random = np.random.default_rng(1)
        self._noise = torch.randn(1 << 24, generator=torch.Generator().manual_seed(1))
        self._copy = 0

    def grow(self, memory: Memory, entries: int) -> None:
        while memory.entry_count < entries:
            missing = entries - memory.entry_count
            with memory._store.writing() as change:
                for _ in range(COPIES_AT_ONCE):
                    for block in self._blocks:
                        if missing > 0:
                            self._add(change, block)
                            missing -= len(block.values)
                    self._copy += 1

    def _add(self, change: Change, block: Block) -> None:
        begin = int(self._random.integers(len(self._noise) - block.keys.numel()))
        noise = self._noise[begin : begin + block.keys.numel()].view_as(block.keys)
        keys = torch.addcmul(block.keys, noise, block.spread).half().numpy()
        stored = change._files.as_stored(keys)
        row, _ = change._append(stored, block.values)
        rows = []
        words = self._random.integers(len(self._words), size=len(block.segments))
        place = 0
        for new, count, word in zip(block.segments, block.counts, words.tolist(), strict=True):
            mine = slice(place, place + count)
            varied = replace(
                new,
                source=f"{new.source} {self._words[word]} {self._copy}",
                target=f"{new.target} {self._words[word]} {self._copy}",
            )
            checksum = checksum_of(stored[mine], block.values[mine])
            hashes = varied.pair_hash, varied.target_group
            numbers = change._next_entry, row + place, count, checksum, change.generation
            rows.append((*texts_of(varied), *hashes, *numbers))
            change._next_entry += count
            place += count
        change.database.connection.executemany(INSERT, rows)


def opened(directory: Path, model: str, texts: Sequence[str]) -> None:
    """In a process of its own: open a memory, find shortlists, translate; prints what that took, as JSON."""
    before = held_bytes("RssAnon")
    began = time.perf_counter()
    memory = Memory.open(directory)
    memory.retriever(Batch(texts[:1], torch.device("cpu")))
    first = time.perf_counter() - began
    found: dict[str, float] = {"first": first, "peak_mb": held_bytes("VmHWM") / 1e6}
    found["shortlist"] = milliseconds(
        texts, lambda text: memory.retriever(Batch([text], torch.device("cpu")))
    )
    found["held_mb"] = (held_bytes("RssAnon") - before) / 1e6
    base = BaseModel.load(model, device="cpu")
    with Translator(base, memory) as with_memory, Translator(base) as without:
        for text in texts[:2]:
            with_memory.translate(text)
        found["sentence"] = milliseconds(texts, with_memory.translate)
        found["base"] = milliseconds(texts, without.translate)
    print(json.dumps(found))


def milliseconds(texts: Sequence[str], work: Callable[[str], object]) -> float:
    """The median of one core's time for each of these texts."""
    taken = []
    for text in texts:
        began = time.process_time()
        work(text)
        taken.append(1000 * (time.process_time() - began))
    return statistics.median(taken)


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


def held_bytes(line: str) -> int:
    """Of this process; RssAnon: what it holds for itself, mapped files aside; VmHWM: the most, with these."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(one.split()[1]) for one in lines if one.startswith(line))


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
        opened(wanted.open, wanted.model, sentences(wanted.sentences))
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
        memory = Memory.create(Path(folder) / "memory", model, key_format=wanted.key_format)
        grower = Grower(drafts)
        for entries in map(int, wanted.entries.split(",")):
            began = time.perf_counter()
            grower.grow(memory, entries)
            made = time.perf_counter() - began
            memory.close()
            command = [
                sys.executable,
                __file__,
                "--open",
                folder + "/memory",
                "--sentences",
                str(wanted.sentences),
                "--model",
                wanted.model,
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
                f"for the first time in {new['first']:.1f} s, later in {again['first']:.1f} s; of one core, "
                f"a shortlist {again['shortlist']:.1f} ms, a sentence {again['sentence']:.0f} ms, without a "
                f"memory {again['base']:.0f}; holds {again['held_mb']:.0f} MB; with mapped files at most "
                f"{again['peak_mb']:.0f}, the first time {new['peak_mb']:.0f}",
                flush=True,
            )
        memory.close()


if __name__ == "__main__":
    main()
