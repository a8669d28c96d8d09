"""How a batch of sentences is searched for, and what their shortlists hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from kster.memory.search.retriever import Batch, Searcher, Sentence, Similarities, WholeRetriever
from kster.memory.search.settings import SearchSettings
from kster.memory.search.shortlist_retriever import Shortlist, search_in
from kster.memory.sources.scoring import Collection, rare_words
from kster.memory.store.snapshot import Snapshot
from kster.memory.store.spans import Ints

EVERY_SOURCE = 1 << 16  # segments up to which all are compared with a sentence …
NEAREST_SOURCES = 1_024  # … and so many of more; the others count as not similar at all


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """One memory at one moment. base: its place in a group; ids seen outside are `base` | its own."""

    snapshot: Snapshot
    sources: Collection
    base: int = 0

    def segment_ids(self, lines: Ints) -> Ints:
        """(m,) of these lines, as they are seen outside."""
        return self.snapshot.spans.segment_ids[lines] | self.base

    def most_similar(self, text: str, m: int) -> tuple[Ints, np.ndarray]:
        """The lines of the m segments whose sources resemble a text best, ascending, and how much they do."""
        found = self.sources.similar(text, m)
        ascending = np.argsort(found.segment_ids)
        lines = np.searchsorted(self.snapshot.spans.segment_ids, found.segment_ids[ascending])
        return lines, found.relative[ascending]

    def having_words(self, words: Sequence[str], lines: Ints) -> Ints:
        """(m,) which of these words are in the sources of these lines' segments, ascending."""
        return self.sources.having_words(words, self.snapshot.spans.segment_ids[lines])


def make_retriever(
    searcher: Searcher, views: Sequence[View], batch: Batch, settings: SearchSettings
) -> Searcher:
    """searcher: what searches all entries of all of these memories."""
    entries = sum(view.snapshot.live_count for view in views)
    complete = not any(view.snapshot.without_keys.any() for view in views)
    if settings.by_shortlist(batch.device.type, complete, batch.similarity):
        if complete and settings.all_in_shortlist(entries):
            lists = _all_entries(views, batch.sentences)
        else:
            lists = [_shortlist(views, *sentence, settings) for sentence in batch.sentences]
        return search_in(lists, views[0].snapshot.entries.dimension, batch.device)
    if not batch.similarity:
        return searcher
    return WholeRetriever(searcher, _similarities(views, batch))


def _all_entries(views: Sequence[View], sentences: Sequence[Sentence]) -> list[Shortlist]:
    """Shortlists in a memory so small that each of them has all entries."""
    lines = [np.flatnonzero(view.snapshot.live_segments) for view in views]
    nothing = [np.zeros(len(own), np.float32) for own in lines]
    entries = _joined([entries_of(*one) for one in zip(views, lines, nothing, strict=True)])

    counts = np.concatenate([view.snapshot.spans.counts[own] for view, own in zip(views, lines, strict=True)])

    def to_each(of_segments: Sequence[np.ndarray]) -> torch.Tensor:
        """What is said of the segments of each memory, for all their entries."""
        return torch.from_numpy(np.repeat(np.concatenate(of_segments), counts))

    def for_sentence(text: str, words: Sequence[str]) -> Shortlist:
        having = [view.having_words(words, own) for view, own in zip(views, lines, strict=True)]
        relative = [view.sources.relative_scores(text)[own] for view, own in zip(views, lines, strict=True)]
        return replace(
            entries,
            similarity=to_each(relative),
            words=to_each(having),
            rare=rare_words(np.concatenate(having)),
        )

    return [for_sentence(*sentence) for sentence in sentences]


def _shortlist(views: Sequence[View], text: str, words: Sequence[str], settings: SearchSettings) -> Shortlist:
    """The entries of the segments of all memories whose sources resemble a text best."""
    parts, having = [], []
    for view, (lines, relative) in zip(views, best_lines(views, text, settings), strict=True):
        having.append(view.having_words(words, lines))
        parts.append(entries_of(view, lines, relative, having[-1]))
    return replace(_joined(parts), rare=rare_words(np.concatenate(having)))


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


def _joined(parts: Sequence[Shortlist]) -> Shortlist:
    if len(parts) == 1:
        return parts[0]
    return Shortlist(
        keys=torch.cat([part.keys for part in parts]),
        values=torch.cat([part.values for part in parts]),
        ids=torch.cat([part.ids for part in parts]),
        similarity=torch.cat([part.similarity for part in parts]),
        words=torch.cat([part.words for part in parts]),
    )


def entries_of(view: View, lines: Ints, relative: np.ndarray, having: Ints | None = None) -> Shortlist:
    """lines: (m,) of the memory's segments, ascending; relative: (m,) their similarity; having: (m,) which
    words of the sentence they have, if there is one."""
    spans, entries = view.snapshot.spans, view.snapshot.entries
    counts = spans.counts[lines]
    firsts = np.cumsum(counts) - counts  # (m,) where each segment's entries begin
    within = np.arange(counts.sum()) - np.repeat(firsts, counts)  # (e,) places in segments
    rows = np.repeat(spans.first_rows[lines], counts) + within
    ids = np.repeat(spans.first_entries[lines], counts) + within | view.base
    return Shortlist(
        keys=torch.from_numpy(entries.gather(rows)),
        values=torch.from_numpy(entries.values_of(rows).astype(np.int32)),
        ids=torch.from_numpy(ids),
        similarity=torch.from_numpy(np.repeat(relative, counts)),
        words=torch.from_numpy(np.repeat(view.having_words((), lines) if having is None else having, counts)),
    )


def _similarities(views: Sequence[View], batch: Batch) -> Similarities:
    firsts = np.concatenate([view.snapshot.spans.first_entries | view.base for view in views])  # (m,)
    table = np.zeros((len(batch.texts), len(firsts)), np.float16)
    having = np.zeros(table.shape, np.int64)
    for i, (text, words) in enumerate(batch.sentences):
        table[i] = np.concatenate([_scores(view, text) for view in views])
        having[i] = np.concatenate(
            [view.having_words(words, np.arange(len(view.snapshot.spans))) for view in views]
        )
    rare = np.array([rare_words(own) for own in having], np.int64)
    columns = (firsts, table, having, rare)
    return Similarities(*(torch.from_numpy(column).to(batch.device) for column in columns))


def _scores(view: View, text: str) -> np.ndarray:
    """(s,) float32, of every line of the memory's segments."""
    spans = view.snapshot.spans
    if len(spans) <= EVERY_SOURCE:
        return view.sources.relative_scores(text)
    scores = np.zeros(len(spans), np.float32)
    lines, relative = view.most_similar(text, NEAREST_SOURCES)
    scores[lines] = relative
    return scores
