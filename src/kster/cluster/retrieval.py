"""Shortlists from shards: who has the best segments for each sentence, and the keys of these, once a batch.

A batch costs one call where all parts lie on one shard, and three where they lie on several: all of them must
agree on how common each term is, then on which segments are the best.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from kster.cluster.calls import SHARD, ask_each
from kster.cluster.shard import EVERYTHING, sum_of
from kster.cluster.wire import (
    PART_SHIFT,
    Chosen,
    Ints,
    Limits,
    Part,
    SegmentEntries,
    Sentence,
    best_of,
    wanted_of,
)
from kster.memory import Segment
from kster.memory.search.shortlist_retriever import Shortlist
from kster.memory.sources.scoring import Frequencies, rare_words


@dataclass(frozen=True, slots=True)
class Placed:
    """A memory to be searched: its parts, and what the ids of its entries begin with."""

    parts: Sequence[Part]
    base: int = 0

    def on(self, shard: str) -> list[Part]:
        return [part for part in self.parts if part.shard == shard]

    def base_of(self, part: Part) -> int:
        return self.base | part.number << PART_SHIFT


class _Search:
    """One batch. lost: as in `ask_each`."""

    def __init__(
        self,
        memories: Sequence[Placed],
        sentences: Sequence[Sentence],
        limits: Limits,
        lost: list[str] | None,
    ) -> None:
        self.memories, self.sentences, self.limits, self.lost = memories, sentences, limits, lost
        self.shards = sorted({part.shard for memory in memories for part in memory.parts})

    def run(self) -> tuple[list[Chosen], list[tuple[int, SegmentEntries]]]:
        """For each sentence its segments; for each part, in the order of their bases, base and entries."""
        bases = {shard: self._bases(shard) for shard in self.shards}
        if len(self.shards) == 1:
            return self._run_on(self.shards[0], bases[self.shards[0]])
        entries, known = self.frequencies()
        everything = entries <= self.limits.entries
        most = None if everything else self.limits.segments
        found = self.ask(
            {s: ("best", self._directories(s, known), self.sentences, most) for s in self.shards}
        )
        if not found:
            return [_nothing() for _ in self.sentences], []
        answered = {shard: bases[shard] for shard in found}
        chosen = [
            best_of(one, list(answered.values()), EVERYTHING if everything else self.limits)
            for one in zip(*found.values(), strict=True)
        ]
        return chosen, self._entries(chosen, answered)

    def _run_on(self, shard: str, bases: Ints) -> tuple[list[Chosen], list[tuple[int, SegmentEntries]]]:
        question = ("best_with_entries", self._directories(shard, {}), self.sentences, self.limits, bases)
        answer = self.ask({shard: question})
        if shard not in answer:
            return [_nothing() for _ in self.sentences], []
        chosen, entries = answer[shard]
        return chosen, list(zip(np.sort(bases).tolist(), entries, strict=True))

    def _directories(
        self, shard: str, known: dict[int, list[Frequencies]]
    ) -> list[tuple[list[str], list[Frequencies] | None]]:
        """Of each memory that has any on this shard; known: by the memory's place."""
        return [
            ([part.directory for part in here], known.get(number))
            for number, memory in enumerate(self.memories)
            if (here := memory.on(shard))
        ]

    def frequencies(self) -> tuple[int, dict[int, list[Frequencies]]]:
        """All entries, and for each memory's place how common each text's terms are in all of its parts."""
        texts = [sentence.text for sentence in self.sentences]
        asked = {s: [n for n, memory in enumerate(self.memories) if memory.on(s)] for s in self.shards}
        answers = self.ask(
            {
                shard: (
                    "frequencies",
                    [[part.directory for part in self.memories[n].on(shard)] for n in here],
                    texts,
                )
                for shard, here in asked.items()
            }
        )
        found: dict[int, list[list[Frequencies]]] = {}
        for shard, (_, answer) in answers.items():
            for number, frequencies in zip(asked[shard], answer, strict=True):
                found.setdefault(number, []).append(frequencies)
        known = {n: [sum_of(each) for each in zip(*lists, strict=True)] for n, lists in found.items()}
        return sum(entries for entries, _ in answers.values()), known

    def _entries(self, chosen: Sequence[Chosen], bases: dict[str, Ints]) -> list[tuple[int, SegmentEntries]]:
        order = np.unique(np.concatenate(list(bases.values())))  # as `best_of` counts the parts
        wanted = dict(zip(order.tolist(), wanted_of(chosen, len(order)), strict=True))
        directories = {m.base_of(part): part.directory for m in self.memories for part in m.parts}
        found: dict[int, SegmentEntries] = {}
        answers = self.ask(
            {
                shard: ("entries", [(directories[base], wanted[base]) for base in own.tolist()])
                for shard, own in bases.items()
                if any(len(wanted[base]) for base in own.tolist())
            }
        )
        for shard, answer in answers.items():
            found |= zip(bases[shard].tolist(), answer, strict=True)
        return [(base, found.get(base, _no_entries())) for base in order.tolist()]

    def _bases(self, shard: str) -> Ints:
        """(directories,) of this shard, in the order they are asked about."""
        own = [memory.base_of(part) for memory in self.memories for part in memory.on(shard)]
        return np.array(own, np.int64)

    def ask(self, questions: dict[str, tuple[Any, ...]]) -> dict[str, Any]:
        """Shards by their names, as the catalogue has them."""
        named = {SHARD + shard: question for shard, question in questions.items()}
        answers = ask_each(named, lost=self.lost)
        return {name.removeprefix(SHARD): answer for name, answer in answers.items()}


def shortlists(
    memories: Sequence[Placed],
    sentences: Sequence[Sentence],
    limits: Limits,
    dimension: int,
    lost: list[str] | None = None,
) -> list[Shortlist]:
    """For each sentence the entries of its best segments in all memories.

    lost: takes the names of shards that do not answer, which are then left out. Raises Unreachable without.
    """
    if not sentences or not any(memory.parts for memory in memories):
        return [_shortlist(_nothing(), [], dimension) for _ in sentences]
    chosen, entries = _Search(memories, sentences, limits, lost).run()
    made: dict[bytes, Shortlist] = {}  # sentences with the same segments share their tensors
    answer = []
    for one in chosen:
        same = one.places.tobytes() + one.segment_ids.tobytes()
        own = _shortlist(one, entries, dimension, made.get(same))
        made.setdefault(same, own)
        answer.append(own)
    return answer


def most_similar(
    parts: Sequence[Part], texts: Sequence[str], m: int, lost: list[str] | None = None
) -> list[list[tuple[Part, Segment]]]:
    """For each text the m segments of a memory's parts that resemble it best. lost: as above."""
    search = _Search([Placed(parts)], [Sentence(text) for text in texts], EVERYTHING, lost)
    known = search.frequencies()[1].get(0) if len(search.shards) > 1 else None
    own = {shard: [part for part in parts if part.shard == shard] for shard in search.shards}
    answers = search.ask(
        {
            shard: ("similar", [part.directory for part in here], texts, m, known)
            for shard, here in own.items()
        }
    )
    found: list[list[tuple[Part, Segment]]] = []
    for number in range(len(texts)):
        each = [
            (relative, own[shard][place], segment)
            for shard, answer in answers.items()
            for relative, place, segment in answer[number]
        ]
        each.sort(key=lambda one: (one[0], one[1].number, one[2].id), reverse=True)
        found.append([(part, segment) for _, part, segment in each[:m]])
    return found


def _shortlist(
    chosen: Chosen, parts: Sequence[tuple[int, SegmentEntries]], dimension: int, same: Shortlist | None = None
) -> Shortlist:
    """same: that of another sentence with the same segments."""
    keys, values = [np.zeros((0, dimension), np.float16)], [np.zeros(0, np.int32)]
    ids, similarity, words = [np.zeros(0, np.int64)], [np.zeros(0, np.float32)], [np.zeros(0, np.int64)]
    for place, (base, entries) in enumerate(parts):
        here = np.flatnonzero(chosen.places == place)
        here = here[np.isin(chosen.segment_ids[here], entries.segment_ids)]  # others were just removed
        lines = np.searchsorted(entries.segment_ids, chosen.segment_ids[here])
        counts = np.diff(entries.firsts)[lines]
        similarity.append(np.repeat(chosen.relative[here], counts))
        words.append(np.repeat(chosen.words[here], counts))
        if same is None and len(here):
            before = np.cumsum(counts) - counts
            rows = np.repeat(entries.firsts[lines] - before, counts) + np.arange(counts.sum())
            keys.append(entries.keys[rows])
            values.append(entries.values[rows])
            ids.append(entries.ids[rows] | base)
    own_similarity = torch.from_numpy(np.concatenate(similarity))
    own_words = torch.from_numpy(np.concatenate(words))
    rare = rare_words(chosen.words)
    if same is not None:
        return replace(same, similarity=own_similarity, words=own_words, rare=rare)
    return Shortlist(
        keys=torch.from_numpy(np.concatenate(keys)),
        values=torch.from_numpy(np.concatenate(values)),
        ids=torch.from_numpy(np.concatenate(ids)),
        similarity=own_similarity,
        words=own_words,
        rare=rare,
    )


def _nothing() -> Chosen:
    none = np.zeros(0, np.int64)
    return Chosen(np.zeros(0, np.int32), none, np.zeros(0, np.float32), none)


def _no_entries() -> SegmentEntries:
    none = np.zeros(0, np.int64)
    return SegmentEntries(
        none, np.zeros(1, np.int64), np.zeros((0, 0), np.float16), np.zeros(0, np.int32), none
    )
