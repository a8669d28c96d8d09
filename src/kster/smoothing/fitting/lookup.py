"""Looking tokens up for a fit: force-decode text, search the memory for its states, note both in a cache."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from kster.errors import KsterError
from kster.memory.index import BlockIndex
from kster.memory.segment import target_group
from kster.smoothing.fitting.cache import EXTERNAL, FitCache, concatenate

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
    require_readable(lookup.model, pairs)
    return _build(lookup, pairs, [EXTERNAL] * len(pairs), neighbours, progress)


def cache_forced(
    lookup: Lookup, forced: Sequence[ForcedSentence], targets: Sequence[str], neighbours: int
) -> FitCache:
    """As `cache_pairs`, of text that is force-decoded already: for looking it up in several memories."""
    return _note(lookup, forced, targets, [EXTERNAL] * len(targets), neighbours, None)


def groups_of(pairs: Sequence[tuple[str, str]]) -> Tensor:
    """(n,) int64: equal for equal target texts, and the same as a memory's entries have."""
    return torch.tensor([target_group(target) for _, target in pairs], dtype=torch.int64)


def count_in_memory(entries: Entries, pairs: Sequence[tuple[str, str]], kind: str) -> int:
    """How many pairs have a target text that is in the memory; says so in the log. kind: "development", …

    Searching for these would find the answer, so their copies are hidden like a held-out segment's own.
    """
    count = int(torch.isin(groups_of(pairs), entries.target_groups).sum())
    if count:
        log.warning(
            "%d of %d %s pairs have a target that is in the memory; its copies there are hidden from them",
            *(count, len(pairs), kind),
        )
    return count


def require_readable(model: BaseModel, pairs: Sequence[tuple[str, str]]) -> None:
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
