"""Shortlists from shards: who has the best segments for each sentence, and the keys of these, once a batch.

Shards must agree on how common each term is before they can say which segments are the best. A replica
remembers that, and as a rule asks each shard once. It asks first where a text has a term that it has not met,
again where a shard says that something has changed, and for more entries where one shard has more of the best
segments than its share.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from kster.cluster.calls import SHARD, ask_each
from kster.cluster.shard import EVERYTHING
from kster.cluster.term_counts import Counts, Place, TermCounts, total_of
from kster.cluster.wire import (
    PART_SHIFT,
    Asked,
    Chosen,
    Found,
    Ints,
    Limits,
    Outdated,
    Part,
    SegmentEntries,
    Sentence,
    Version,
    best_of,
    share_of,
    wanted_of,
)
from kster.memory import Segment
from kster.memory.search.codes import Projection
from kster.memory.search.shortlist_retriever import (
    Gathered,
    Shortlist,
    ShortlistRetriever,
    retriever_of,
)
from kster.memory.sources.scoring import rare_words


@dataclass(frozen=True, slots=True)
class Placed:
    """A memory to be searched: its parts, and what the ids of its entries begin with."""

    parts: Sequence[Part]
    base: int = 0

    def on(self, shard: str) -> list[Part]:
        return [part for part in self.parts if part.shard == shard]

    def base_of(self, part: Part) -> int:
        return self.base | part.number << PART_SHIFT


TERMS = TermCounts()  # of this process
SAMPLE = 1_024  # keys that codes are chosen by, or nearly twice as many
ATTEMPTS = 3  # while others change the memories all the time; the last one takes what is known


class _Search:
    """One batch. lost: as in `ask_each`."""

    def __init__(self, memories: Sequence[Placed], texts: Sequence[str], lost: list[str] | None) -> None:
        self.memories, self.texts, self.lost = memories, texts, lost
        self.shards = sorted({part.shard for memory in memories for part in memory.parts})

    def shortlists(
        self, sentences: Sequence[Sentence], limits: Limits
    ) -> tuple[list[Chosen], list[tuple[int, SegmentEntries]], dict[str, list[Version]]]:
        """For each sentence its segments; for each part, in the order of their bases, base and entries; and
        for each shard the versions of its directories."""
        bases = {shard: self._bases(shard) for shard in self.shards}
        share = share_of(limits, len(self.shards))
        found: dict[str, Found] = self.agreed(
            lambda shard, asked, entries: (
                *("best_with_entries", asked, sentences, limits, share, bases[shard], entries),
            )
        )
        if not found:
            return [_nothing() for _ in sentences], [], {}
        answered = [bases[shard] for shard in found]
        everything = all(one.everything for one in found.values())
        chosen = [
            best_of(one, answered, EVERYTHING if everything else limits)
            for one in zip(*(one.best for one in found.values()), strict=True)
        ]
        sent = {
            base: entries
            for shard, one in found.items()
            for base, entries in zip(np.sort(bases[shard]).tolist(), one.entries, strict=True)
        }
        versions = {shard: list(one.versions) for shard, one in found.items()}
        return chosen, sorted(self._completed(chosen, sent).items()), versions

    def are_current(self, versions: dict[str, list[Version]]) -> bool:
        questions = {
            shard: ("versions", [directory for _, own in self._here(shard) for directory in own])
            for shard in self.shards
        }
        return versions == self.ask(questions)

    def _completed(
        self, chosen: Sequence[Chosen], sent: dict[int, SegmentEntries]
    ) -> dict[int, SegmentEntries]:
        """What was sent, and the entries that are missing of what was chosen."""
        wanted = dict(zip(sorted(sent), wanted_of(chosen, len(sent)), strict=True))
        places = {memory.base_of(part): part for memory in self.memories for part in memory.parts}
        missing: dict[str, list[int]] = {}
        for base, segments in wanted.items():
            wanted[base] = np.setdiff1d(segments, sent[base].segment_ids, assume_unique=True)
            if len(wanted[base]):
                missing.setdefault(places[base].shard, []).append(base)
        answers = self.ask(
            {
                shard: ("entries", [(places[base].directory, wanted[base]) for base in own])
                for shard, own in missing.items()
            }
        )
        for shard, answer in answers.items():
            for base, more in zip(missing[shard], answer, strict=True):
                sent[base] = _joined(sent[base], more)
        return sent

    def agreed(self, question: Callable[[str, list[Asked], int | None], tuple[Any, ...]]) -> dict[str, Any]:
        """The answers of shards that agree on how common the texts' terms are.

        question: for a shard, the memories that it has and how many entries these have altogether.
        """
        for attempt in range(ATTEMPTS):
            here = self._counts() if len(self.shards) > 1 else {}
            everywhere = {
                number: total_of([here[place] for place in places if place in here])
                for number, places in self._places().items()
                if any(place in here for place in places)
            }
            entries = sum(one.entries for one in everywhere.values()) if everywhere else None
            questions = {}
            for shard in self.shards if not everywhere else {shard for shard, _ in here}:
                asked = [
                    Asked(
                        directories,
                        here.get((shard, directories)) if attempt < ATTEMPTS - 1 else None,
                        everywhere.get(number),
                    )
                    for number, directories in self._here(shard)
                ]
                questions[shard] = question(shard, asked, entries)
            answers = self.ask(questions)
            outdated = {s: answer for s, answer in answers.items() if isinstance(answer, Outdated)}
            if not outdated:
                break
            for shard, answer in outdated.items():
                for (_, directories), counts in zip(self._here(shard), answer.counts, strict=True):
                    TERMS.learn((shard, directories), self.texts, counts)
        return dict(sorted(answers.items()))

    def _counts(self) -> dict[Place, Counts]:
        """Of each memory on each shard, as it is remembered, or else as the shard says now."""
        places = [place for own in self._places().values() for place in own]
        known = {place: TERMS.of(place, self.texts) for place in places}
        unknown = [place for place in places if known[place] is None]
        by_shard = {shard: [place for place in unknown if place[0] == shard] for shard, _ in unknown}
        answers = self.ask(
            {shard: ("counts", [own for _, own in places], self.texts) for shard, places in by_shard.items()}
        )
        for shard, answer in answers.items():
            for place, counts in zip(by_shard[shard], answer, strict=True):
                TERMS.learn(place, self.texts, counts)
                known[place] = counts
        return {place: counts for place, counts in known.items() if counts is not None}

    def _places(self) -> dict[int, list[Place]]:
        """Where each memory lies, by its number."""
        found: dict[int, list[Place]] = {}
        for shard in self.shards:
            for number, directories in self._here(shard):
                found.setdefault(number, []).append((shard, directories))
        return found

    def _here(self, shard: str) -> list[tuple[int, tuple[str, ...]]]:
        """The memories that have anything on a shard: their numbers, and their directories there."""
        return [
            (number, tuple(part.directory for part in own))
            for number, memory in enumerate(self.memories)
            if (own := memory.on(shard))
        ]

    def _bases(self, shard: str) -> Ints:
        """(directories,) of this shard, in the order they are asked about."""
        own = [memory.base_of(part) for memory in self.memories for part in memory.on(shard)]
        return np.array(own, np.int64)

    def ask(self, questions: dict[str, tuple[Any, ...]]) -> dict[str, Any]:
        """Shards by their names, as the catalogue has them."""
        named = {SHARD + shard: question for shard, question in questions.items()}
        answers = ask_each(named, lost=self.lost)
        return {name.removeprefix(SHARD): answer for name, answer in answers.items()}


def retriever(
    memories: Sequence[Placed],
    sentences: Sequence[Sentence],
    limits: Limits,
    dimension: int,
    device: torch.device,
    lost: list[str] | None = None,
) -> ShortlistRetriever:
    """What searches, for each sentence, the entries of its best segments in all memories.

    lost: takes the names of shards that do not answer, which are then left out. Raises Unreachable without.
    """
    if not sentences or not any(memory.parts for memory in memories):
        return _retriever([_nothing() for _ in sentences], [], dimension, device)
    search = _Search(memories, [sentence.text for sentence in sentences], lost)
    key = repr((memories, sentences, limits, device))
    if lost is None and (last := _Last.of(key)) is not None and search.are_current(last.versions):
        return last.answer
    chosen, entries, versions = search.shortlists(sentences, limits)
    answer = _retriever(chosen, entries, dimension, device)
    if lost is None and sum(len(own.ids) for _, own in entries) <= 2 * limits.entries:
        _Last.kept = _Last(key, versions, answer)
    return answer


@dataclass(frozen=True, slots=True)
class _Last:
    """What was found for the last few sentences: some are searched for twice, with other rules."""

    key: str
    versions: dict[str, list[Version]]
    answer: ShortlistRetriever

    kept: ClassVar[_Last | None] = None

    @classmethod
    def of(cls, key: str) -> _Last | None:
        last = cls.kept
        return last if last is not None and last.key == key else None


def most_similar(
    parts: Sequence[Part], texts: Sequence[str], m: int, lost: list[str] | None = None
) -> list[list[tuple[Part, Segment]]]:
    """For each text the m segments of a memory's parts that resemble it best. lost: as above."""
    search = _Search([Placed(parts)], texts, lost)
    own = {shard: [part for part in parts if part.shard == shard] for shard in search.shards}
    answers = search.agreed(lambda _, asked, __: ("similar", asked[0], texts, m))
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


def _retriever(
    chosen: Sequence[Chosen],
    parts: Sequence[tuple[int, SegmentEntries]],
    dimension: int,
    device: torch.device,
) -> ShortlistRetriever:
    """Sentences with the same segments share what is made of them."""
    nothing = np.zeros((0, dimension), np.float16)
    keys = torch.from_numpy(np.concatenate([nothing, *(own.keys for _, own in parts)]))
    projection = Projection.of(keys[:: 1 + len(keys) // SAMPLE])
    codes, norms = projection.codes(keys)
    made: dict[bytes, Shortlist] = {}
    answer = []
    for one in chosen:
        same = one.places.tobytes() + one.segment_ids.tobytes()
        own = _shortlist(one, parts, codes, norms, made.get(same))
        made.setdefault(same, own)
        answer.append(own)
    return retriever_of(answer, Gathered(keys), projection, device)


def _shortlist(
    chosen: Chosen,
    parts: Sequence[tuple[int, SegmentEntries]],
    codes: Tensor,
    norms: Tensor,
    same: Shortlist | None = None,
) -> Shortlist:
    """codes, norms: of all entries; same: that of another sentence with the same segments."""
    rows, values = [np.zeros(0, np.int64)], [np.zeros(0, np.int32)]
    ids, similarity, words = [np.zeros(0, np.int64)], [np.zeros(0, np.float32)], [np.zeros(0, np.int64)]
    first = 0  # row of the part
    for place, (base, entries) in enumerate(parts):
        here = np.flatnonzero(chosen.places == place)
        here = here[np.isin(chosen.segment_ids[here], entries.segment_ids)]  # others were just removed
        lines = np.searchsorted(entries.segment_ids, chosen.segment_ids[here])
        counts = np.diff(entries.firsts)[lines]
        similarity.append(np.repeat(chosen.relative[here], counts))
        words.append(np.repeat(chosen.words[here], counts))
        if same is None and len(here):
            before = np.cumsum(counts) - counts
            own = np.repeat(entries.firsts[lines] - before, counts) + np.arange(counts.sum())
            rows.append(own + first)
            values.append(entries.values[own])
            ids.append(entries.ids[own] | base)
        first += len(entries.ids)
    own_similarity = torch.from_numpy(np.concatenate(similarity))
    own_words = torch.from_numpy(np.concatenate(words))
    rare = rare_words(chosen.words)
    if same is not None:
        return replace(same, similarity=own_similarity, words=own_words, rare=rare)
    of_all = torch.from_numpy(np.concatenate(rows))
    return Shortlist(
        rows=of_all,
        codes=codes[of_all],
        norms=norms[of_all],
        values=torch.from_numpy(np.concatenate(values)),
        ids=torch.from_numpy(np.concatenate(ids)),
        similarity=own_similarity,
        words=own_words,
        rare=rare,
    )


def _joined(one: SegmentEntries, other: SegmentEntries) -> SegmentEntries:
    """The entries of both; no segment is in both."""
    segments = np.concatenate([one.segment_ids, other.segment_ids])
    counts = np.concatenate([np.diff(one.firsts), np.diff(other.firsts)])
    before = np.cumsum(counts) - counts
    order = np.argsort(segments)
    counts = counts[order]
    firsts = np.concatenate([[0], np.cumsum(counts)])
    rows = np.repeat(before[order] - firsts[:-1], counts) + np.arange(firsts[-1])
    keys, values, ids = (
        np.concatenate([getattr(one, name), getattr(other, name)])[rows] for name in ("keys", "values", "ids")
    )
    return SegmentEntries(segments[order], firsts, keys, values, ids)


def _nothing() -> Chosen:
    none = np.zeros(0, np.int64)
    return Chosen(np.zeros(0, np.int32), none, np.zeros(0, np.float32), none)
