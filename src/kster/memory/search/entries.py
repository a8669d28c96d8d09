"""All live entries of a memory at once, for fitting and tuning."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from kster.errors import KsterError
from kster.memory.store.snapshot import Snapshot
from kster.memory.store.spans import Ints


@dataclass(frozen=True, slots=True, eq=False)
class Entries:
    """Every live entry, in the order of its id; keys stay on disk until asked for."""

    ids: Tensor  # (n,) int64
    values: Tensor  # (n,) int64
    segment_ids: Tensor  # (n,) int64
    positions: Tensor  # (n,) int64, from 0 within the segment
    target_groups: Tensor  # (n,) int64, equal for equal target texts (case and whitespace aside)
    snapshot: Snapshot

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def segment_count(self) -> int:
        return len(self.segment_ids.unique_consecutive())

    @property
    def newest_segment(self) -> int:
        """The id of the segment that was added last; 0 when there is none."""
        return int(self.segment_ids[-1]) if len(self) else 0

    def keys_of(self, ids: Tensor) -> Tensor:
        """(…, d) float16 keys of (…) entry ids, on the CPU; zeros where there is no such entry."""
        return keys_of(self.snapshot, ids)


def entry_ids(ids: Tensor | Iterable[int]) -> Tensor:
    """(n,) int64 on the CPU. Raises KsterError for a number that no entry can have."""
    if isinstance(ids, Tensor):
        return ids.to("cpu", torch.int64)
    listed = list(ids)
    if beyond := [entry for entry in listed if not -(1 << 63) <= entry < 1 << 63]:
        raise KsterError(f"no entry {beyond[0]}")
    return torch.tensor(listed, dtype=torch.int64)


def all_entries(snapshot: Snapshot) -> Entries:
    spans, lines = snapshot.spans, snapshot.lines_with_keys
    rows, ids, positions = spans.entries_of_lines(lines)
    of_segments = np.repeat(lines, spans.counts[lines])
    return Entries(
        ids=torch.from_numpy(ids),
        values=torch.from_numpy(snapshot.entries.values_of(rows).astype(np.int64)),
        segment_ids=torch.from_numpy(spans.segment_ids[of_segments]),
        positions=torch.from_numpy(positions),
        target_groups=torch.from_numpy(spans.target_groups[of_segments]),
        snapshot=snapshot,
    )


def keys_of(snapshot: Snapshot, ids: Tensor) -> Tensor:
    rows = snapshot.spans.rows_of_entries(ids.reshape(-1).cpu().numpy())
    return torch.from_numpy(snapshot.entries.gather(rows)).view(*ids.shape, snapshot.entries.dimension)


def segment_ids_of(snapshot: Snapshot, ids: Tensor) -> Tensor:
    """(…) segment ids of (…) entry ids, on their device; -1 where there is no such entry."""
    lines = snapshot.spans.lines_of_entries(ids.cpu().numpy())
    return _look_up(snapshot.spans.segment_ids, lines, ids)


def places_of(snapshot: Snapshot, ids: Tensor) -> tuple[list[int], list[int]]:
    """The segments of (n,) entry ids, -1 where there is no such entry, and the positions in these."""
    spans, wanted = snapshot.spans, ids.numpy()
    lines = spans.lines_of_entries(wanted)  # (n,)
    positions = wanted - np.append(spans.first_entries, 0)[lines]
    return np.append(spans.segment_ids, -1)[lines].tolist(), positions.tolist()


def target_groups_of(snapshot: Snapshot, segment_ids: Tensor) -> Tensor:
    """(…) target-text groups of (…) segment ids, on their device; -1 where there is no such segment."""
    wanted, known = segment_ids.cpu().numpy(), snapshot.spans.segment_ids
    lines = np.searchsorted(known, wanted)
    there = np.append(known, -1)[lines] == wanted
    return _look_up(snapshot.spans.target_groups, np.where(there & (wanted >= 0), lines, -1), segment_ids)


def _look_up(column: Ints, lines: Ints, like: Tensor) -> Tensor:
    """The column's numbers on these lines; -1 where a line is -1."""
    return torch.from_numpy(np.append(column, -1)[lines]).to(like.device)  # line -1 is the one appended
