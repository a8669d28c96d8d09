"""Exact search on a GPU without writing scores down: two Triton kernels in place of n × N numbers.

The matrix product itself is a quarter of what search by torch's operations costs; the rest goes into writing
n × N scores, adding norms, and reading all of it again for the smallest. Here the scores of a block live and
die in registers, only each block's smallest leaves the chip, and the few blocks that matter are computed once
more, exactly. On one H200, 4,096 queries and 614,400 keys: see `benchmarks/search_speed.py`.

Triton comes with torch's CUDA builds for Linux; where it is missing `BlockIndex` does without.
"""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

GROUP = 64  # keys whose smallest score is kept: fewer would cost more to choose from, more to compute again
TILE = 256  # keys a program scores at once; storage is padded to multiples of it
WIDTH = 64  # of a key, at a time
MOST_QUERIES = 128  # a program scores at once
LEAST_QUERIES = 16  # that a matrix product can have


def smallest_of_groups(queries: Tensor, keys: Tensor, norms: Tensor) -> Tensor:
    """(n, N / GROUP) float32: the smallest ‖k‖² − 2q·k in each group of keys.

    queries: (n, d) float16; keys: (N, d) float16, N a multiple of TILE and d of WIDTH; norms: (N,) float32.
    """
    n, dimension = queries.shape
    groups = len(norms) // GROUP
    smallest = torch.empty((n, groups), device=queries.device)
    rows = min(MOST_QUERIES, max(LEAST_QUERIES, triton.next_power_of_2(n)))
    grid = (triton.cdiv(n, rows) * (len(norms) // TILE),)
    _smallest_of_groups[grid](
        (queries * -2).contiguous(), keys, norms, smallest, n, groups,
        dimension, rows, TILE, WIDTH, GROUP, num_warps=8, num_stages=3,
    )  # fmt: skip
    return smallest


def squared_distances(queries: Tensor, keys: Tensor, norms: Tensor, groups: Tensor) -> Tensor:
    """(n, c · GROUP) float32: ‖q − k‖², summed from differences, for all keys of each query's c groups.

    queries: (n, d) float32; groups: (n, c) int64. inf where the norm is, that is, where there is no key.
    """
    n, dimension = queries.shape
    chosen = groups.shape[1]
    squared = torch.empty((n, chosen * GROUP), device=queries.device)
    _squared_distances[(n, chosen)](
        queries.contiguous(), keys, norms, groups.contiguous(), squared, chosen,
        dimension, WIDTH, GROUP, num_warps=4,
    )  # fmt: skip
    return squared


@triton.jit(do_not_specialize=["n", "groups"])
def _smallest_of_groups(
    queries, keys, norms, smallest, n, groups,
    D: tl.constexpr, ROWS: tl.constexpr, TILE: tl.constexpr, WIDTH: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """One tile of queries × keys. Programs that share a tile of keys run side by side and read it once."""
    tiles = tl.cdiv(n, ROWS)
    program = tl.program_id(0)
    row = (program % tiles) * ROWS + tl.arange(0, ROWS)
    tile = (program // tiles).to(tl.int64)
    key = tile * TILE + tl.arange(0, TILE)
    part = tl.arange(0, WIDTH)
    query_part = queries + row[:, None] * D + part[None, :]
    key_part = keys + key[None, :] * D + part[:, None]
    there = (row < n)[:, None]
    scores = tl.zeros((ROWS, TILE), dtype=tl.float32)
    for _ in range(0, D, WIDTH):
        scores = tl.dot(tl.load(query_part, mask=there, other=0.0), tl.load(key_part), scores)
        query_part += WIDTH
        key_part += WIDTH
    scores += tl.load(norms + key)[None, :]
    best = tl.min(tl.reshape(scores, (ROWS, TILE // GROUP, GROUP)), axis=2)
    group = tile * (TILE // GROUP) + tl.arange(0, TILE // GROUP)
    tl.store(smallest + row[:, None].to(tl.int64) * groups + group[None, :], best, mask=there)


@triton.jit(do_not_specialize=["chosen"])
def _squared_distances(
    queries, keys, norms, groups, squared, chosen,
    D: tl.constexpr, WIDTH: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """One query and one of its groups. Equal keys go through equal sums, so they stay equally far."""
    row = tl.program_id(0).to(tl.int64)
    place = row * chosen + tl.program_id(1)
    key = tl.load(groups + place) * GROUP + tl.arange(0, GROUP)
    part = tl.arange(0, WIDTH)
    sums = tl.zeros((GROUP, WIDTH), dtype=tl.float32)
    for start in range(0, D, WIDTH):
        query = tl.load(queries + row * D + start + part)
        stored = tl.load(keys + key[:, None] * D + start + part[None, :]).to(tl.float32)
        difference = query[None, :] - stored
        sums += difference * difference
    total = tl.sum(sums, axis=1)
    total = tl.where(tl.load(norms + key) == float("inf"), float("inf"), total)
    tl.store(squared + place * GROUP + tl.arange(0, GROUP), total)
