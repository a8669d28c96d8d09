"""Short codes of keys, by which shortlists are scored.

A key of 512 float16 is 1,024 bytes. Its code is 96 bytes: its coordinates along the directions in which the
memory's keys differ most, in 8 bits. Codes say which few dozen entries may be the nearest; these are then
ranked by their stored keys. How far a query is from a key is estimated as

    ‖q − k‖²  ≈  ‖q' − k'‖² + (‖q″‖² + ‖k″‖²) / 2

where q', k' are what codes keep and q″, k″ the rest: of the rest about half is the same in neighbours.
`benchmarks/short_codes.py` counts what is missed.

Codes are derived data: made when a segment is first in a shortlist, and kept in memory as long as there is
room. The directions are learned from some of the memory's keys, and stay while it grows, until there are four
times as many.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from kster.memory.store.snapshot import Snapshot
from kster.memory.store.spans import Ints

DIRECTIONS = 96  # that codes keep
ENOUGH = 4_096  # keys that directions can be learned from; codes of fewer keep every coordinate
BLOCKS = 64  # places in a memory that a sample is read from
GROWTH = 4  # times as many rows, and directions are learned anew
ROOM = 1 << 21  # rows whose codes are kept at most: 208 MiB

CodesName = tuple[int, int]  # epoch and size: a memory has other codes when one of them changes
Codes = tuple[npt.NDArray[np.int8], npt.NDArray[np.float32]]  # (e, D), and (e,) what `score` adds to them


@dataclass(frozen=True, slots=True, eq=False)
class Projection:
    """From keys to codes. axes None: codes keep every coordinate."""

    centre: Tensor  # (d,) float32
    axes: Tensor | None  # (d, D) float32, orthonormal
    scale: float  # a code's unit
    turned: Tensor  # (d, D) −axes, or nothing
    turned_centre: Tensor  # (D,) the centre's coordinates

    @classmethod
    def of(cls, sample: Tensor) -> Projection:
        """sample: (m, d) keys, of any number; directions are learned if they are enough."""
        keys = sample.float()
        centre = keys.mean(0) if len(keys) else torch.zeros(keys.shape[1], device=keys.device)
        centred, axes = keys - centre, None
        if len(keys) >= ENOUGH and keys.shape[1] > DIRECTIONS:
            axes = torch.linalg.eigh(centred.T @ centred).eigenvectors[:, -DIRECTIONS:].contiguous()
            centred = centred @ axes
        largest = float(centred.abs().amax()) if len(keys) else 0.0
        return cls._of(centre, axes, max(largest, 1e-6) / 127)

    @classmethod
    def _of(cls, centre: Tensor, axes: Tensor | None, scale: float) -> Projection:
        if axes is None:
            return cls(centre, None, scale, centre[:0], centre[:0])
        return cls(centre, axes, scale, -axes, centre @ axes)

    @property
    def width(self) -> int:
        return len(self.centre) if self.axes is None else self.axes.shape[1]

    def codes(self, keys: Tensor) -> tuple[Tensor, Tensor]:
        """(m, D) int8 of keys (m, d), and (m,) float32 what is added to their products with a query."""
        if len(keys) > ENOUGH:
            parts = [self.codes(some) for some in keys.split(ENOUGH)]
            return torch.cat([codes for codes, _ in parts]), torch.cat([norms for _, norms in parts])
        centred = keys.float() - self.centre
        kept = centred if self.axes is None else centred @ self.axes
        codes = (kept / self.scale).round_().clamp_(-127, 127)
        norms = codes.square().sum(1).mul_(self.scale**2)
        if self.axes is not None:
            norms = (norms + centred.square().sum(1)).div_(2)
        return codes.to(torch.int8), norms

    def queries(self, queries: Tensor) -> tuple[Tensor, Tensor]:
        """−q', (n, D), and (n, 1) ‖q'‖², which makes scores positive; queries: (n, d) float32."""
        if self.axes is None:
            turned = self.centre - queries
        else:
            turned = torch.addmm(self.turned_centre, queries, self.turned)
        return turned, torch.linalg.vecdot(turned, turned).unsqueeze(1)

    def to(self, device: torch.device) -> Projection:
        axes = None if self.axes is None else self.axes.to(device)
        return Projection._of(self.centre.to(device), axes, self.scale)


class CodeTable:
    """Codes by some number of each entry; numbers that were not asked for take no memory."""

    def __init__(self, projection: Projection, capacity: int) -> None:
        self.projection, self.capacity, self.made = projection, capacity, 0
        self._codes = np.zeros((capacity, projection.width), np.int8)
        self._norms = np.zeros(capacity, np.float32)
        self._there = np.zeros(capacity, np.bool_)  # whether an entry's code has been made

    def of(self, numbers: Ints, keys: Callable[[npt.NDArray[np.bool_]], npt.NDArray[np.float16]]) -> Codes:
        """numbers: (e,); keys: what reads the keys of those whose codes have yet to be made."""
        if not (there := self._there[numbers]).all():
            missing = numbers[~there]
            codes, norms = self.projection.codes(torch.from_numpy(keys(~there)))
            self._codes[missing], self._norms[missing] = codes.numpy(), norms.numpy()
            self._there[missing] = True  # last: other threads read what is there
            self.made += len(missing)
        return self._codes.take(numbers, axis=0), self._norms.take(numbers)


class KeptCodes:
    """The codes of one memory's entries; any number of threads may ask."""

    def __init__(self) -> None:
        self._projection: tuple[CodesName, Projection] | None = None
        self._table: CodeTable | None = None

    def clear(self) -> None:
        """Let go of all of them; they can be made again."""
        self._projection = self._table = None

    def projection(self, snapshot: Snapshot) -> Projection:
        """The one that suits this memory: the same until it has grown to several times its size."""
        known, name = self._projection, codes_name(snapshot)
        if known is None or known[0] != name:
            known = name, Projection.of(_sample(snapshot))
            self._projection = known
        return known[1]

    def of(self, projection: Projection, snapshot: Snapshot, rows: Ints) -> Codes:
        """rows: (e,) of entries, never of others later. Ids would lie far apart where keys are made later."""
        table = self._table_for(projection, snapshot.rows)
        return table.of(rows, lambda missing: snapshot.entries.gather(rows[missing]))

    def _table_for(self, projection: Projection, rows: int) -> CodeTable:
        """Begun anew when the room is used up."""
        known = self._table
        suits = known is not None and known.projection is projection and known.capacity >= rows
        if known is None or not suits or known.made > ROOM:
            known = self._table = CodeTable(projection, 2 * rows)
        return known


def codes_name(snapshot: Snapshot) -> CodesName:
    """Names the codes that suit a memory."""
    size = 1
    while size * GROWTH <= snapshot.live_count:
        size *= GROWTH
    return snapshot.epoch, size


def _sample(snapshot: Snapshot) -> Tensor:
    """(m, d) keys of live segments: all, or about as many as are enough, from places all over the memory."""
    spans, lines = snapshot.spans, snapshot.lines_with_keys
    ends = spans.counts[lines].cumsum()
    if len(lines) and ends[-1] > 2 * ENOUGH:
        spread = np.linspace(0, ends[-1] - 1, BLOCKS, dtype=np.int64)
        blocks = np.searchsorted(ends, spread, side="right")  # (BLOCKS,) lines
        average = ends[-1] / len(lines)
        near = blocks[:, None] + np.arange(int(2 * ENOUGH / BLOCKS / average) + 1)
        lines = lines[np.unique(near.clip(max=len(lines) - 1))]
    rows, _, _ = spans.entries_of_lines(lines)
    return torch.from_numpy(snapshot.entries.gather(rows[:: max(1, len(rows) // ENOUGH)]))
