"""How many of the true nearest neighbours does the search for large memories find?

    python benchmarks/search_recall.py MEMORY [--source held-out.en --target held-out.de]
    python benchmarks/search_recall.py --keys keys.npy --queries queries.npy

With a memory and held-out text, queries are the decoder's states along that text. With a memory alone
they are states of segments drawn from it, and what comes from the query's own segment does not count:
it would be found at distance 0, which is too easy. Prints one line for each number of probes.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from kster.memory import Memory, SearchSettings
from kster.memory.index import BlockIndex, Index
from kster.memory.index.ivf import IvfIndex
from kster.memory.shards import Appender, EntryFiles, MappedEntries
from kster.memory.snapshot import Snapshot
from kster.memory.spans import Spans

CPU = torch.device("cpu")


def snapshot_of(keys: np.ndarray, directory: Path) -> Snapshot:
    """Keys from an array as a snapshot; each is a segment of its own. keys: (n, d)."""
    n = len(keys)
    files = EntryFiles(directory / "entries", keys.shape[1], entries_per_shard=1 << 20)
    files.create()
    appender = Appender(files, 0)
    appender.append(keys.astype(np.float16), np.zeros(n, np.int32))
    appender.sync()
    appender.close()
    line = np.arange(n, dtype=np.int64)
    spans = Spans(line, line, line, np.ones_like(line), line, line, np.zeros_like(line))
    return Snapshot(1, 0, MappedEntries(files, n), spans, np.ones(n, np.bool_), n)


def held_out_states(memory: Memory, source: Path, target: Path) -> Tensor:
    """(n, d) states along held-out translations."""
    pairs = zip(source.read_text("utf-8").splitlines(), target.read_text("utf-8").splitlines(), strict=True)
    return torch.cat([sentence.keys for sentence in memory.model.force_decode(pairs)])


def found_ids(
    index: Index, queries: Tensor, k: int, own: Tensor | None, spans: Spans
) -> tuple[Tensor, float]:
    """(n, k) ids without those of the query's own segment, and the seconds the search took.

    own: (n,) the segment a query is from; None when queries are from outside.
    """
    extra = 0 if own is None else int(spans.counts.max())
    began = time.perf_counter()
    answer = index.search(queries, k + extra)
    seconds = time.perf_counter() - began
    if own is None:
        return answer.ids, seconds
    lines = spans.lines_of_entries(answer.ids.numpy())
    foreign = torch.from_numpy(spans.segment_ids[lines]) != own[:, None]
    first = foreign.int().argsort(dim=1, descending=True, stable=True)[:, :k]
    return answer.ids.gather(1, first), seconds


def recall(ours: Tensor, theirs: Tensor) -> float:
    """The share of true neighbours that were found. ours, theirs: (n, k)."""
    hits = (ours[:, :, None] == theirs[:, None, :]).any(1)
    return (hits & (theirs >= 0)).sum().item() / max(1, int((theirs >= 0).sum()))


def report(snapshot: Snapshot, queries: Tensor, own: Tensor | None, k: int, directory: Path) -> None:
    exact = BlockIndex(snapshot, CPU)
    truth, seconds = found_ids(exact, queries, k, own, snapshot.spans)
    n = len(queries)
    print(f"{snapshot.live_count} entries, d = {queries.shape[1]}, {n} queries, recall@{k}")
    print(f"exact: {1e3 * seconds / n:.3f} ms a query")
    settings = SearchSettings()
    began = time.perf_counter()
    opened = IvfIndex.open(snapshot, directory, settings)
    built = opened.with_lists(opened.build())
    lists = settings.lists(snapshot.live_count)
    print(f"{lists} lists: built or read in {time.perf_counter() - began:.1f} s")
    usual = settings.probes_of(lists)
    for probes in sorted({8, 16, 32, 64, 128, usual}):
        built.settings = replace(settings, probes=probes, probed_share=0.0)
        ours, seconds = found_ids(built, queries, k, own, snapshot.spans)
        default = "  ← default" if probes == usual else ""
        score = recall(ours, truth)
        print(f"{probes:4d} probes: recall {score:.4f}, {1e3 * seconds / n:.3f} ms a query{default}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("memory", nargs="?", type=Path)
    parser.add_argument("--source", type=Path, help="held-out text, one sentence a line")
    parser.add_argument("--target", type=Path, help="its translation")
    parser.add_argument("--keys", type=Path, help="(N, d) array, instead of a memory")
    parser.add_argument("--queries", type=Path, help="(n, d) array")
    parser.add_argument("-k", type=int, default=16)
    parser.add_argument("-n", type=int, default=1_000, help="queries at most")
    options = parser.parse_args()
    if (options.memory is None) == (options.keys is None) or (options.keys is None) != (
        options.queries is None
    ):
        parser.error("give a memory, or both --keys and --queries")
    generator = torch.Generator().manual_seed(0)
    own = None
    with tempfile.TemporaryDirectory() as scratch:
        if options.memory is None:
            snapshot = snapshot_of(np.load(options.keys, mmap_mode="r"), Path(scratch))
            queries = torch.from_numpy(np.load(options.queries))
        else:
            memory = Memory.open(options.memory)
            entries = memory.entries()
            snapshot = entries.snapshot
            if options.source is not None:
                queries = held_out_states(memory, options.source, options.target)
            else:
                chosen = torch.randperm(len(entries), generator=generator)[: options.n]
                queries, own = entries.keys_of(entries.ids[chosen]), entries.segment_ids[chosen]
        if own is None:
            queries = queries[torch.randperm(len(queries), generator=generator)[: options.n]]
        report(snapshot, queries.float(), own, options.k, Path(scratch))


if __name__ == "__main__":
    main()
