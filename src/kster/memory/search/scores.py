"""Roughly which entries are nearest to a query; exact distances rank the best of them afterwards.

On a CPU that has instructions for it, codes (`codes.py`) are multiplied as they are, in 8 bits.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from kster.model.layers import Dense, has_instructions_for

Scorer = Callable[[Tensor], Tensor]  # −q', (n, D) → (n, L) float32, smaller is nearer

FEWEST_BITS = 8  # of a score that must be left beside those that say where it is


def scorer_of(codes: Tensor, norms: Tensor, scale: float, length: int) -> Scorer:
    """Scores L = `length` places by norms − 2 q'·k'. codes: (e, D) int8, in units of `scale`; norms: (e,).

    Behind the codes there is nothing, infinitely far.
    """
    used, device = len(codes), codes.device
    if not used:
        return lambda queries: queries.new_full((len(queries), length), torch.inf)
    if used < length:
        codes = torch.nn.functional.pad(codes, (0, 0, 0, length - used))
        norms = torch.nn.functional.pad(norms, (0, length - used), value=torch.inf)
    if device.type != "cpu" or not has_instructions_for("int8"):
        return Dense(codes.float() * (2 * scale), norms)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that this type is to be replaced one day
        weight = torch._make_per_tensor_quantized_tensor(codes, 2 * scale, 0)
    packed = torch.ops.quantized.linear_prepack(weight, norms)
    product = torch.ops.quantized.linear_dynamic.default  # an overload by its name is found in half the time
    return lambda queries: product(queries, packed)


def best_places(scores: Tensor, c: int) -> Tensor:
    """(n, c) where about the c smallest scores are, the last place first. scores: (n, L), used up.

    On a CPU each score gives its last bits to its place, and numpy, which has instructions for that, puts the
    c smallest of these integers first. So of scores that hardly differ the later ones are taken.
    """
    length = scores.shape[1]
    bits = (length - 1).bit_length()
    if scores.device.type != "cpu" or bits > 31 - FEWEST_BITS:
        return scores.topk(c, largest=False, sorted=False).indices.sort(dim=1, descending=True).values
    mask = (1 << bits) - 1
    numbers = scores.numpy().view(np.int32)  # positive numbers are in the same order
    numbers &= ~mask
    numbers |= np.arange(length - 1, -1, -1, dtype=np.int32)
    if c < length:
        numbers.partition(c - 1, axis=1)
    best = numbers[:, :c] & mask
    best.sort(axis=1)
    return torch.from_numpy(np.subtract(length - 1, best, dtype=np.int64))


def smallest(distances: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """(n, k) the smallest, ascending, and where they are; of equal ones the first. distances: (n, c) ≥ 0.

    On a CPU by one integer each, which numpy has instructions to sort: a distance, and behind it its place.
    """
    if distances.device.type != "cpu":
        ordered, order = distances.sort(dim=1, stable=True)
        return ordered[:, :k], order[:, :k]
    numbers = distances.numpy().view(np.int32).astype(np.int64)
    numbers <<= 32
    numbers |= np.arange(distances.shape[1])
    numbers.sort(axis=1)
    order = torch.from_numpy(numbers[:, :k] & 0xFFFFFFFF)
    return distances.gather(1, order), order
