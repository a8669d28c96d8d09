"""Which way a batch of sentences is searched for, and what their shortlists hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from kster.memory.retriever import Searcher, Shortlist, Similarities, WholeRetriever, block_of
from kster.memory.settings import SearchSettings
from kster.memory.sources.scoring import Collection
from kster.memory.store.snapshot import Snapshot
from kster.memory.store.spans import Ints

EVERY_SOURCE = 1 << 16  # segments up to which all are compared with a sentence …
NEAREST_SOURCES = 1_024  # … and so many of more; the others count as not similar at all


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """One memory at one moment. Ids seen outside are `base` | its own: in a group, the memory's place."""

    snapshot: Snapshot
    sources: Collection
    base: int = 0


def make_retriever(
    searcher: Searcher,
    views: Sequence[View],
    texts: Sequence[str],
    device: torch.device,
    settings: SearchSettings,
    similarity: bool,
) -> Searcher:
    """searcher: what searches all entries of all of these memories."""
    entries = sum(view.snapshot.live_count for view in views)
    if settings.by_shortlist(entries, device.type):
        lists = [_shortlist(views, text, settings.shortlist) for text in texts]
        return block_of(lists, views[0].snapshot.entries.dimension, device)
    if not similarity:
        return searcher
    return WholeRetriever(searcher, _similarities(views, texts, device), len(texts))


def _shortlist(views: Sequence[View], text: str, m: int) -> Shortlist:
    """The entries of the m segments of all memories whose sources resemble a text best."""
    found = [view.sources.similar(text, m) for view in views]
    ids = np.concatenate([view.base | one.segment_ids for view, one in zip(views, found, strict=True)])
    best = np.zeros(len(ids), np.bool_)
    best[np.lexsort((-ids, -np.concatenate([one.relative for one in found])))[:m]] = True
    chosen_of = np.split(best, np.cumsum([len(one) for one in found])[:-1])
    parts = []
    for view, similar, chosen in zip(views, found, chosen_of, strict=True):
        order = np.argsort(similar.segment_ids[chosen])
        lines = np.searchsorted(view.snapshot.spans.segment_ids, similar.segment_ids[chosen][order])
        parts.append(_entries(view, lines, similar.relative[chosen][order]))
    return Shortlist(
        keys=torch.cat([part.keys for part in parts]),
        values=torch.cat([part.values for part in parts]),
        ids=torch.cat([part.ids for part in parts]),
        similarity=torch.cat([part.similarity for part in parts]),
    )


def _entries(view: View, lines: Ints, relative: np.ndarray) -> Shortlist:
    """lines: (m,) of the memory's segments, growing; relative: (m,) their similarity."""
    spans, entries = view.snapshot.spans, view.snapshot.entries
    counts = spans.counts[lines]
    within = np.arange(counts.sum()) - np.repeat(
        np.cumsum(counts) - counts, counts
    )  # (e,) places in segments
    rows = np.repeat(spans.first_rows[lines], counts) + within
    ids = np.repeat(spans.first_entries[lines], counts) + within | view.base
    return Shortlist(
        keys=torch.from_numpy(entries.gather(rows)),
        values=torch.from_numpy(entries.values_of(rows).astype(np.int32)),
        ids=torch.from_numpy(ids),
        similarity=torch.from_numpy(np.repeat(relative, counts)),
    )


def _similarities(views: Sequence[View], texts: Sequence[str], device: torch.device) -> Similarities:
    firsts = [view.snapshot.spans.first_entries | view.base for view in views]
    rows = [np.concatenate([_scores(view, text) for view in views]) for text in texts]
    table = torch.from_numpy(np.stack(rows).astype(np.float16)) if rows else torch.zeros((0, 0))
    return Similarities(torch.from_numpy(np.concatenate(firsts)).to(device), table.to(device))


def _scores(view: View, text: str) -> np.ndarray:
    """(s,) float32, of every line of the memory's segments."""
    spans = view.snapshot.spans
    if len(spans) <= EVERY_SOURCE:
        return view.sources.relative_scores(text)
    scores, nearest = np.zeros(len(spans), np.float32), view.sources.similar(text, NEAREST_SOURCES)
    scores[np.searchsorted(spans.segment_ids, nearest.segment_ids)] = nearest.relative
    return scores
