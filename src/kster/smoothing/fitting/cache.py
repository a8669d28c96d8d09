"""Everything a fit needs to know about a token, computed once (by `lookup.py`).

The base model and the memory are frozen while a smoother is fitted, so the queries, the neighbours and the
base model's probabilities never change: force-decode and search once, then train on what is noted here.
Neighbours are more than k, because dropout takes some away; their keys stay in the memory.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from kster.errors import KsterError
from kster.files import new_directory
from kster.smoothing.fitting.loss import BasePrediction
from kster.smoothing.source_words import WordEvidence

if TYPE_CHECKING:
    from kster.memory import Entries

EXTERNAL = -1
"""The segment id of tokens that are not of the memory: development or general-domain text."""

VERSION = 4
"""Of saved caches. 1 did not note that text from outside the memory may be in the memory, too; 2 did not note
how similar the source sentences are, 3 not which words they lack or share."""


@dataclass(slots=True)
class FitCache:
    """n tokens with K neighbours each; on the CPU, possibly memory-mapped."""

    queries: Tensor  # (n, d) float16
    gold: Tensor  # (n,) int64
    segment_ids: Tensor  # (n,) int64: the token's own segment in the memory, or EXTERNAL
    ids: Tensor  # (n, K) int32: entry ids, nearest first; -1 where nothing was found
    distances: Tensor  # (n, K) float32; inf where nothing was found
    values: Tensor  # (n, K) int32
    related: Tensor  # (n, K) bool: from the token's own segment, or one with the same target text
    log_probs: Tensor  # (n,) float32: log p_m(gold)
    log_probs_at_values: Tensor  # (n, K) float32: log p_m of the neighbours' values
    mean_log_prob: Tensor  # (n,) float32: mean over the vocabulary of log p_m
    max_log_prob: Tensor  # (n,) float32: log p_m of the most probable token
    similarity: Tensor  # (n, K) float16: of the token's source sentence and the neighbour's
    missing: Tensor  # (n, K) float16: attention to words that the neighbour's source sentence lacks
    taught: Tensor  # (n, K) float16: attention to words that it has, and few other sources of the memory
    older: Tensor  # (n, K) bool: a later segment has the same source

    def __len__(self) -> int:
        return len(self.gold)

    @property
    def base_nll(self) -> float:
        """The base model's negative log-likelihood per token."""
        return float(-self.log_probs.double().mean())

    def take(self, rows: Tensor, device: torch.device) -> FitCache:
        """The given tokens, on a device. rows: (m,)."""
        rows = rows.to(self.gold.device, non_blocking=True)
        return FitCache(*(getattr(self, field.name)[rows].to(device) for field in fields(self)))

    def near(self, device: torch.device) -> FitCache:
        """The same, on the device if it is a GPU: there a batch is gathered in no time."""
        if device.type != "cuda":
            return self
        return FitCache(*(getattr(self, field.name).to(device) for field in fields(self)))

    def save(self, directory: Path | str, entries: Entries) -> None:
        """Write one `.npy` file per column, to be memory-mapped by `load`.

        The directory is replaced as a whole: other fits may be writing or reading the same. Raises OSError.
        """
        with new_directory(Path(directory), replace=True) as part:
            for field in fields(self):
                np.save(part / f"{field.name}.npy", getattr(self, field.name).numpy())
            (part / "cache.json").write_text(json.dumps(_identity(entries)), encoding="utf-8")

    @classmethod
    def load(cls, directory: Path | str, entries: Entries) -> FitCache:
        """What `save` wrote, memory-mapped. Refuses a cache of a memory that has changed since."""
        directory = Path(directory)
        try:
            saved = json.loads((directory / "cache.json").read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise KsterError(f"{directory}: no cache here.") from None
        if saved != _identity(entries):
            raise KsterError(f"{directory}: the memory has changed since this cache was made; make it again.")
        # Copy-on-write mapping: torch wants writable arrays, the file is never written.
        return cls(
            *(torch.from_numpy(np.load(directory / f"{f.name}.npy", mmap_mode="c")) for f in fields(cls))
        )


def _identity(entries: Entries) -> dict[str, int]:
    """Tells apart states of a memory, by its entries and their tokens, and versions of the cache."""
    sums = {name: zlib.crc32(getattr(entries, name).numpy().tobytes()) for name in ("ids", "values")}
    return sums | {"version": VERSION}


def concatenate(caches: Sequence[FitCache]) -> FitCache:
    """Several caches as one; all have equally many neighbours."""
    return FitCache(*(torch.cat([getattr(cache, f.name) for cache in caches]) for f in fields(FitCache)))


@dataclass(slots=True)
class Examples:
    """k neighbours of n tokens after dropout, and what the base model said: one batch, ready for the loss."""

    queries: Tensor  # (n, d) float16
    ids: Tensor  # (n, k) int64
    distances: Tensor  # (n, k) float32
    values: Tensor  # (n, k) int64
    found: Tensor  # (n, k) bool
    base: BasePrediction
    similarity: Tensor  # (n, k) float16
    words: WordEvidence
    plain: Tensor | None = None  # (n, k) float32, where distances are learned

    @classmethod
    def choose(cls, cache: FitCache, columns: Tensor, found: Tensor) -> Examples:
        """columns, found: (n, k), from `dropout.first_k`."""
        values = cache.values.gather(-1, columns).long() * found
        base = BasePrediction(
            gold=cache.gold,
            log_probs=cache.log_probs,
            log_probs_at_values=cache.log_probs_at_values.gather(-1, columns),
            mean_log_prob=cache.mean_log_prob,
            max_log_prob=cache.max_log_prob,
        )
        return cls(
            queries=cache.queries,
            ids=torch.where(found, cache.ids.gather(-1, columns), 0).long(),
            distances=cache.distances.gather(-1, columns),
            values=values,
            found=found,
            base=base,
            similarity=cache.similarity.gather(-1, columns),
            words=WordEvidence(cache.missing, cache.taught, cache.older).gather(columns),
        )

    def nearest(self, distances: Tensor, k: int) -> Examples:
        """The k nearest by other distances. distances: (n, c)."""
        distances = distances.masked_fill(~self.found, torch.inf)
        order = distances.detach().argsort(dim=-1, stable=True)[:, :k]  # (n, k)
        at_values = self.base.log_probs_at_values.gather(-1, order)
        return Examples(
            queries=self.queries,
            ids=self.ids.gather(-1, order),
            distances=distances.gather(-1, order),
            values=self.values.gather(-1, order),
            found=self.found.gather(-1, order),
            base=replace(self.base, log_probs_at_values=at_values),
            similarity=self.similarity.gather(-1, order),
            words=self.words.gather(order),
            plain=self.distances.gather(-1, order),
        )
