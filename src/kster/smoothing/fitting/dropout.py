"""Retrieval dropout (section 3.5): hide from training what will not be there at test time.

A token of the memory always finds itself, so a smoother fitted on the memory's own tokens would learn to
believe every neighbour. Three ways to leave examples out:

    "nearest"      the nearest neighbour, as in the paper;
    "provenance"   everything from the same segment, and from segments with the same target text, whose
                   copies survive the paper's form and leak the answer;
    "none"         nothing.

Translators also meet contexts the memory does hold exactly, so a `keep_rate` of the tokens keep everything.
"""

from __future__ import annotations

from typing import Literal

from torch import Tensor

Dropout = Literal["nearest", "provenance", "none"]


def drop(found: Tensor, related: Tensor, kept: Tensor, dropout: Dropout) -> Tensor:
    """Which neighbours training may see.

    found, related: (n, K) bool, related meaning same segment or same target text; kept: (n,) bool, tokens
    that keep everything. Returns (n, K) bool.
    """
    seen = found.clone()
    if dropout == "nearest":
        seen[:, 0] = False
    elif dropout == "provenance":
        seen &= ~related
    return seen | (found & kept.unsqueeze(-1))


def first_k(seen: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The nearest k of the neighbours that may be seen.

    seen: (n, K) bool, nearest first. Returns their columns (n, k) and which of these are there (n, k) bool:
    fewer than k may be left.
    """
    columns = (~seen).int().argsort(dim=-1, stable=True)[:, :k]  # seen ones first, in their order
    return columns, seen.gather(-1, columns)
