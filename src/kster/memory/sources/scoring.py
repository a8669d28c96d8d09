"""BM25 over the parts of an index as if they were one: which sources resemble a text best, and how much.

Terms count once in a source (in a sentence they hardly ever occur twice for a reason), so that BM25 is

    BM25(q, d) = Σ_{t ∈ q ∩ d} idf(t) · (k₁ + 1) / (1 + k₁ (1 − b + b |d| / average |d|))

and its second factor depends on the source alone: idf is summed over the terms, and only what has any is
multiplied. Sources are found by the rarer terms of a text (by all of them while the collection is small), and
the common ones are looked up only for those that can still be among the best: what shares nothing with a
sentence but "of the" is no example for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

from kster.memory.sources.postings import Ints, Postings
from kster.memory.sources.words import forms_of, term_number, terms_of

K1, B = 1.2, 0.75  # the usual ones
FEW = 2_000  # sources that are looked for in a list one by one; more would take longer than to mark all of it
WALKED = 1 << 15  # occurrences of a text's rarest terms that are walked through to find sources

UP_TO_DATE = np.int64((1 << 63) - 1)  # all bits of a mask of words but its sign
RARE = 5  # sources at most that have a rare word
REMEMBERED = 64  # texts whose best sources are remembered: those of two batches, 256 KiB

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class Similar:
    """The segments whose sources resemble a text best, best first, of equal ones the newest first."""

    segment_ids: Ints  # (m,)
    scores: Floats  # (m,) BM25
    relative: Floats  # (m,) BM25 divided by that of the text with itself, at most 1

    def __len__(self) -> int:
        return len(self.segment_ids)


class Part:
    """Some of the sources, and where they are in a snapshot."""

    def __init__(self, postings: Postings, lines: Ints) -> None:
        """lines: (n,) of the snapshot's segments, -1 for a source that is not there (any more)."""
        self.postings = postings
        self.lines = lines
        self._bitmaps: dict[int, npt.NDArray[np.uint8]] = {}  # of common terms, made when they are met

    def has(self, place: int, sources: Ints) -> npt.NDArray[np.bool_]:
        """(c,) whether each of these sources has the term at this place."""
        having = self.postings.having(place)
        if len(having) < len(self.postings) // 32:  # a bitmap would be longer
            if len(sources) > FEW:
                flags = np.zeros(len(self.postings), np.bool_)
                flags[having] = True
                return flags[sources]
            nearest = np.minimum(np.searchsorted(having, sources.astype(np.int32)), len(having) - 1)
            return having[nearest] == sources
        bitmap = self._bitmaps.get(place)
        if bitmap is None:
            flags = np.zeros(len(self.postings), np.bool_)
            flags[having] = True
            bitmap = self._bitmaps[place] = np.packbits(flags, bitorder="little")
        return (bitmap[sources >> 3] >> (sources & 7).astype(np.uint8) & 1).astype(np.bool_)


@dataclass(frozen=True, slots=True, eq=False)
class Frequencies:
    """How common a text's terms are; those of several collections add up to those of all as one."""

    sources: int
    terms: int  # of all sources together
    having: npt.NDArray[np.float64]  # (q,) how many sources have each of the text's terms

    def __add__(self, other: Frequencies) -> Frequencies:
        return Frequencies(self.sources + other.sources, self.terms + other.terms, self.having + other.having)

    def same_as(self, other: Frequencies) -> bool:
        return (self.sources, self.terms) == (other.sources, other.terms) and bool(
            np.array_equal(self.having, other.having)
        )

    @property
    def average(self) -> float:
        """Terms of a source."""
        return max(1.0, self.terms / max(1, self.sources))


@dataclass(frozen=True, slots=True, eq=False)
class Query:
    """A text as a collection of sources sees it; terms from the rarest on."""

    places: tuple[Ints, ...]  # for each part (q,) the terms' places there
    weights: Floats  # (q,) idf
    having: npt.NDArray[np.float64]  # (q,) how many sources have each term
    average: float  # terms of a source
    own_score: float  # BM25 of the text with itself

    def walked(self, m: int) -> int:
        """How many terms' sources are walked through to find the m best; more would take long.

        It depends on all sources there are, so that parts of a collection find what it finds.
        """
        before = np.cumsum(self.having) - self.having  # (q,)
        return int(np.count_nonzero((before + self.having <= WALKED) | (before < 2 * m)))


class Collection:
    """All sources of one snapshot."""

    def __init__(self, parts: Sequence[Part], live: npt.NDArray[np.bool_]) -> None:
        """live: (s,) whether each line of the snapshot is a segment that has not been removed."""
        self.parts = tuple(parts)
        self._live = np.append(live, False)  # line -1
        self._remembered: dict[tuple[str, int], tuple[int, Similar]] = {}  # by text and terms walked through
        self._gone = [np.flatnonzero(~self._live[part.lines]) for part in parts]  # places of sources

    def frequencies(self, text: str) -> Frequencies:
        terms = terms_in(text)
        return self._frequencies([part.postings.places_of(terms) for part in self.parts], terms)

    def _frequencies(self, places: Sequence[Ints], terms: npt.NDArray[np.uint64]) -> Frequencies:
        """Of live sources alone: what has been removed does not count, wherever it is still listed."""
        counts, (sources, all_terms) = np.zeros(len(terms)), self._size
        for part, gone, own in zip(self.parts, self._gone, places, strict=True):
            counts += part.postings.counts(own)
            for i in np.flatnonzero(own >= 0) if len(gone) else ():
                counts[i] -= np.count_nonzero(part.has(int(own[i]), gone))
        return Frequencies(sources, all_terms, counts)

    @cached_property
    def _size(self) -> tuple[int, int]:
        """How many live sources there are, and how many terms they have together."""
        lengths = [part.postings.lengths for part in self.parts]
        every = sum(len(own) - len(gone) for own, gone in zip(lengths, self._gone, strict=True))
        terms = sum(int(own.sum() - own[gone].sum()) for own, gone in zip(lengths, self._gone, strict=True))
        return every, terms

    def query(self, text: str, frequencies: Frequencies | None = None) -> Query:
        """frequencies: of a larger collection that this one is a part of; by default its own."""
        terms = terms_in(text)
        places = [part.postings.places_of(terms) for part in self.parts]
        known = frequencies or self._frequencies(places, terms)
        weights = np.log1p((known.sources - known.having + 0.5) / (known.having + 0.5))  # (q,)
        weights = weights.astype(np.float32)
        order = np.argsort(-weights, kind="stable")
        own = float(weights.sum() * _factor(np.array([len(terms)]), known.average)[0])
        having = known.having[order]
        return Query(tuple(p[order] for p in places), weights[order], having, known.average, own)

    def similar(self, text: str, m: int, frequencies: Frequencies | None = None) -> Similar:
        """The m best, or as many as share a term with the text; frequencies: see `query`.

        One sentence's are asked for several times while it is translated: for its shortlist, for keys that
        are to be made, and for words that it was taught.
        """
        query = self.query(text, frequencies)
        walked = query.walked(m)
        if frequencies is not None:
            return self._similar(query, walked, m)
        most, known = self._remembered.get((text, walked), (0, None))
        if known is None or most < m:
            if len(self._remembered) >= REMEMBERED:
                self._remembered.clear()
            known = self._similar(query, walked, m)
            self._remembered[text, walked] = m, known
        return Similar(known.segment_ids[:m], known.scores[:m], known.relative[:m])

    def _similar(self, query: Query, walked: int, m: int) -> Similar:
        found = [
            self._best(part, places, query, walked, m)
            for part, places in zip(self.parts, query.places, strict=True)
        ]
        ids = np.concatenate(
            [
                np.zeros(0, np.int64),
                *(part.postings.segment_ids[best] for part, (best, _) in zip(self.parts, found, strict=True)),
            ]
        )
        scores = np.concatenate([np.zeros(0, np.float32), *(score for _, score in found)])
        order = np.lexsort((-ids, -scores))[:m]
        return Similar(ids[order], scores[order], self._relative(scores[order], query))

    def having_words(self, words: Sequence[str], segment_ids: Ints) -> Ints:
        """(m,) bit i of each number says whether the i-th word, or a form of it, is in a segment's source,
        and the sign that no later segment has the same source.

        words: of a sentence, 63 at most. segment_ids: (m,) ascending. What is not a word, such as punctuation
        or text in a script without spaces, counts as being in every source; a source that is not known here
        counts as having every word.
        """
        return with_newest(*self.words_and_signatures(words, segment_ids))

    def words_and_signatures(
        self, words: Sequence[str], segment_ids: Ints
    ) -> tuple[Ints, npt.NDArray[np.uint64]]:
        """(m,) as `having_words`, but whatever the sign; and (m,) the signatures of the sources."""
        each = [_forms_of(word) for word in words]
        flat = [forms for terms in each for forms in terms]
        forms = np.concatenate([np.zeros(0, np.uint64), *flat])
        ends = np.cumsum([len(own) for own in flat])
        found = np.full(len(segment_ids), -1, np.int64)
        signatures = segment_ids.astype(np.uint64)
        for part in self.parts:
            known = part.postings.segment_ids
            sources = np.minimum(np.searchsorted(known, segment_ids), max(0, len(known) - 1))
            here = np.flatnonzero(known[sources] == segment_ids) if len(known) else sources[:0]
            masks = np.full(len(here), -1, np.int64)
            places = iter(np.split(part.postings.places_of(forms), ends[:-1]))
            for i, terms in enumerate(each):
                for _ in terms:
                    has = np.zeros(len(here), np.bool_)
                    for place in _known(next(places)).tolist():
                        has |= part.has(place, sources[here])
                    masks &= np.where(has, np.int64(-1), ~(np.int64(1) << i))
            found[here], signatures[here] = masks, part.postings.signatures[sources[here]]
        return found, signatures

    def relative_scores(self, text: str, frequencies: Frequencies | None = None) -> Floats:
        """(s,) BM25 of every line's source divided by that of the text with itself, at most 1; removed: 0.

        frequencies: see `query`.
        """
        query = self.query(text, frequencies)
        scores = np.zeros(len(self._live), np.float32)
        for part, places in zip(self.parts, query.places, strict=True):
            sums = np.zeros(len(part.postings), np.float32)
            for place, weight in zip(places.tolist(), query.weights.tolist(), strict=True):
                if place >= 0:
                    sums[part.postings.having(place)] += weight
            touched = np.flatnonzero(sums)
            scores[part.lines[touched]] = sums[touched] * _factor(
                part.postings.lengths[touched], query.average
            )
        return self._relative(scores * self._live, query)[:-1]

    def _relative(self, scores: Floats, query: Query) -> Floats:
        return np.minimum(scores / np.float32(query.own_score), np.float32(1.0))

    def _best(self, part: Part, places: Ints, query: Query, walked: int, m: int) -> tuple[Ints, Floats]:
        """The m best sources of a part, in any order, and their scores.

        places: (q,), rarest terms first; walked: so many of these terms are walked through.
        """
        known = places >= 0
        places, weights, done = places[known], query.weights[known], int(np.count_nonzero(known[:walked]))
        sources, sums = _sums([part.postings.having(place) for place in places[:done].tolist()], weights)
        there = self._live[part.lines[sources]]
        sources, sums = sources[there], sums[there]
        factors = _factor(part.postings.lengths[sources], query.average)
        rest = float(weights[done:].sum())
        for place, weight in zip(places[done:].tolist(), weights[done:], strict=True):
            hopeful = (sums + rest) * factors >= _nth_largest(sums * factors, m)
            sources, factors, sums = sources[hopeful], factors[hopeful], sums[hopeful]
            sums += weight * part.has(place, sources)
            rest -= float(weight)
        scores = sums * factors
        bar = _nth_largest(scores, m)
        better, equal = np.flatnonzero(scores > bar), np.flatnonzero(scores == bar)
        chosen = np.concatenate(
            [equal[max(0, len(better) + len(equal) - m) :], better]
        )  # the newest of equal ones
        return sources[chosen], scores[chosen]


def terms_in(text: str) -> npt.NDArray[np.uint64]:
    """(q,) the numbers of a text's terms, each once."""
    return np.unique(np.array([term_number(term) for term in terms_of(text)], np.uint64))


@lru_cache(maxsize=1 << 13)
def _forms_of(word: str) -> list[npt.NDArray[np.uint64]]:
    """The numbers of the forms of each of a word's terms."""
    return [np.array([term_number(form) for form in forms], np.uint64) for forms in forms_of(word)]


def _factor(lengths: npt.NDArray[np.integer], average: float) -> Floats:
    """(n,) what a source of this many terms gets for each of them."""
    return ((K1 + 1) / (1 + K1 * (1 - B + B * lengths / average))).astype(np.float32)


def with_newest(having: Ints, signatures: npt.NDArray[np.uint64]) -> Ints:
    """(m,) having, with the sign for the newest of the segments that have the same source. Oldest first."""
    _, newest = np.unique(signatures[::-1], return_index=True)
    older = np.ones(len(having), np.bool_)
    older[len(having) - 1 - newest] = False
    return np.where(older, having & UP_TO_DATE, having | ~UP_TO_DATE)


def rare_words(having: Ints) -> int:
    """Bit i says that the i-th word of a sentence is in few sources, but in some; the last bit is no word's.

    having: (m,), from `Collection.having_words`, of all sources there are, or of those that are most similar.
    """
    octets = having.astype("<i8").view(np.uint8).reshape(-1, 8)
    counts = np.unpackbits(octets, axis=1, count=62, bitorder="little").sum(0)  # (62,)
    return sum(1 << i for i in np.flatnonzero((counts > 0) & (counts <= RARE)).tolist())


def _known(places: Ints) -> Ints:
    return places[places >= 0]


def _nth_largest(numbers: Floats, n: int) -> float:
    """0 when there are fewer."""
    return float(np.partition(numbers, len(numbers) - n)[len(numbers) - n]) if len(numbers) >= n else 0.0


def _sums(lists: Sequence[npt.NDArray[np.int32]], weights: Floats) -> tuple[Ints, Floats]:
    """Every number that is in one of these lists, ascending, and the sum of the weights of those it is in."""
    if not lists:
        return np.zeros(0, np.int64), np.zeros(0, np.float32)
    both = np.concatenate([having.astype(np.int64) << 16 | i for i, having in enumerate(lists)])
    both.sort()
    numbers = both >> 16
    first = np.flatnonzero(np.diff(numbers, prepend=-1))
    return numbers[first], np.add.reduceat(weights[both & 0xFFFF], first)
