"""All live entries of a memory at once, for fitting and tuning."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from kster.memory.snapshot import Snapshot


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

    def keys_of(self, ids: Tensor) -> Tensor:
        """(…, d) float16 keys of (…) entry ids, on the CPU; zeros where an id is -1."""
        return keys_of(self.snapshot, ids)


def all_entries(snapshot: Snapshot) -> Entries:
    ids = np.flatnonzero(snapshot.live)
    segments = snapshot.segments_of(ids)
    return Entries(
        ids=torch.from_numpy(ids),
        values=torch.from_numpy(snapshot.entries.values[ids].astype(np.int64)),
        segment_ids=torch.from_numpy(snapshot.segment_ids[segments]),
        positions=torch.from_numpy(ids - snapshot.first_entries[segments]),
        target_groups=torch.from_numpy(snapshot.target_groups[segments]),
        snapshot=snapshot,
    )


def keys_of(snapshot: Snapshot, ids: Tensor) -> Tensor:
    flat = ids.reshape(-1).cpu().numpy()
    return torch.from_numpy(snapshot.entries.gather(flat)).view(*ids.shape, snapshot.entries.dimension)


def segment_ids_of(snapshot: Snapshot, ids: Tensor) -> Tensor:
    """(…) segment ids of (…) entry ids, on their device; -1 where an id is -1."""
    if len(snapshot.segment_ids) == 0:
        return torch.full_like(ids, -1)
    found = ids.cpu().numpy()
    segments = snapshot.segment_ids[snapshot.segments_of(found.clip(min=0))]
    return torch.from_numpy(np.where(found < 0, -1, segments)).to(ids.device)


def target_groups_of(snapshot: Snapshot, segment_ids: Tensor) -> Tensor:
    """(…) target-text groups of (…) segment ids, on their device; -1 where an id is -1."""
    if len(snapshot.segment_ids) == 0:
        return torch.full_like(segment_ids, -1)
    found = segment_ids.cpu().numpy()
    where = np.searchsorted(snapshot.segment_ids, found).clip(max=len(snapshot.segment_ids) - 1)
    if not np.all((snapshot.segment_ids[where] == found) | (found < 0)):
        raise ValueError("a segment id is not in this memory")
    return torch.from_numpy(np.where(found < 0, -1, snapshot.target_groups[where])).to(segment_ids.device)
