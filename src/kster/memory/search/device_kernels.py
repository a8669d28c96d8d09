"""Distances of the entries of shortlists, by a Triton kernel: keys are read where they lie, and nothing but
the distances is written down."""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

WIDTH = 64  # of a key, at a time
GROUP = 64  # entries a program looks at; shortlists have room for a multiple of it


def ordered_distances(queries: Tensor, keys: Tensor, places: Tensor, beam: int) -> Tensor:
    """As `device_shortlists.ordered_distances`. queries: (s · b, d) float32, d a multiple of WIDTH."""
    length = places.shape[1]
    ordered = torch.empty((len(queries), length), dtype=torch.int64, device=queries.device)
    _ordered_distances[(len(queries), length // GROUP)](
        queries.contiguous(), keys, places.contiguous(), ordered, length, beam,
        queries.shape[1], WIDTH, GROUP, num_warps=4,
    )  # fmt: skip
    return ordered


@triton.jit(do_not_specialize=["length", "beam"])
def _ordered_distances(
    queries, keys, places, ordered, length, beam,
    D: tl.constexpr, WIDTH: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """One query and some of its entries. Equal keys go through equal sums, so they stay equally far."""
    row = tl.program_id(0).to(tl.int64)
    slot = tl.program_id(1) * GROUP + tl.arange(0, GROUP)
    place = tl.load(places + (row // beam) * length + slot)
    there = place >= 0
    part = tl.arange(0, WIDTH)
    sums = tl.zeros((GROUP, WIDTH), dtype=tl.float32)
    for start in range(0, D, WIDTH):
        query = tl.load(queries + row * D + start + part)
        key = keys + place[:, None] * D + start + part[None, :]
        # Where there is nothing, nothing is read.
        stored = tl.load(key, mask=there[:, None], other=0.0).to(tl.float32)
        difference = query[None, :] - stored
        sums += difference * difference
    total = tl.where(there, tl.sum(sums, axis=1), float("inf"))
    bits = total.to(tl.int32, bitcast=True).to(tl.int64)
    from_end = (length - 1 - slot).to(tl.int64)
    tl.store(ordered + row * length + slot, (bits << 32) | from_end)
