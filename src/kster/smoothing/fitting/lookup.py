"""Looking tokens up for a fit: force-decode text, search the memory for its states, note both in a cache."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from kster.errors import KsterError
from kster.memory.search.block_index import BlockIndex
from kster.memory.search.neighbours import Neighbours
from kster.memory.search.retriever import Batch, Retriever
from kster.memory.segment import target_group
from kster.memory.sources.scoring import rare_words
from kster.model.focus import source_words
from kster.model.forcing import ForcedSentence
from kster.smoothing.fitting.cache import EXTERNAL, FitCache, concatenate
from kster.smoothing.fitting.room import tokens_at_once
from kster.smoothing.source_words import WordEvidence
from kster.text.marks import marked_pair

if TYPE_CHECKING:
    from kster.memory import Entries, Memory
    from kster.model import BaseModel

log = logging.getLogger("kster.smoothing")

PAIRS_AT_ONCE = {"cpu": 512, "cuda": 4096}  # force-decoded at once; few let progress be seen on a CPU
SEARCH_TOKENS = {"cpu": 4096, "cuda": 16_384}  # searched for at once
SENTENCES_AT_ONCE = 32  # whose shortlists are held at once: 250 MiB at d = 512

EXACT_LIMIT = 150_000
"""Entries up to which tokens are searched for in all of them on a CPU; in more, in the shortlist of their
sentence, as translations do. In 620,000 entries the 48 nearest of a token take 0.07 s on two busy cores, and
a fit looks up tens of thousands of tokens."""


Counted = Callable[[int, int], None]
"""Called with how many tokens are looked up, and of how many."""


class Lookup:
    """A model and a memory as they are when a fit begins: what tokens are looked up in."""

    def __init__(self, model: BaseModel, memory: Memory, entries: Entries) -> None:
        self.model, self.memory, self.entries = model, memory, entries
        self.ids = entries.ids.to(model.device)  # (N,) ascending
        self.segment_ids = entries.segment_ids.to(model.device)  # (N,)
        self.target_groups = entries.target_groups.to(model.device)  # (N,)
        self._sources = memory.sources(entries.snapshot)
        self._lines = torch.from_numpy(entries.snapshot.spans.segment_ids)  # (s,) ascending
        # An index of all entries, which translations on a CPU do without, must not outlive the fit there.
        self._all: BlockIndex | Memory | None = memory
        if model.device.type == "cpu":
            self._all = BlockIndex(entries.snapshot, model.device) if len(entries) <= EXACT_LIMIT else None

    def search(self, queries: Tensor, sources: Sequence[str], lengths: Sequence[int], k: int) -> Neighbours:
        """The k nearest; the memory may have grown since `entries` were taken.

        queries: (n, d) on the model's device; sources: of the sentences they belong to, one after the other;
        lengths: how many queries each sentence has.
        """
        if self._all is not None:
            return self._all.search(queries, k)
        parts, first = [], 0
        for i in range(0, len(sources), SENTENCES_AT_ONCE):
            own = torch.tensor(lengths[i : i + SENTENCES_AT_ONCE])
            retriever = self.memory.retriever(Batch(sources[i : i + SENTENCES_AT_ONCE], queries.device))
            assert isinstance(retriever, Retriever)  # as it is asked for similarities
            rows = torch.arange(len(own)).repeat_interleave(own)
            parts.append(retriever.search_for(queries[first : first + len(rows)], rows, k))
            first += len(rows)
        return Neighbours.stack(parts)

    def similarity(self, sources: Sequence[str], lengths: Sequence[int], segment_ids: Tensor) -> Tensor:
        """(n, K) float16: how much the sources of these segments resemble the one a token belongs to.

        sources: of the sentences; lengths: how many tokens each has, n together; segment_ids: (n, K).
        """
        lines = torch.searchsorted(self._lines, segment_ids.cpu()).clamp_max(len(self._lines) - 1)
        scores = (torch.from_numpy(self._sources.relative_scores(source)) for source in sources)  # (s,) each
        parts = zip(scores, lines.split(list(lengths)), strict=True)
        return torch.cat([own[place] for own, place in parts]).half()

    def words(self, sources: Sequence[str], focus: Sequence[Tensor], segment_ids: Tensor) -> WordEvidence:
        """How much attention goes to words that the sources of these segments lack, or have and few others.

        sources: of the sentences; focus: (tokens, WORDS) of each; segment_ids: (n, K).
        """
        read = self.model.tokenise_source(list(sources))
        parts = []
        for ids, own, found in zip(read, focus, segment_ids.cpu().split([*map(len, focus)]), strict=True):
            words = source_words(self.model, ids).words
            having = self._sources.having_words(words, self._lines.numpy())  # (s,)
            lines = torch.searchsorted(self._lines, found).clamp_max(len(self._lines) - 1)
            rare = torch.tensor([rare_words(having)])
            parts.append(WordEvidence.of(own, torch.from_numpy(having)[lines], rare))
        return WordEvidence(
            missing=torch.cat([part.missing for part in parts]).half(),
            taught=torch.cat([part.taught for part in parts]).half(),
            older=torch.cat([part.older for part in parts]),
        )


def cache_segments(
    lookup: Lookup,
    segment_ids: Sequence[int],
    neighbours: int,
    progress: Counted | None = None,
) -> FitCache:
    """The tokens of these segments of the memory. progress: see `Counted`."""
    wanted = set(segment_ids)
    segments = [segment for segment in lookup.memory.segments() if segment.id in wanted]
    pairs = [(segment.source, segment.target) for segment in segments]
    return _build(lookup, pairs, [s.id for s in segments], neighbours, progress)


def cache_pairs(
    lookup: Lookup,
    pairs: Sequence[tuple[str, str]],
    neighbours: int,
    progress: Counted | None = None,
) -> FitCache:
    """The tokens of text from outside. progress: see `Counted`.

    Where its targets are in the memory all the same, those segments' entries are noted as related.
    """
    require_readable(lookup.model, pairs)
    return _build(lookup, pairs, [EXTERNAL] * len(pairs), neighbours, progress)


def cache_forced(
    lookup: Lookup, forced: Sequence[ForcedSentence], pairs: Sequence[tuple[str, str]], neighbours: int
) -> FitCache:
    """As `cache_pairs`, of text that is force-decoded already: for looking it up in several memories."""
    return _note(lookup, forced, pairs, [EXTERNAL] * len(pairs), neighbours, None)


def count_tokens(model: BaseModel, pairs: Sequence[tuple[str, str]]) -> int:
    """How many tokens a fit looks up: those of the targets."""
    return sum(map(len, model.tokenise_target([marked_pair(*pair)[1] for pair in pairs])))


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
    progress: Counted | None,
) -> FitCache:
    """Codes are replaced by marks, as they are for translations and for keys."""
    at_once = PAIRS_AT_ONCE.get(lookup.model.device.type, PAIRS_AT_ONCE["cpu"])
    marked = [marked_pair(*pair) for pair in pairs]
    windows = range(0, len(pairs), at_once)
    forced = (sentence for i in windows for sentence in lookup.model.force_decode(marked[i : i + at_once]))
    texts = [(source, target) for (source, _), (_, target) in zip(marked, pairs, strict=True)]
    if progress is None:
        return _note(lookup, forced, texts, segment_ids, neighbours, None)
    total = count_tokens(lookup.model, pairs)
    return _note(lookup, forced, texts, segment_ids, neighbours, lambda done: progress(done, total))


def _note(
    lookup: Lookup,
    forced: Iterable[ForcedSentence],
    pairs: Sequence[tuple[str, str]],
    segment_ids: Sequence[int],
    neighbours: int,
    progress: Callable[[int], None] | None,
) -> FitCache:
    """pairs: sources as they were force-decoded, and targets as they stand in memories."""
    parts: list[FitCache] = []
    done = 0
    most = SEARCH_TOKENS.get(lookup.model.device.type, SEARCH_TOKENS["cpu"])
    at_once = tokens_at_once(most, neighbours, lookup.model.dimension)
    for batch in _batches(forced, pairs, segment_ids, at_once):
        parts.append(_look_up(lookup, batch, neighbours))
        done += len(parts[-1])
        if progress is not None:
            progress(done)
    if not parts:
        raise KsterError("there is no text to fit or tune on")
    return concatenate(parts)


@dataclass(slots=True)
class _Sentence:
    """A sentence of the text that is looked up."""

    forced: ForcedSentence
    source: str
    segment_id: int  # or EXTERNAL
    target_group: int

    def __len__(self) -> int:
        return len(self.forced.tokens)


def _batches(
    forced: Iterable[ForcedSentence],
    pairs: Sequence[tuple[str, str]],
    segment_ids: Sequence[int],
    tokens_at_once: int,
) -> Iterator[list[_Sentence]]:
    """Sentences together until they have enough tokens."""
    batch: list[_Sentence] = []
    for sentence, (source, target), segment_id in zip(forced, pairs, segment_ids, strict=True):
        batch.append(_Sentence(sentence, source, segment_id, target_group(target)))
        if sum(map(len, batch)) >= tokens_at_once:
            yield batch
            batch = []
    if batch:
        yield batch


@torch.no_grad()
def _look_up(lookup: Lookup, batch: list[_Sentence], neighbours: int) -> FitCache:
    """Search for one batch of tokens and note what the base model thought."""
    model, lengths = lookup.model, [len(sentence) for sentence in batch]
    states = ForcedSentence.join([sentence.forced for sentence in batch])
    owners = torch.tensor([(s.segment_id, s.target_group) for s in batch])  # (sentences, 2)
    segment_ids, groups = owners.repeat_interleave(torch.tensor(lengths), 0).T  # (n,) each
    sources = [sentence.source for sentence in batch]
    answer = lookup.search(states.keys.to(model.device), sources, lengths, neighbours)
    hidden, normaliser = states.hidden.to(model.device), states.log_normaliser.to(model.device)
    at_values = model.output_log_probs(hidden, answer.values, normaliser)  # (n, K)
    place = torch.searchsorted(lookup.ids, answer.ids).clamp_max(len(lookup.ids) - 1)  # (n, K)
    known = lookup.ids[place] == answer.ids  # not those that were added while the cache is built
    found_in = lookup.segment_ids[place]  # (n, K)
    same_segment = found_in == segment_ids.to(model.device).unsqueeze(-1)
    same_target = lookup.target_groups[place] == groups.to(model.device).unsqueeze(-1)
    words = lookup.words(sources, [s.forced.focus for s in batch], found_in)
    return FitCache(
        queries=states.keys,
        gold=states.tokens.long(),
        segment_ids=segment_ids.contiguous(),
        ids=torch.where(known, answer.ids, -1).int().cpu(),
        distances=torch.where(known, answer.distances, torch.inf).cpu(),
        values=torch.where(known, answer.values, 0).int().cpu(),
        related=(known & (same_segment | same_target)).cpu(),
        log_probs=states.log_probs,
        log_probs_at_values=at_values.cpu(),
        mean_log_prob=states.mean_log_prob,
        max_log_prob=states.max_log_prob,
        similarity=lookup.similarity(sources, lengths, found_in),
        missing=words.missing,
        taught=words.taught,
        older=words.older,
    )
