"""A memory's keys while a smoother is fitted: pooled by entry id, never copied per token."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn import functional as F

if TYPE_CHECKING:
    from kster.memory import Entries

FLOAT32_LIMIT = 4 << 30  # bytes of float32 keys worth holding on the CPU: 2M keys of length 512
RESIDENT_LIMIT = {"cpu": 8 << 30, "cuda": 40 << 30}  # bytes of float16 keys; above it they stay on disk


class KeyTable:
    """The keys of all entries of one memory, or of several whose ids do not overlap.

    On the CPU they are held as float32, if they fit, so that pooling is one `embedding_bag`, which reads
    each key once; on a GPU as float16; and when they fit nowhere each batch is read from disk.
    """

    def __init__(self, entries: Entries, device: torch.device) -> None:
        self.entries = entries
        self.device = device
        self._ids = entries.ids.to(device)  # (N,) ascending
        self._keys: Tensor | None = None  # (N, d)
        dimension = entries.keys_of(entries.ids[:1]).shape[-1]
        half_bytes = 2 * len(entries) * dimension
        if half_bytes <= RESIDENT_LIMIT.get(device.type, 0):
            keys = entries.keys_of(entries.ids)
            as_float32 = device.type == "cpu" and 2 * half_bytes <= FLOAT32_LIMIT
            self._keys = keys.float() if as_float32 else keys.to(device)

    @classmethod
    def joined(cls, ids: Tensor, keys: Tensor, device: torch.device) -> KeyTable:
        """Of several memories. ids: (N,) ascending; keys: (N, d) float16. All are held on the device."""
        table = object.__new__(cls)
        table.device, table._ids = device, ids.to(device)
        table._keys = keys.to(device) if device.type == "cuda" else keys.float()
        return table

    def gather(self, ids: Tensor) -> Tensor:
        """(n, k, d) the keys themselves. ids: (n, k) entry ids, any where the key does not matter."""
        if self._keys is None:
            return self.entries.keys_of(ids.cpu()).to(self.device)
        return self._keys[self._rows(ids)]

    def pool(self, ids: Tensor, weights: Tensor) -> Tensor:
        """Σⱼ weightsⱼ kⱼ, (n, d). ids: (n, k) entry ids, any where the weight is 0; weights: (n, k)."""
        if self._keys is None:
            keys = self.entries.keys_of(ids.cpu()).to(self.device)  # (n, k, d)
            return torch.bmm(weights.unsqueeze(1), keys.float()).squeeze(1)
        rows = self._rows(ids)  # (n, k)
        if self._keys.dtype == torch.float32:
            return F.embedding_bag(rows, self._keys, per_sample_weights=weights, mode="sum")
        return torch.bmm(weights.unsqueeze(1), self._keys[rows].float()).squeeze(1)

    def _rows(self, ids: Tensor) -> Tensor:
        return torch.searchsorted(self._ids, ids).clamp_max(len(self._ids) - 1)
