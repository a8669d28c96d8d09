"""Which pairs make up which batch, and gathering a batch from the token arrays where they lie.

The plan of an epoch is a pure function of (lengths, weights, seed, epoch), so that a resumed run and
every process of a distributed run see the same batches in the same order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from kster.training.prepared import Side

# Padded lengths are multiples of this: 8 pads 5 % more tokens (1.5M pairs), 1 gives many more shapes.
_MULTIPLE = 4


@dataclass(slots=True)
class Batch:
    """One batch on the device. S and T are padded lengths, N the target tokens that are not padding."""

    source: Tensor  # (B, S) int64
    source_mask: Tensor  # (B, S) bool, True where a token is
    decoder_input: Tensor  # (B, T) int64: the target shifted right
    labels: Tensor  # (N,) int64: the target tokens without padding, row by row
    positions: Tensor  # (N,) int64: where in the flattened (B·T) grid they are


def plan_epoch(
    lengths: tuple[np.ndarray, np.ndarray],
    repeats: Sequence[tuple[int, float]],
    *,
    batch_tokens: int,
    chunk_pairs: int,
    seed: int,
    epoch: int,
    used: np.ndarray | None = None,
) -> list[np.ndarray]:
    """The batches of one epoch, each an array of pair numbers.

    lengths: tokens of every pair's (source, target), both (n,).
    repeats: (number of pairs, weight) of each corpus, in the order of the arrays.
    used: (n,) which pairs may be drawn; None: all.
    """
    random = np.random.default_rng([seed, epoch])
    pairs = _draw(repeats, random, used)
    random.shuffle(pairs)
    rounded = [round_up(side) for side in lengths]
    batches: list[np.ndarray] = []
    for start in range(0, len(pairs), chunk_pairs):
        chunk = pairs[start : start + chunk_pairs]
        order = np.lexsort((lengths[0][chunk], rounded[1][chunk]))  # by target, then by source length
        batches += _cut(chunk[order], rounded[0], rounded[1], batch_tokens)
    random.shuffle(batches)
    return batches


def round_up(lengths: Any) -> Any:
    """The padded length of a length or of an array of lengths."""
    return -(-lengths // _MULTIPLE) * _MULTIPLE


def _draw(
    repeats: Sequence[tuple[int, float]], random: np.random.Generator, used: np.ndarray | None
) -> np.ndarray:
    """Pair numbers of an epoch: each corpus ⌊weight⌋ times, and a random part of it for the rest."""
    parts, first = [], 0
    for count, weight in repeats:
        numbers = np.arange(first, first + count)
        if used is not None:
            numbers = numbers[used[first : first + count]]
        whole, rest = int(weight), weight - int(weight)
        parts += [numbers] * whole
        if rest:
            parts.append(random.choice(numbers, round(rest * len(numbers)), replace=False))
        first += count
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)


def _cut(pairs: np.ndarray, source: np.ndarray, target: np.ndarray, batch_tokens: int) -> list[np.ndarray]:
    """Cut sorted pairs into batches whose padded source and padded target both fit `batch_tokens`."""
    batches, start = [], 0
    while start < len(pairs):
        window = pairs[start : start + batch_tokens // _MULTIPLE]
        width = np.maximum.accumulate(np.maximum(source[window], target[window]))
        fitting = int(np.searchsorted(width * np.arange(1, len(window) + 1), batch_tokens, side="right"))
        count = max(1, fitting)
        batches.append(window[:count])
        start += count
    return batches


class DeviceCorpus:
    """A whole split in device memory; batches are gathered there without the host waiting."""

    def __init__(self, sides: tuple[Side, Side], *, pad_id: int, start_id: int, device: torch.device) -> None:
        self.pad_id, self.start_id, self.device = pad_id, start_id, device
        self.lengths = (np.asarray(sides[0].lengths), np.asarray(sides[1].lengths))
        self._tokens = [torch.from_numpy(side.tokens.astype(np.int32)).to(device) for side in sides]
        self._offsets = [torch.from_numpy(side.offsets.astype(np.int64)).to(device) for side in sides]

    def __len__(self) -> int:
        return len(self.lengths[0])

    def target_tokens(self, pairs: np.ndarray) -> int:
        return int(self.lengths[1][pairs].sum())

    def gather(self, pairs: np.ndarray) -> Batch:
        """The batch of these pair numbers."""
        rows = torch.from_numpy(np.ascontiguousarray(pairs)).to(self.device, non_blocking=True)  # (B,)
        source, source_mask, _ = self._gather_side(0, rows, pairs)
        target, _, lengths = self._gather_side(1, rows, pairs)
        batch, width = target.shape
        decoder_input = torch.cat([target.new_full((batch, 1), self.start_id), target[:, :-1]], dim=1)
        tokens = self.target_tokens(pairs)
        first = torch.arange(batch, device=self.device) * width - (lengths.cumsum(0) - lengths)  # (B,)
        positions = torch.repeat_interleave(first, lengths, output_size=tokens)
        positions = positions + torch.arange(tokens, device=self.device)  # (N,)
        return Batch(source, source_mask, decoder_input, target.reshape(-1)[positions], positions)

    def _gather_side(self, side: int, rows: Tensor, pairs: np.ndarray) -> tuple[Tensor, Tensor, Tensor]:
        """(B, L) tokens, (B, L) mask, (B,) lengths; L is known on the host, so nothing waits."""
        width = int(round_up(self.lengths[side][pairs].max()))
        offsets, tokens = self._offsets[side], self._tokens[side]
        first = offsets[rows]
        lengths = offsets[rows + 1] - first
        steps = torch.arange(width, device=self.device)
        mask = steps < lengths[:, None]
        places = (first[:, None] + steps).clamp(max=len(tokens) - 1)
        return torch.where(mask, tokens[places].long(), self.pad_id), mask, lengths
