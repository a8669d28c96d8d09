"""An inverted index of some sources: for every term the sources that have it. Arrays, never changed."""

from __future__ import annotations

import zipfile
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from itertools import islice
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from kster.memory.sources.words import term_number, terms_of

Ints = npt.NDArray[np.int64]

BLOCK = 1 << 16  # sources that are indexed at a time, so that an index takes little more memory than it has


@dataclass(frozen=True, slots=True, eq=False)
class Postings:
    """n sources with t different terms and p occurrences of a term in a source, in the segments' order."""

    segment_ids: Ints  # (n,) ascending
    pair_hashes: Ints  # (n,) of the segments, by which an index is known to be of these texts
    lengths: npt.NDArray[np.int32]  # (n,) different terms of each source
    signatures: npt.NDArray[np.uint64]  # (n,) `signature_of` each source
    terms: npt.NDArray[np.uint64]  # (t,) ascending
    starts: Ints  # (t + 1,) where the sources of each term begin in `documents`
    documents: npt.NDArray[np.int32]  # (p,) places of sources, ascending within a term

    def __len__(self) -> int:
        return len(self.segment_ids)

    @classmethod
    def of(cls, sources: Iterable[tuple[int, int, str]]) -> Postings:
        """sources: (segment id, pair hash, text), in the order of the ids."""
        left = iter(sources)
        parts = [cls._of_block([])]
        while block := list(islice(left, BLOCK)):
            parts.append(cls._of_block(block))
        return cls.merged(parts) if len(parts) > 2 else parts[-1]

    @classmethod
    def _of_block(cls, sources: Sequence[tuple[int, int, str]]) -> Postings:
        vocabulary = _Vocabulary()
        counts, numbers = array("q"), array("q")
        for _, _, text in sources:
            words = set(terms_of(text))
            counts.append(len(words))
            numbers.extend([vocabulary[word] for word in words])
        terms = np.array([term_number(word) for word in vocabulary], np.uint64)  # (t,) by number
        order = np.argsort(terms)
        places = np.empty_like(order)
        places[order] = np.arange(len(order))
        lengths, flat = _array(counts), _array(numbers)
        of_each = np.repeat(np.arange(len(sources)), lengths)  # (p,) the source of every number
        firsts = np.cumsum(lengths) - lengths  # every source has a term
        occurrences = np.sort(places[flat] << 32 | of_each)  # one sort of integers is the fastest way
        return cls(
            segment_ids=np.array([id for id, _, _ in sources], np.int64),
            pair_hashes=np.array([pair_hash for _, pair_hash, _ in sources], np.int64),
            lengths=lengths.astype(np.int32),
            signatures=np.bitwise_xor.reduceat(terms[flat], firsts) if sources else terms[:0],
            terms=terms[order],
            starts=_starts(np.bincount(occurrences >> 32, minlength=len(terms))),
            documents=(occurrences & 0xFFFFFFFF).astype(np.int32),
        )

    @classmethod
    def merged(
        cls, parts: Sequence[Postings], kept: Sequence[npt.NDArray[np.bool_]] | None = None
    ) -> Postings:
        """One index of several with ever later segments. kept: for each part (n,) which sources stay."""
        if kept is not None:
            parts = [part._only(stays) for part, stays in zip(parts, kept, strict=True)]
        terms = np.unique(np.concatenate([part.terms for part in parts]))
        places = [np.searchsorted(terms, part.terms) for part in parts]
        counts = np.zeros(len(terms), np.int64)
        for part, own in zip(parts, places, strict=True):
            counts[own] += np.diff(part.starts)
        starts = _starts(counts)
        documents = np.empty(starts[-1], np.int32)
        ends, first = starts[:-1].copy(), 0  # of what has been written of each term
        for part, own in zip(parts, places, strict=True):
            counts = np.diff(part.starts)
            at = np.arange(len(part.documents))
            at += np.repeat(ends[own] - part.starts[:-1], counts)
            documents[at] = part.documents + np.int32(first)
            ends[own] += counts
            first += len(part)
        return cls(
            np.concatenate([part.segment_ids for part in parts]),
            np.concatenate([part.pair_hashes for part in parts]),
            np.concatenate([part.lengths for part in parts]),
            np.concatenate([part.signatures for part in parts]),
            terms,
            starts,
            documents,
        )

    def _only(self, stays: npt.NDArray[np.bool_]) -> Postings:
        """The sources that stay: (n,)."""
        if stays.all():
            return self
        stay = stays[self.documents]
        renumbered = np.cumsum(stays, dtype=np.int32) - np.int32(1)
        return Postings(
            self.segment_ids[stays],
            self.pair_hashes[stays],
            self.lengths[stays],
            self.signatures[stays],
            self.terms,
            _starts(stay)[self.starts],
            renumbered[self.documents[stay]],
        )

    def places_of(self, terms: npt.NDArray[np.uint64]) -> Ints:
        """(q,) where these terms are in `terms`; -1 where they are not."""
        if not len(self.terms):
            return np.full(len(terms), -1)
        places = np.minimum(np.searchsorted(self.terms, terms), len(self.terms) - 1)
        return np.where(self.terms[places] == terms, places, -1)

    def having(self, place: int) -> npt.NDArray[np.int32]:
        """(f,) the sources that have the term at this place, ascending."""
        return self.documents[self.starts[place] : self.starts[place + 1]]

    def counts(self, places: Ints) -> Ints:
        """(q,) how many sources have each of the terms at these places; 0 for -1."""
        return np.where(places < 0, 0, self.starts[places + 1] - self.starts[places])

    # The file ------------------------------------------------------------------------------------

    def write(self, file: BinaryIO) -> None:
        np.savez(file, **{field.name: getattr(self, field.name) for field in fields(self)})

    @classmethod
    def read(cls, path: Path) -> Postings | None:
        """None when there is no file or it is not what was written: an index can be made anew."""
        try:
            with np.load(path, allow_pickle=False) as arrays:  # a zip file, which checks its checksums
                postings = cls(**{field.name: arrays[field.name] for field in fields(cls)})
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
            return None
        return postings if postings._fits_together() else None

    def _fits_together(self) -> bool:
        n, t, p = len(self.segment_ids), len(self.terms), len(self.documents)
        columns = (self.pair_hashes, self.lengths, self.signatures)
        same = all(len(column) == n for column in columns) and len(self.starts) == t + 1
        return same and self.starts[0] == 0 and self.starts[-1] == p


class _Vocabulary(dict[str, int]):
    """Numbers terms as they come."""

    def __missing__(self, term: str) -> int:
        self[term] = number = len(self)
        return number


def _starts(counts: npt.NDArray[np.generic]) -> Ints:
    """(n + 1,) where each of n begins, if they lie one after the other."""
    return np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])


def _array(numbers: array[int]) -> Ints:
    return np.frombuffer(numbers, np.int64) if numbers else np.zeros(0, np.int64)
