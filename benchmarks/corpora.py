"""Pairs of a corpus for benchmarks, and small memories that behave as the whole corpus would."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import numpy as np

from kster.formats import Pair, read_moses
from kster.memory.sources.postings import Postings
from kster.memory.sources.scoring import Collection, Part


def pairs_of(data: Path, text: str, languages: tuple[str, str], count: int | None = None) -> list[Pair]:
    """The first `count` pairs of `<corpus>/<split>`, or all of them."""
    files = (data / f"{text}.{language}.xz" for language in languages)
    return list(islice((pair for pair in read_moses(*files) if isinstance(pair, Pair)), count))


def sample(pairs: Sequence[Pair], count: int, seed: int = 0) -> list[Pair]:
    """So many of them at random, in the order of the file."""
    chosen = random.Random(seed).sample(range(len(pairs)), min(count, len(pairs)))
    return [pairs[i] for i in sorted(chosen)]


def near_segments(train: Sequence[Pair], sources: Sequence[str], near: int, others: int) -> list[Pair]:
    """Of a corpus that is too large to be a memory here: for each source the pairs that resemble it best (by
    BM25), and some at random. None has one of these sources, word for word."""
    known = {source.casefold() for source in sources}
    pairs = [pair for pair in train if pair.source.casefold() not in known]
    postings = Postings.of((i, i, pair.source) for i, pair in enumerate(pairs))
    collection = Collection([Part(postings, np.arange(len(postings)))], np.ones(len(postings), np.bool_))
    chosen = {int(i) for source in sources for i in collection.similar(source, near).segment_ids}
    chosen |= set(random.Random(0).sample(range(len(pairs)), min(others, len(pairs))))
    return [pairs[i] for i in sorted(chosen)]
