"""Everything a fit needs to know about a token, computed once.

The base model and the memory are frozen while a smoother is fitted, so the queries, the neighbours and the
base model's probabilities never change: force-decode and search once, then train on what is noted here.
Neighbours are more than k, because dropout takes some away; their keys stay in the memory.
"""

from __future__ import annotations

import json
import logging
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from kster.errors import KsterError
from kster.memory.index import BlockIndex
from kster.memory.segment import target_group
from kster.smoothing.files import write_atomically
from kster.smoothing.loss import BasePrediction

if TYPE_CHECKING:
    from kster.memory import Entries, Memory, Neighbours
    from kster.model import BaseModel, ForcedSentence

log = logging.getLogger("kster.smoothing")

PAIRS_AT_ONCE = {"cpu": 512, "cuda": 4096}  # force-decoded at once; few let progress be seen on a CPU
SEARCH_TOKENS = {"cpu": 4096, "cuda": 16_384}  # searched for at once

EXACT_LIMIT = 150_000
"""Entries up to which tokens are searched for exactly on a CPU. A fit searches thousands of tokens at once,
and then one matrix product is several times faster than the inverted lists that serve single sentences:
6 against 30 CPU seconds for 4,096 tokens, 48 neighbours and 91,000 entries (of an untrained network, whose
states lie close together; trained ones should favour the lists more)."""

EXTERNAL = -1
"""The segment id of tokens that are not of the memory: development or general-domain text."""

VERSION = 2
"""Of saved caches. 1 did not note that text from outside the memory may be in the memory, too."""


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
        """Write one `.npy` file per column, to be memory-mapped by `load`."""
        directory = Path(directory)
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "cache.json").unlink(missing_ok=True)
        for field in fields(self):
            np.save(directory / f"{field.name}.npy", getattr(self, field.name).numpy())
        # Written last: without it the directory holds no cache.
        write_atomically(directory / "cache.json", json.dumps(_identity(entries)).encode())

    @classmethod
    def load(cls, directory: Path | str, entries: Entries) -> FitCache:
        """What `save` wrote, memory-mapped. Refuses a cache of a memory that has changed since."""
        directory = Path(directory)
        try:
            saved = json.loads((directory / "cache.json").read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise KsterError(f"{directory}: no complete cache here.") from None
        if saved != _identity(entries):
            raise KsterError(f"{directory}: the memory has changed since this cache was made; make it again.")
        # Copy-on-write mapping: torch wants writable arrays, the file is never written.
        return cls(
            *(torch.from_numpy(np.load(directory / f"{f.name}.npy", mmap_mode="c")) for f in fields(cls))
        )


def _identity(entries: Entries) -> dict[str, int]:
    """Tells one state of a memory from another, which entries with which tokens, and one form of cache."""
    sums = {name: zlib.crc32(getattr(entries, name).numpy().tobytes()) for name in ("ids", "values")}
    return sums | {"version": VERSION}


class Lookup:
    """A model and a memory as they are when a fit begins: what tokens are looked up in."""

    def __init__(self, model: BaseModel, memory: Memory, entries: Entries) -> None:
        self.model, self.memory, self.entries = model, memory, entries
        self.ids = entries.ids.to(model.device)  # (N,) ascending
        self.segment_ids = entries.segment_ids.to(model.device)  # (N,)
        self.target_groups = entries.target_groups.to(model.device)  # (N,)
        self._exact: BlockIndex | None = None
        if model.device.type == "cpu" and len(entries) <= EXACT_LIMIT:
            self._exact = BlockIndex(entries.snapshot, model.device)

    def search(self, queries: Tensor, k: int) -> Neighbours:
        """queries: (n, d) on the model's device. The memory may have grown since `entries` were taken."""
        return self.memory.search(queries, k) if self._exact is None else self._exact.search(queries, k)


def cache_segments(
    lookup: Lookup,
    segment_ids: Sequence[int],
    neighbours: int,
    progress: Callable[[int], None] | None = None,
) -> FitCache:
    """The tokens of these segments of the memory. progress: called with the number of tokens done."""
    wanted = set(segment_ids)
    segments = [segment for segment in lookup.memory.segments() if segment.id in wanted]
    pairs = [(segment.source, segment.target) for segment in segments]
    return _build(lookup, pairs, [s.id for s in segments], neighbours, progress)


def cache_pairs(
    lookup: Lookup,
    pairs: Sequence[tuple[str, str]],
    neighbours: int,
    progress: Callable[[int], None] | None = None,
) -> FitCache:
    """The tokens of text from outside. progress: called with the number of tokens done.

    Where its targets are in the memory all the same, those segments' entries are noted as related.
    """
    _require_readable(lookup.model, pairs)
    return _build(lookup, pairs, [EXTERNAL] * len(pairs), neighbours, progress)


def cache_forced(
    lookup: Lookup, forced: Sequence[ForcedSentence], targets: Sequence[str], neighbours: int
) -> FitCache:
    """As `cache_pairs`, of text that is force-decoded already: for looking it up in several memories."""
    return _note(lookup, forced, targets, [EXTERNAL] * len(targets), neighbours, None)


def concatenate(caches: Sequence[FitCache]) -> FitCache:
    """One cache of several whose neighbours have different ids; all have as many neighbours."""
    return FitCache(*(torch.cat([getattr(cache, f.name) for cache in caches]) for f in fields(FitCache)))


def count_in_memory(entries: Entries, pairs: Sequence[tuple[str, str]], kind: str) -> int:
    """How many pairs have a target text that is in the memory; says so in the log. kind: "development", …

    Searching for these would find the answer, so their copies are hidden like a held-out segment's own.
    """
    groups = torch.tensor([target_group(target) for _, target in pairs], dtype=torch.int64)
    count = int(torch.isin(groups, entries.target_groups).sum())
    if count:
        log.warning(
            "%d of %d %s pairs have a target that is in the memory; its copies there are hidden from them",
            *(count, len(pairs), kind),
        )
    return count


def _require_readable(model: BaseModel, pairs: Sequence[tuple[str, str]]) -> None:
    """Refuse pairs too long for the model before any work is done; a memory's own segments never are."""
    sources = model.tokenise_source([source for source, _ in pairs])
    targets = model.tokenise_target([target for _, target in pairs])
    for number, sides in enumerate(zip(sources, targets, strict=True), start=1):
        longest = max(map(len, sides))
        if longest > model.max_length:
            raise KsterError(
                f"pair {number} of the text to fit or tune on has {longest} tokens on one side; "
                f"{model.name} reads at most {model.max_length}. Nothing was changed."
            )


def _build(
    lookup: Lookup,
    pairs: Sequence[tuple[str, str]],
    segment_ids: Sequence[int],
    neighbours: int,
    progress: Callable[[int], None] | None,
) -> FitCache:
    at_once = PAIRS_AT_ONCE.get(lookup.model.device.type, PAIRS_AT_ONCE["cpu"])
    windows = range(0, len(pairs), at_once)
    forced = (sentence for i in windows for sentence in lookup.model.force_decode(pairs[i : i + at_once]))
    return _note(lookup, forced, [target for _, target in pairs], segment_ids, neighbours, progress)


def _note(
    lookup: Lookup,
    forced: Iterable[ForcedSentence],
    targets: Sequence[str],
    segment_ids: Sequence[int],
    neighbours: int,
    progress: Callable[[int], None] | None,
) -> FitCache:
    parts: list[FitCache] = []
    done = 0
    groups = [target_group(target) for target in targets]
    tokens_at_once = SEARCH_TOKENS.get(lookup.model.device.type, SEARCH_TOKENS["cpu"])
    for sentences, owners, owner_groups in _batches(forced, segment_ids, groups, tokens_at_once):
        parts.append(_look_up(lookup, sentences, owners, owner_groups, neighbours))
        done += len(owners)
        if progress is not None:
            progress(done)
    if not parts:
        raise KsterError("there is no text to fit or tune on")
    return concatenate(parts)


def _batches(
    forced: Iterable[ForcedSentence], segment_ids: Sequence[int], groups: Sequence[int], tokens_at_once: int
) -> Iterator[tuple[list[ForcedSentence], Tensor, Tensor]]:
    """Sentences together until they have enough tokens; each token's segment id and target group."""
    sentences: list[ForcedSentence] = []
    owners: list[Tensor] = []  # (tokens of a sentence, 2) each
    tokens = 0
    for sentence, owner in zip(forced, zip(segment_ids, groups, strict=True), strict=True):
        sentences.append(sentence)
        owners.append(torch.tensor(owner).expand(len(sentence.tokens), 2))
        tokens += len(sentence.tokens)
        if tokens >= tokens_at_once:
            yield sentences, *torch.cat(owners).T.contiguous()
            sentences, owners, tokens = [], [], 0
    if sentences:
        yield sentences, *torch.cat(owners).T.contiguous()


@torch.no_grad()
def _look_up(
    lookup: Lookup, sentences: list[ForcedSentence], segment_ids: Tensor, groups: Tensor, neighbours: int
) -> FitCache:
    """Search for one batch of tokens and note what the base model thought. segment_ids, groups: (n,)."""
    model = lookup.model
    queries = torch.cat([s.keys for s in sentences])  # (n, d) float16
    owners = segment_ids.to(model.device).unsqueeze(-1), groups.to(model.device).unsqueeze(-1)  # (n, 1) each
    hidden = torch.cat([s.hidden for s in sentences]).to(model.device)  # (n, d)
    log_normaliser = torch.cat([s.log_normaliser for s in sentences]).to(model.device)  # (n,)
    answer = lookup.search(queries.to(model.device), neighbours)
    at_values = model.output_log_probs(hidden, answer.values, log_normaliser)  # (n, K)
    place = torch.searchsorted(lookup.ids, answer.ids).clamp_max(len(lookup.ids) - 1)  # (n, K)
    known = lookup.ids[place] == answer.ids  # not those that were added while the cache is built
    same_segment = lookup.segment_ids[place] == owners[0]
    same_target = lookup.target_groups[place] == owners[1]
    return FitCache(
        queries=queries,
        gold=torch.cat([s.tokens for s in sentences]).long(),
        segment_ids=segment_ids,
        ids=torch.where(known, answer.ids, -1).int().cpu(),
        distances=torch.where(known, answer.distances, torch.inf).cpu(),
        values=torch.where(known, answer.values, 0).int().cpu(),
        related=(known & (same_segment | same_target)).cpu(),
        log_probs=torch.cat([s.log_probs for s in sentences]),
        log_probs_at_values=at_values.cpu(),
        mean_log_prob=torch.cat([s.mean_log_prob for s in sentences]),
        max_log_prob=torch.cat([s.max_log_prob for s in sentences]),
    )


@dataclass(slots=True)
class Examples:
    """k neighbours of n tokens after dropout, and what the base model said: one batch, ready for the loss."""

    queries: Tensor  # (n, d) float16
    ids: Tensor  # (n, k) int64
    distances: Tensor  # (n, k) float32
    values: Tensor  # (n, k) int64
    found: Tensor  # (n, k) bool
    base: BasePrediction

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
        )
