"""How long does one decoding step's search take, by size of the memory and of the batch?

    python benchmarks/search_speed.py [--device cpu] [--sizes 20000,50000] [--batches 4,32,256]
    python benchmarks/search_speed.py --device cuda [--gpu-sizes 100000,614400] [--gpu-batches 256,4096]

Keys are made up, in clusters as decoder states are. On a GPU each line compares exact search by Triton
kernels (`kster/memory/search/triton_kernels.py`) with the same search by torch's operations, and says whether
both found the same; without a GPU that part is left out. Times are medians of a few searches.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from kster.memory import Neighbours
from kster.memory.search import block_index
from kster.memory.search.block_index import BlockIndex
from machine import describe
from snapshots import snapshot_of

CPU = torch.device("cpu")


def clustered(count: int, size: int, dimension: int, seed: int) -> np.ndarray:
    """(count, d) float16, spread around a tenth as many centres as a memory of `size` keys has keys."""
    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(0).standard_normal((max(1, size // 10), dimension), np.float32)
    keys = centres[rng.integers(len(centres), size=count)]
    keys += 0.5 * rng.standard_normal((count, dimension), np.float32)
    return keys.astype(np.float16)


def queries_for(size: int, batch: int, dimension: int, device: torch.device) -> Tensor:
    """(batch, d) float32."""
    return torch.from_numpy(clustered(batch, size, dimension, seed=2)).float().to(device)


def milliseconds(index: BlockIndex, queries: Tensor, k: int, repeats: int = 5) -> float:
    """The median over some searches, after one that warms up."""
    times = []
    for _ in range(repeats + 1):
        began = time.perf_counter()
        index.search(queries, k)
        if queries.is_cuda:
            torch.cuda.synchronize()
        times.append(time.perf_counter() - began)
    return 1e3 * sorted(times[1:])[repeats // 2]


def on_the_cpu(sizes: Sequence[int], batches: Sequence[int], dimension: int, k: int) -> None:
    print("on the CPU: exact search")
    for size in sizes:
        with tempfile.TemporaryDirectory() as scratch:
            index = BlockIndex(snapshot_of(clustered(size, size, dimension, seed=1), Path(scratch)), CPU)
            for batch in batches:
                taken = milliseconds(index, queries_for(size, batch, dimension, CPU), k)
                print(f"{size} entries, {batch} queries: {taken:.2f} ms", flush=True)


def on_a_gpu(sizes: Sequence[int], batches: Sequence[int], dimension: int, k: int) -> None:
    what = "on a GPU: exact search by Triton kernels, and by torch's operations"
    if not torch.cuda.is_available():
        print(f"{what}: left out, there is no GPU here")
        return
    if block_index.kernels() is None:
        print(f"{what}: left out, Triton is not installed")
        return
    if dimension % 64:
        print(f"{what}: left out, the kernels need a dimension that is a multiple of 64")
        return
    print(what)
    device = torch.device("cuda")
    for size in sizes:
        with tempfile.TemporaryDirectory() as scratch:
            snapshot = snapshot_of(clustered(size, size, dimension, seed=1), Path(scratch))
            index = BlockIndex(snapshot, device)
            for batch in batches:
                queries = queries_for(size, batch, dimension, device)
                print(f"{size} entries, {batch} queries: {compared(index, queries, k)}", flush=True)


def compared(index: BlockIndex, queries: Tensor, k: int) -> str:
    """One index with and without its kernels: how long each takes, and whether they agree."""
    kernels, found = milliseconds(index, queries, k), index.search(queries, k)
    with without_kernels():
        torchs, expected = milliseconds(index, queries, k), index.search(queries, k)
    return (
        f"kernels {kernels:.2f} ms, torch {torchs:.2f} ms, {torchs / kernels:.1f} times as fast, "
        f"{shared(found, expected):.2%} of the neighbours the same"
    )


@contextmanager
def without_kernels() -> Iterator[None]:
    kept = block_index.kernels
    block_index.kernels = lambda: None  # type: ignore[assignment]
    try:
        yield
    finally:
        block_index.kernels = kept


def shared(found: Neighbours, expected: Neighbours) -> float:
    """The share of neighbours that two answers have in common, in whatever order."""
    same = (found.ids[:, :, None] == expected.ids[:, None, :]).any(2)  # (n, k)
    return float(same.float().mean())


def numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", choices=("both", "cpu", "cuda"), default="both")
    parser.add_argument("--sizes", type=numbers, default="20000,50000,100000,200000")
    parser.add_argument("--batches", type=numbers, default="4,32,256")
    parser.add_argument("--gpu-sizes", type=numbers, default="20000,100000,614400")
    parser.add_argument("--gpu-batches", type=numbers, default="4,32,256,1024,4096")
    parser.add_argument("--dimension", type=int, default=512)
    parser.add_argument("-k", type=int, default=16)
    options = parser.parse_args()
    print(describe(dimension=options.dimension, k=options.k))
    if options.device != "cuda":
        on_the_cpu(options.sizes, options.batches, options.dimension, options.k)
    if options.device != "cpu":
        on_a_gpu(options.gpu_sizes, options.gpu_batches, options.dimension, options.k)


if __name__ == "__main__":
    main()
