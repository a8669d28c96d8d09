"""Shortlists from shards: who has the best segments for each sentence, and the keys of these, once a batch.

Shards must agree on how common each term is before they can say which segments are the best. A replica
remembers that, and as a rule asks each shard once. It asks again where a shard says that it is otherwise, and
for more entries where one shard has more of the best segments than its share.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from kster.cluster.calls import SHARD, ask, ask_each
from kster.cluster.kept_entries import CodedBy, Directory, KeptEntries, kept_entries
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
ATTEMPTS = 3  # while others change the memories all the time; the last one takes what is known


@dataclass(frozen=True, slots=True)
class _Found:
    """What shards have for a batch."""

    chosen: list[Chosen]  # for each sentence
    parts: list[tuple[int, Directory]]  # of those that answered: base and directory, in the order of bases
    coded_by: CodedBy  # the largest of them
    versions: dict[str, list[Version]]  # of each shard's directories


class _Search:
    """One batch. lost: as in `ask_each`."""

    def __init__(self, memories: Sequence[Placed], texts: Sequence[str], lost: list[str] | None) -> None:
        self.memories, self.texts, self.lost = memories, texts, lost
        self.shards = sorted({part.shard for memory in memories for part in memory.parts})

    def found(self, sentences: Sequence[Sentence], limits: Limits, kept: KeptEntries) -> _Found | None:
        """What shards say; `kept` then has the entries of it. None where no shard answers."""
        bases = {shard: self._bases(shard) for shard in self.shards}
        share = share_of(limits, len(self.shards))
        directories = {
            memory.base_of(part): (part.shard, part.directory)
            for memory in self.memories
            for part in memory.parts
        }

        def keep(answers: dict[str, Found]) -> None:
            for shard, one in answers.items():
                for base, entries in zip(np.sort(bases[shard]).tolist(), one.entries, strict=True):
                    kept.add(directories[base], entries)

        found: dict[str, Found] = self.agreed(
            lambda shard, asked, entries: (
                *("best_with_entries", asked, sentences, limits, share, bases[shard], entries, kept.holder),
            ),
            keep,
        )
        if not found:
            return None
        answered = [bases[shard] for shard in found]
        everything = all(one.everything for one in found.values())
        chosen = [
            best_of(one, answered, EVERYTHING if everything else limits)
            for one in zip(*(one.best for one in found.values()), strict=True)
        ]
        parts = [(base, directories[base]) for base in np.sort(np.concatenate(answered)).tolist()]
        self._complete(chosen, [directory for _, directory in parts], kept)
        by_base = {
            base: codes
            for shard, one in found.items()
            for base, codes in zip(bases[shard].tolist(), one.codes, strict=True)
        }
        largest = max((base for base in directories if base in by_base), key=lambda base: by_base[base][0])
        coded_by = directories[largest], by_base[largest][1]
        return _Found(chosen, parts, coded_by, {shard: list(one.versions) for shard, one in found.items()})

    def are_current(self, versions: dict[str, list[Version]]) -> bool:
        questions = {
            shard: ("versions", [directory for _, own in self._here(shard) for directory in own])
            for shard in self.shards
        }
        return versions == self.ask(questions)

    def _complete(
        self, chosen: Sequence[Chosen], directories: Sequence[Directory], kept: KeptEntries
    ) -> None:
        """Ask for the entries that are missing of what was chosen."""
        wanted: dict[str, list[tuple[str, Ints]]] = {}
        for directory, segments in zip(directories, wanted_of(chosen, len(directories)), strict=True):
            if len(missing := kept.missing(directory, segments)):
                wanted.setdefault(directory[0], []).append((directory[1], missing))
        answers = self.ask({shard: ("entries", own) for shard, own in wanted.items()})
        for shard, answer in answers.items():
            for (name, _), entries in zip(wanted[shard], answer, strict=True):
                kept.add((shard, name), entries)

    def agreed(
        self,
        question: Callable[[str, list[Asked], int | None], tuple[Any, ...]],
        noted: Callable[[dict[str, Any]], None] = lambda _: None,
    ) -> dict[str, Any]:
        """The answers of shards that agree on how common the texts' terms are.

        question: for a shard, the memories that it has and how many entries these have altogether.
        noted: is told what was answered, even if it must be asked again because of another shard.
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
            noted({s: answer for s, answer in answers.items() if s not in outdated})
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
        return _nothing(len(sentences), dimension, device)
    search = _Search(memories, [sentence.text for sentence in sentences], lost)
    key = repr((memories, sentences, limits, device))
    last = _last.get(dimension)
    if lost is None and last is not None and last.key == key and search.are_current(last.versions):
        return last.answer
    kept = kept_entries(dimension)
    found = search.found(sentences, limits, kept)
    if found is None:
        return _nothing(len(sentences), dimension, device)
    (shard, directory), _ = found.coded_by
    projection = kept.projection(found.coded_by) or ask(SHARD + shard, "projection", directory)
    answer = _retriever(found, kept, projection, device)
    if lost is None and len(answer.entries) <= 2 * limits.entries:
        _last[dimension] = _Last(key, found.versions, answer)
    return answer


@dataclass(frozen=True, slots=True)
class _Last:
    """What was found for the last few sentences: some are searched for twice, with other rules."""

    key: str
    versions: dict[str, list[Version]]
    answer: ShortlistRetriever


# Not an attribute of the class: Python 3.11 may find an old one that is just being freed, and crash.
_last: dict[int, _Last] = {}  # by the length of keys


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
    found: _Found, kept: KeptEntries, projection: Projection, device: torch.device
) -> ShortlistRetriever:
    """Sentences with the same segments share what is made of them."""
    made: dict[bytes, Shortlist] = {}
    answer = []
    for one in found.chosen:
        same = one.places.tobytes() + one.segment_ids.tobytes()
        own = _shortlist(one, found, kept, projection, made.get(same))
        made.setdefault(same, own)
        answer.append(own)
    return retriever_of(answer, kept.keys(), projection, device)


def _shortlist(
    chosen: Chosen, found: _Found, kept: KeptEntries, projection: Projection, same: Shortlist | None
) -> Shortlist:
    """same: that of another sentence with the same segments."""
    parts = found.parts
    ends = np.searchsorted(chosen.places, np.arange(len(parts)), side="right")
    of_parts = np.split(chosen.segment_ids, ends[:-1])
    # A segment that is not here was just removed.
    spans = [kept.rows_of(directory, own) for (_, directory), own in zip(parts, of_parts, strict=True)]
    counts = np.concatenate([own for _, own in spans])
    similarity = torch.from_numpy(np.repeat(chosen.relative, counts))
    words, rare = torch.from_numpy(np.repeat(chosen.words, counts)), rare_words(chosen.words)
    if same is not None:
        return replace(same, similarity=similarity, words=words, rare=rare)
    rows = np.concatenate([own for own, _ in spans])
    values, ids = kept.values_and_ids(rows)
    bases = np.repeat([base for base, _ in parts], [len(own) for own, _ in spans])
    codes, norms = kept.codes(found.coded_by, projection, rows)
    return Shortlist(
        rows=torch.from_numpy(rows),
        codes=torch.from_numpy(codes),
        norms=torch.from_numpy(norms),
        values=torch.from_numpy(values),
        ids=torch.from_numpy(ids | bases),
        similarity=similarity,
        words=words,
        rare=rare,
    )


def _nothing(sentences: int, dimension: int, device: torch.device) -> ShortlistRetriever:
    none = torch.zeros(0, dtype=torch.int64)
    keys = torch.zeros(0, dimension, dtype=torch.float16)
    projection = Projection.of(keys)
    no_codes, no_norms = projection.codes(keys)
    empty = Shortlist(none, no_codes, no_norms, none.int(), none, none.float(), none)
    return retriever_of([empty] * sentences, Gathered(keys), projection, device)
