"""How many of the true nearest neighbours does the search for large memories find, at its default settings?

    python benchmarks/search_recall.py MEMORY [--source held-out.en --target held-out.de]
    python benchmarks/search_recall.py --keys keys-*.npy --queries queries.npy

With a memory and held-out text, queries are the decoder's states along that text. With a memory alone they
are states of segments drawn from it, and those segments are searched as if they were removed: their own
states would be found at distance 0, which is too easy. Arrays are (n, d) of any floating type, keys in as
many files as one likes; `--write DIR` writes a memory's live keys and the queries as such files (float16),
to be measured elsewhere. Prints one line for each number of probes, the default marked.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from kster.memory import Entries, Memory, SearchSettings
from kster.memory.index import BlockIndex, Index
from kster.memory.index.ivf import IvfIndex
from kster.memory.store.snapshot import Snapshot
from machine import describe
from snapshots import snapshot_of

CPU = torch.device("cpu")
PER_SEGMENT = 5  # queries drawn from one segment, at most
ROWS_A_FILE = 50_000  # written by --write: 50 MB at d = 512


# What to search in, and what for ---------------------------------------------------------------------


def held_out_states(memory: Memory, source: Path, target: Path) -> Tensor:
    """(n, d) states along held-out translations."""
    pairs = zip(source.read_text("utf-8").splitlines(), target.read_text("utf-8").splitlines(), strict=True)
    return torch.cat([sentence.keys for sentence in memory.model.force_decode(pairs)])


def drawn_states(entries: Entries, n: int, generator: torch.Generator) -> tuple[Tensor, Snapshot]:
    """(n, d) states of segments drawn at random, and the memory without these segments."""
    order = torch.randperm(len(entries), generator=generator)  # places of entries
    taken: dict[int, int] = {}  # by segment
    chosen: list[int] = []
    for place, segment in zip(order.tolist(), entries.segment_ids[order].tolist(), strict=True):
        if len(chosen) == n:
            break
        # The first n / PER_SEGMENT segments only: as little as possible is taken out of the memory.
        if (segment in taken or len(taken) < -(-n // PER_SEGMENT)) and taken.get(segment, 0) < PER_SEGMENT:
            taken[segment] = taken.get(segment, 0) + 1
            chosen.append(place)
    out = torch.isin(entries.segment_ids, torch.tensor(list(taken)))
    live = entries.snapshot.live.copy()
    live[entries.snapshot.spans.rows_of_entries(entries.ids[out].numpy())] = False
    snapshot = replace(entries.snapshot, live=live, live_count=int(live.sum()))
    return entries.keys_of(entries.ids[torch.tensor(chosen)]), snapshot


def write(snapshot: Snapshot, queries: Tensor, directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    rows = np.flatnonzero(snapshot.live)
    for number, first in enumerate(range(0, len(rows), ROWS_A_FILE)):
        keys = snapshot.entries.gather(rows[first : first + ROWS_A_FILE])
        np.save(directory / f"keys-{number:03d}.npy", keys)
    np.save(directory / "queries.npy", queries.half().numpy())


# Measuring -------------------------------------------------------------------------------------------


def timed_search(index: Index, queries: Tensor, k: int) -> tuple[Tensor, float]:
    """(n, k) ids, and the seconds it took."""
    began = time.perf_counter()
    ids = index.search(queries, k).ids
    return ids, time.perf_counter() - began


def recall(ours: Tensor, theirs: Tensor) -> float:
    """The share of true neighbours that were found. ours, theirs: (n, k)."""
    hits = (ours[:, :, None] == theirs[:, None, :]).any(1)
    return (hits & (theirs >= 0)).sum().item() / max(1, int((theirs >= 0).sum()))


def report(snapshot: Snapshot, queries: Tensor, k: int, directory: Path) -> None:
    settings, n = SearchSettings(), len(queries)
    print(describe(k=k, **asdict(settings)))
    print(f"{snapshot.live_count:,} entries, d = {queries.shape[1]}, {n:,} queries")
    truth, seconds = timed_search(BlockIndex(snapshot, CPU), queries, k)
    print(f"exact: {1e3 * seconds / n:.3f} ms a query", flush=True)
    began = time.perf_counter()
    opened = IvfIndex.open(snapshot, directory, settings)
    built = opened.with_lists(opened.build())
    lists = settings.lists(snapshot.live_count)
    print(f"{lists} lists: built in {time.perf_counter() - began:.1f} s", flush=True)
    usual = settings.probes_of(lists)
    for probes in sorted({8, 16, 32, 64, 128, usual}):
        built.settings = replace(settings, probes=probes, probed_share=0.0)
        ours, seconds = timed_search(built, queries, k)
        default = "  ← default" if probes == usual else ""
        found = recall(ours, truth)
        line = f"{probes:4d} probes: recall@{k} {found:.4f}, {1e3 * seconds / n:.3f} ms a query{default}"
        print(line, flush=True)


# From the command line -------------------------------------------------------------------------------


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("memory", nargs="?", type=Path)
    parser.add_argument("--source", type=Path, help="held-out text, one sentence a line")
    parser.add_argument("--target", type=Path, help="its translation")
    parser.add_argument("--keys", type=Path, nargs="+", help="(N, d) arrays, instead of a memory")
    parser.add_argument("--queries", type=Path, help="(n, d) array")
    parser.add_argument(
        "--write", type=Path, metavar="DIR", help="write keys and queries there; measure nothing"
    )
    parser.add_argument("-k", type=int, default=16)
    parser.add_argument("-n", type=int, default=1_000, help="queries at most")
    options = parser.parse_args()
    by_arrays = options.keys is not None
    if (options.memory is None) != by_arrays or by_arrays != (options.queries is not None):
        parser.error("give a memory, or both --keys and --queries")
    if (options.source is None) != (options.target is None) or (by_arrays and options.source is not None):
        parser.error("--source and --target belong together, and to a memory")
    if by_arrays:
        options.arrays = [np.load(path, mmap_mode="r") for path in [*options.keys, options.queries]]
        for path, array in zip([*options.keys, options.queries], options.arrays, strict=True):
            if array.ndim != 2 or array.shape[1] != options.arrays[0].shape[1] or array.dtype.kind != "f":
                parser.error(f"{path}: {array.dtype} {array.shape}; all must be (n, d) floats with one d")
    return options


def main() -> None:
    options = arguments()
    generator = torch.Generator().manual_seed(0)
    with tempfile.TemporaryDirectory() as scratch:
        if options.keys is not None:
            snapshot = snapshot_of(options.arrays[:-1], Path(scratch))
            queries = torch.from_numpy(np.array(options.arrays[-1]))
        else:
            memory = Memory.open(options.memory)
            entries = memory.entries()
            if options.source is not None:
                queries, snapshot = held_out_states(memory, options.source, options.target), entries.snapshot
            else:
                queries, snapshot = drawn_states(entries, options.n, generator)
        queries = queries[torch.randperm(len(queries), generator=generator)[: options.n]]
        if options.write is not None:
            write(snapshot, queries, options.write)
        else:
            report(snapshot, queries.float(), options.k, Path(scratch))


if __name__ == "__main__":
    main()
