"""Shortlists where keys lie on the device: which segments they have, and where their entries are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

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
    lists = listed_in(views, indexes, batch.sentences, settings, whole=whole)
    if len(views) == 1 and indexes[0] is not None and views[0].base == 0:
        return on_device(indexes[0].stored, lists, lasting=True)
    dimension = views[0].snapshot.entries.dimension
    return on_device(*_gathered(views, indexes, lists, dimension, batch.device), lasting=False)


def listed_in(
    views: Sequence[View],
    indexes: Sequence[BlockIndex | None],
    sentences: Sequence[Sentence],
    settings: SearchSettings,
    *,
    whole: bool,
) -> list[Listed]:
    """Each sentence's segments, by where these indexes have their entries, one index after the other.

    whole: all segments there are, for every sentence.
    """
    sizes = [0 if index is None else index.room for index in indexes]
    before = np.cumsum(sizes) - sizes
    every = [np.flatnonzero(view.snapshot.live_segments) for view in views]

    def places(number: int, lines: Ints) -> Ints:
        index = indexes[number]
        if index is None:
            return np.full(len(lines), -1)
        rows = views[number].snapshot.spans.first_rows[lines]
        return np.where(rows < 0, -1, index.places_of_rows[rows] + before[number])

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


def _gathered(
    views: Sequence[View],
    indexes: Sequence[BlockIndex | None],
    lists: Sequence[Listed],
    dimension: int,
    device: torch.device,
) -> tuple[Entries, list[Listed]]:
    """The entries of all these segments, and the segments by where they are among them."""
    first, counts = (
        np.concatenate(column) for column in zip(*((x.first, x.counts) for x in lists), strict=True)
    )
    each, at, which = np.unique(first, return_index=True, return_inverse=True)
    long = counts[at]  # entries of each
    moved = np.cumsum(long) - long
    places = np.repeat(each - moved, long) + np.arange(long.sum())  # ascending
    nothing = torch.zeros(1, dtype=torch.int64, device=device)  # so that there is something to look up
    keys = [torch.zeros((1, dimension), dtype=torch.float16, device=device)]
    values, ids, before = [nothing.int()], [nothing], 0
    for view, index in zip(views, indexes, strict=True):
        if index is None:
            continue
        own = places[(places >= before) & (places < before + index.room)] - before
        here = torch.from_numpy(own).to(device)
        keys.append(index.stored.keys.index_select(0, here).half())
        values.append(index.stored.values.index_select(0, here))
        ids.append(index.stored.ids.index_select(0, here) | view.base)
        before += index.room
    parts = np.split(moved[which] + 1, np.cumsum([len(one.first) for one in lists])[:-1])
    found = [replace(one, first=own) for one, own in zip(lists, parts, strict=True)]
    return Entries(torch.cat(keys), torch.cat(values), torch.cat(ids)), found
