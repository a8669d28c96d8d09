"""Which segments a sentence's shortlist has, and where an index has their entries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from kster.memory.search.block_index import BlockIndex
from kster.memory.search.device_shortlists import Listed
from kster.memory.search.retriever import Sentence
from kster.memory.search.settings import SearchSettings
from kster.memory.sources.scoring import rare_words
from kster.memory.store.spans import Ints

if TYPE_CHECKING:
    from kster.memory.search.shortlists import View


def best_lines(views: Sequence[View], text: str, settings: SearchSettings) -> list[tuple[Ints, np.ndarray]]:
    """Of each memory the lines, ascending, that are among the best of all, and their similarity."""
    found = [view.most_similar(text, settings.shortlist) for view in views]  # lines, relative scores
    ids = np.concatenate([view.segment_ids(lines) for view, (lines, _) in zip(views, found, strict=True)])
    counts = np.concatenate(
        [view.snapshot.spans.counts[lines] for view, (lines, _) in zip(views, found, strict=True)]
    )
    order = np.lexsort((-ids, -np.concatenate([own for _, own in found])))[: settings.shortlist]
    fitting = np.cumsum(counts[order]) <= settings.shortlist_entries
    fitting[:1] = True  # a segment longer than that is better than none
    best = np.zeros(len(ids), np.bool_)
    best[order[fitting]] = True
    chosen_of = np.split(best, np.cumsum([len(lines) for lines, _ in found])[:-1])
    return [
        (lines[chosen], relative[chosen]) for (lines, relative), chosen in zip(found, chosen_of, strict=True)
    ]


def listed_in(
    views: Sequence[View],
    indexes: Sequence[BlockIndex | None],
    sentences: Sequence[Sentence],
    settings: SearchSettings,
    *,
    whole: bool,
) -> list[Listed]:
    """Each sentence's segments, by where `stored_in` these indexes has their entries.

    whole: all segments there are, for every sentence.
    """
    sizes = [0 if index is None else index.room for index in indexes]
    before = np.cumsum(sizes) - sizes
    every = [np.flatnonzero(view.snapshot.live_segments) for view in views]

    def places(number: int, lines: Ints) -> Ints:
        index = indexes[number]
        if index is None:
            return np.zeros(len(lines), np.int64)
        return index.places_of_rows[views[number].snapshot.spans.first_rows[lines]] + before[number]

    def listed(text: str, words: Sequence[str]) -> Listed:
        if whole:
            chosen = [
                (own, view.sources.relative_scores(text)[own]) for view, own in zip(views, every, strict=True)
            ]
        else:
            chosen = best_lines(views, text, settings)
        having = [view.having_words(words, own) for view, (own, _) in zip(views, chosen, strict=True)]
        counts = [view.snapshot.spans.counts[own] for view, (own, _) in zip(views, chosen, strict=True)]
        return Listed(
            first=np.concatenate([places(number, own) for number, (own, _) in enumerate(chosen)]),
            counts=np.concatenate(counts),
            relative=np.concatenate([relative for _, relative in chosen]),
            having=np.concatenate(having),
            rare=rare_words(np.concatenate(having)),
        )

    return [listed(*sentence) for sentence in sentences]
