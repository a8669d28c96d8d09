"""Shortlists where keys lie on the device: which segments they have, and where their entries are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from kster.memory.search.block_index import BlockIndex
from kster.memory.search.device_shortlists import DeviceShortlists, Entries, Listed, on_device
from kster.memory.search.retriever import Batch, Sentence
from kster.memory.search.settings import SearchSettings
from kster.memory.search.shortlists import View, best_lines
from kster.memory.sources.scoring import rare_words
from kster.memory.store.spans import Ints


def device_shortlists(
    views: Sequence[View], indexes: Sequence[BlockIndex | None], batch: Batch, settings: SearchSettings
) -> DeviceShortlists | None:
    """The shortlists of a batch; None where all entries are to be searched.

    indexes: of the snapshots that the views have, None where there are no entries.
    """
    entries = sum(view.snapshot.live_count for view in views)
    complete = not any(view.snapshot.without_keys.any() for view in views)
    if not settings.by_shortlist(batch.device.type, complete, batch.similarity):
        return None
    whole = complete and settings.all_in_shortlist(entries)
    bases, dimension = [view.base for view in views], views[0].snapshot.entries.dimension
    stored = stored_in(indexes, bases, dimension, batch.device)
    return on_device(stored, listed_in(views, indexes, batch.sentences, settings, whole=whole))


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


def stored_in(
    indexes: Sequence[BlockIndex | None], bases: Sequence[int], dimension: int, device: torch.device
) -> Entries:
    """What several indexes hold, one after the other; bases: are added to the ids of each."""
    parts = [(index.stored, base) for index, base in zip(indexes, bases, strict=True) if index is not None]
    if not parts:
        nothing = torch.zeros(1, dtype=torch.int64, device=device)
        keys = torch.zeros((1, dimension), dtype=torch.float16, device=device)
        return Entries(keys, nothing.int(), nothing)
    if len(parts) == 1 and parts[0][1] == 0:
        return parts[0][0]
    return Entries(
        torch.cat([part.keys for part, _ in parts]),
        torch.cat([part.values for part, _ in parts]),
        torch.cat([part.ids | base for part, base in parts]),
    )
