"""How long does one decoding step's search take, by size of the memory and of the batch?

    python benchmarks/search_speed.py [--sizes 20000,50000,100000] [--batches 4,32,256] [--device cuda]

Keys are made up, in clusters as decoder states are. On the CPU each line compares exact search with
FAISS's lists, which is how `SearchSettings.exact_limit` was chosen; on a GPU there is exact search alone.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from kster.memory import SearchSettings
from kster.memory.index import BlockIndex, Index
from kster.memory.index.ivf import IvfIndex
from search_recall import snapshot_of


def clustered(n: int, dimension: int, seed: int) -> np.ndarray:
    """(n, d) float16: a tenth as many centres as keys, and keys spread around them."""
    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(0).standard_normal((max(1, n // 10), dimension), np.float32)
    keys = centres[rng.integers(len(centres), size=n)]
    keys += 0.5 * rng.standard_normal((n, dimension), np.float32)
    return keys.astype(np.float16)


def milliseconds(index: Index, queries: Tensor, k: int, repeats: int = 5) -> float:
    """The median over some searches, after one that warms up."""
    times = []
    for _ in range(repeats + 1):
        began = time.perf_counter()
        index.search(queries, k)
        if queries.is_cuda:
            torch.cuda.synchronize()
        times.append(time.perf_counter() - began)
    return 1e3 * sorted(times[1:])[repeats // 2]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", default="20000,50000,100000,200000")
    parser.add_argument("--batches", default="4,32,256")
    parser.add_argument("--dimension", type=int, default=512)
    parser.add_argument("-k", type=int, default=16)
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    device = torch.device(options.device)
    for size in map(int, options.sizes.split(",")):
        with tempfile.TemporaryDirectory() as scratch:
            snapshot = snapshot_of(clustered(size, options.dimension, seed=1), Path(scratch))
            indexes: dict[str, Index] = {"exact": BlockIndex(snapshot, device)}
            if device.type == "cpu":
                began = time.perf_counter()
                opened = IvfIndex.open(snapshot, Path(scratch), SearchSettings())
                indexes["ivf"] = opened.with_lists(opened.build())
                print(f"{size} entries: lists built in {time.perf_counter() - began:.1f} s")
            for batch in map(int, options.batches.split(",")):
                queries = (
                    torch.from_numpy(clustered(size, options.dimension, seed=2)[:batch]).float().to(device)
                )
                times = {name: milliseconds(index, queries, options.k) for name, index in indexes.items()}
                columns = ", ".join(f"{name} {value:.2f} ms" for name, value in times.items())
                print(f"{size} entries, {batch} queries: {columns}", flush=True)


if __name__ == "__main__":
    main()
