"""What travels between a replica and the shards: plain data and numpy arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kster.cluster.term_counts import Counts
from kster.memory.group import SHIFT
from kster.memory.search.codes import CodesName
from kster.memory.sources.scoring import with_newest

Ints = npt.NDArray[np.int64]

Version = tuple[int, int]  # of a memory directory: its epoch and generation

PART_SHIFT = 32  # an id of a memory = the part's number << 32 | the id there
OWN = (1 << PART_SHIFT) - 1
MOST_PARTS = 1 << (SHIFT - PART_SHIFT)  # a group of memories leaves so many bits to each


class Part(NamedTuple):
    """A memory directory that holds some of a memory's segments."""

    number: int
    shard: str
    directory: str  # in the shard's own directory, or absolute


class Facts(NamedTuple):
    """What a translation asks of a part before anything else."""

    entries: int
    smoother: tuple[tuple[str, int, int], ...]  # name, time and size of each file of the smoother


class Sentence(NamedTuple):
    """What is to be translated: its text, and its words as the model has read them."""

    text: str
    words: Sequence[str] = ()


class Limits(NamedTuple):
    """How much a sentence's shortlist may have; a memory with no more entries is sent whole."""

    segments: int
    entries: int


class Best(NamedTuple):
    """Segments of some directories whose sources resemble a text best, in any order."""

    places: npt.NDArray[np.int32]  # (n,) which of the directories asked about
    segment_ids: Ints  # (n,)
    relative: npt.NDArray[np.float32]  # (n,) similarity
    counts: Ints  # (n,) entries
    words: Ints  # (n,) which words of the sentence their sources have (`Neighbours.words`, but for the sign)
    signatures: npt.NDArray[np.uint64]  # (n,) of their sources


class Asked(NamedTuple):
    """A memory that a shard is asked about."""

    directories: Sequence[str]  # here
    here: Counts | None = None  # how common the asker takes the texts' terms to be here …
    everywhere: Counts | None = None  # … and in all of the memory; None where it has nothing elsewhere


class Outdated(NamedTuple):
    """Instead of an answer: the asker takes something for what it is no longer."""

    counts: Sequence[Counts]  # of each memory that was asked about, here


class SegmentEntries(NamedTuple):
    """The entries of some segments of a directory, one segment after the other."""

    segment_ids: Ints  # (s,) ascending
    firsts: Ints  # (s + 1,) where each segment's entries begin in the following
    keys: npt.NDArray[np.float16]  # (e, d)
    values: npt.NDArray[np.int32]  # (e,)
    ids: Ints  # (e,) of entries


class Found(NamedTuple):
    """What a shard has for some sentences, and the entries that they will probably be given of it."""

    best: Sequence[Best]  # for each sentence
    entries: Sequence[
        SegmentEntries
    ]  # for each directory, in the order of their bases: what was not sent before
    everything: bool  # whether the memories are so small that they are sent whole
    versions: Sequence[Version]  # of each directory, in the order asked about
    codes: Sequence[tuple[int, CodesName]]  # likewise: its rows, and which codes suit it


class Prepared(NamedTuple):
    """The keys of a pair that is to be added."""

    source: str
    target: str
    keys: npt.NDArray[np.float16]  # (n, d)
    values: npt.NDArray[np.int32]  # (n,)


class Changed(NamedTuple):
    """A call that changes a memory: a method of `kster.memory.Memory` and what it is given."""

    request: str  # an id that the caller makes up; a request that comes twice is carried out once
    directory: str
    method: str
    arguments: Sequence[Any] = ()
    named: tuple[tuple[str, Any], ...] = ()
    prepared: Sequence[Prepared] = ()


def share_of(limits: Limits, shards: int) -> Limits:
    """What each of so many shards sends at once of a shortlist.

    Of equally large parts each has about as many of the best segments, with the spread of a binomial
    distribution; twice that beyond the mean is enough for 98 in a hundred.
    """
    own = limits.segments / shards
    segments = own + 2 * (own * (1 - 1 / shards)) ** 0.5
    return Limits(round(segments), round(limits.entries / limits.segments * segments))


class Chosen(NamedTuple):
    """The segments that a text is translated with, of all parts."""

    places: npt.NDArray[np.int32]  # (m,) which part, ascending
    segment_ids: Ints  # (m,) ascending within a part
    relative: npt.NDArray[np.float32]  # (m,)
    words: Ints  # (m,)


def best_of(found: Sequence[Best], bases: Sequence[Ints], limits: Limits) -> Chosen:
    """The best of what several shards found for a text, of equally good ones the newest.

    Which of those with the same source is the newest is known only here: a memory may have them in two parts.

    bases: for each shard (directories,) what the ids of each of its directories begin with; their order is
    that of the parts.
    """
    base = np.concatenate([known[one.places] for known, one in zip(bases, found, strict=True)])
    own, relative, counts, words, signatures = (
        np.concatenate([one[column] for one in found]) for column in range(1, 6)
    )
    order = np.lexsort((-(base | own), -relative))[: limits.segments]
    fitting = np.cumsum(counts[order]) <= limits.entries
    fitting[:1] = True  # a segment longer than that is better than none
    best = order[fitting]
    best = best[np.argsort((base | own)[best])]
    parts = np.unique(np.concatenate(bases))
    places = np.searchsorted(parts, base[best]).astype(np.int32)
    firsts = np.unique(base[best] >> SHIFT, return_index=True)[1]  # where each memory's segments begin
    having = [with_newest(words[here], signatures[here]) for here in np.split(best, firsts[1:])]
    return Chosen(places, own[best], relative[best], np.concatenate(having))


def wanted_of(chosen: Sequence[Chosen], parts: int) -> list[Ints]:
    """For each part the segments that one of the texts was given, ascending: each is sent once a batch."""
    places = np.concatenate([one.places for one in chosen]) if chosen else np.zeros(0, np.int32)
    ids = np.concatenate([one.segment_ids for one in chosen]) if chosen else np.zeros(0, np.int64)
    return [np.unique(ids[places == place]) for place in range(parts)]
