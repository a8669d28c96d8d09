"""An inverted index of some sources: for every term the sources that have it. Arrays, never changed."""

from __future__ import annotations

import zipfile
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from kster.memory.sources.words import term_number, terms_of

Ints = npt.NDArray[np.int64]


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
        vocabulary = _Vocabulary()
        ids, hashes, counts, numbers = (array("q") for _ in range(4))
        for id, pair_hash, text in sources:
            words = set(terms_of(text))
            ids.append(id)
            hashes.append(pair_hash)
            counts.append(len(words))
            numbers.extend([vocabulary[word] for word in words])
        terms = np.array([term_number(word) for word in vocabulary], np.uint64)  # (t,) by number
        order = np.argsort(terms)
        places = np.empty_like(order)
        places[order] = np.arange(len(order))
        lengths = _array(counts)
        of_each = np.repeat(np.arange(len(ids)), lengths)  # (p,) the source of every number
        firsts = np.cumsum(lengths) - lengths  # every source has a term
        signed = np.bitwise_xor.reduceat(terms[_array(numbers)], firsts) if len(ids) else terms[:0]
        columns = _array(ids), _array(hashes), lengths.astype(np.int32), signed
        return cls._sorted(columns, terms[order], places[_array(numbers)], of_each)

    @classmethod
    def merged(cls, parts: Sequence[Postings], kept: Sequence[npt.NDArray[np.bool_]]) -> Postings:
        """One index of several with ever later segments. kept: for each part (n,) which sources stay."""
        terms = np.unique(np.concatenate([part.terms for part in parts]))
        places, of_each, first = [], [], 0
        for part, stays in zip(parts, kept, strict=True):
            renumbered = np.cumsum(stays) - 1 + first  # (n,)
            numbers = np.repeat(np.searchsorted(terms, part.terms), np.diff(part.starts))  # (p,)
            stay = stays[part.documents]
            places.append(numbers[stay])
            of_each.append(renumbered[part.documents[stay]])
            first += int(stays.sum())
        columns = (
            np.concatenate([part.segment_ids[stays] for part, stays in zip(parts, kept, strict=True)]),
            np.concatenate([part.pair_hashes[stays] for part, stays in zip(parts, kept, strict=True)]),
            np.concatenate([part.lengths[stays] for part, stays in zip(parts, kept, strict=True)]),
            np.concatenate([part.signatures[stays] for part, stays in zip(parts, kept, strict=True)]),
        )
        return cls._sorted(columns, terms, np.concatenate(places), np.concatenate(of_each))

    @classmethod
    def _sorted(
        cls,
        columns: tuple[Ints, Ints, npt.NDArray[np.int32], npt.NDArray[np.uint64]],
        terms: npt.NDArray[np.uint64],
        places: Ints,
        of_each: Ints,
    ) -> Postings:
        """columns: the first four of a `Postings`; places, of_each: (p,) each occurrence's term, as a place
        in `terms`, and its source."""
        order = np.sort(places.astype(np.int64) << 32 | of_each)  # one sort of integers is the fastest way
        counts = np.bincount(order >> 32, minlength=len(terms))
        starts = np.concatenate([[0], np.cumsum(counts)])
        return cls(*columns, terms, starts, (order & 0xFFFFFFFF).astype(np.int32))

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


def _array(numbers: array[int]) -> Ints:
    return np.frombuffer(numbers, np.int64) if numbers else np.zeros(0, np.int64)
