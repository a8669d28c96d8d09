"""How a batch of sentences is searched for, and what their shortlists hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from kster.memory.search.codes import KeptCodes
from kster.memory.search.retriever import Batch, Searcher, Sentence, Similarities, WholeRetriever
from kster.memory.search.settings import SearchSettings
from kster.memory.search.shortlist_retriever import Shortlist, ShortlistRetriever, retriever_of
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
    codes: KeptCodes
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

    def rows_and_ids(self, lines: Ints) -> tuple[Ints, Ints]:
        """(e,) the rows of the entries of these lines' segments, and their ids as they are seen outside."""
        rows, ids, _ = self.snapshot.spans.entries_of_lines(lines)
        return rows, ids | self.base


class Stored:
    """The keys of several memories in their files; rows are counted through all of them."""

    def __init__(self, views: Sequence[View]) -> None:
        self._files = [view.snapshot.entries for view in views]
        self.firsts = np.cumsum([0, *(files.count for files in self._files)])  # of each memory

    def take(self, rows: Tensor) -> Tensor:
        numbers = rows.numpy()
        if len(self._files) == 1:
            return torch.from_numpy(self._files[0].gather(numbers))
        found = np.empty((len(numbers), self._files[0].dimension), np.float16)
        for files, first, end in zip(self._files, self.firsts, self.firsts[1:], strict=False):
            here = np.flatnonzero((numbers >= first) & (numbers < end))
            found[here] = files.gather(numbers[here] - first)
        return torch.from_numpy(found)


class Lists:
    """Makes shortlists of the entries of some memories, and what searches them."""

    def __init__(self, views: Sequence[View]) -> None:
        self.views, self._keys = views, Stored(views)
        largest = max(views, key=lambda view: view.snapshot.rows)
        self._projection = largest.codes.projection(largest.snapshot)

    def of(
        self, lines: Sequence[Ints], relative: Sequence[np.ndarray], having: Sequence[Ints] | None = None
    ) -> Shortlist:
        """For each memory (m,) its segments' lines, ascending, their similarity, and which words of the
        sentence they have, if that matters."""
        if having is None:
            having = [view.having_words((), own) for view, own in zip(self.views, lines, strict=True)]
        rows, ids, values, codes, norms = [], [], [], [], []
        for view, own, first in zip(self.views, lines, self._keys.firsts.tolist(), strict=False):
            own_rows, own_ids = view.rows_and_ids(own)
            own_codes, own_norms = view.codes.of(self._projection, view.snapshot, own_rows)
            values.append(view.snapshot.entries.values_of(own_rows).astype(np.int32))
            rows.append(own_rows + first)
            ids.append(own_ids)
            codes.append(own_codes)
            norms.append(own_norms)
        return Shortlist(
            rows=_joined(rows),
            codes=_joined(codes),
            norms=_joined(norms),
            values=_joined(values),
            ids=_joined(ids),
            similarity=self._to_each(relative, lines),
            words=self._to_each(having, lines),
            rare=rare_words(np.concatenate(having)),
        )

    def again(
        self, same: Shortlist, lines: Sequence[Ints], relative: Sequence[np.ndarray], having: Sequence[Ints]
    ) -> Shortlist:
        """Another sentence's, which has the same segments."""
        return replace(
            same,
            similarity=self._to_each(relative, lines),
            words=self._to_each(having, lines),
            rare=rare_words(np.concatenate(having)),
        )

    def searched(self, shortlists: Sequence[Shortlist], device: torch.device) -> ShortlistRetriever:
        return retriever_of(shortlists, self._keys, self._projection, device)

    def _to_each(self, of_segments: Sequence[np.ndarray], lines: Sequence[Ints]) -> Tensor:
        """What is said of the segments of each memory, for all their entries."""
        counts = [view.snapshot.spans.counts[own] for view, own in zip(self.views, lines, strict=True)]
        return _joined([np.repeat(own, n) for own, n in zip(of_segments, counts, strict=True)])


def make_retriever(
    searcher: Searcher, views: Sequence[View], batch: Batch, settings: SearchSettings
) -> Searcher:
    """searcher: what searches all entries of all of these memories."""
    entries = sum(view.snapshot.live_count for view in views)
    complete = not any(view.snapshot.without_keys.any() for view in views)
    if settings.by_shortlist(batch.device.type, complete, batch.similarity):
        lists = Lists(views)
        if complete and settings.all_in_shortlist(entries):
            shortlists = _all_entries(lists, batch.sentences)
        else:
            shortlists = [_shortlist(lists, *sentence, settings) for sentence in batch.sentences]
        return lists.searched(shortlists, batch.device)
    if not batch.similarity:
        return searcher
    return WholeRetriever(searcher, _similarities(views, batch))


def _all_entries(lists: Lists, sentences: Sequence[Sentence]) -> list[Shortlist]:
    """Shortlists in a memory so small that each of them has all entries."""
    views = lists.views
    lines = [np.flatnonzero(view.snapshot.live_segments) for view in views]
    found: list[Shortlist] = []
    for text, words in sentences:
        having = [view.having_words(words, own) for view, own in zip(views, lines, strict=True)]
        relative = [view.sources.relative_scores(text)[own] for view, own in zip(views, lines, strict=True)]
        made = lists.again(found[0], lines, relative, having) if found else lists.of(lines, relative, having)
        found.append(made)
    return found


def _shortlist(lists: Lists, text: str, words: Sequence[str], settings: SearchSettings) -> Shortlist:
    """The entries of the segments of all memories whose sources resemble a text best."""
    chosen = best_lines(lists.views, text, settings)
    having = [view.having_words(words, own) for view, (own, _) in zip(lists.views, chosen, strict=True)]
    return lists.of([own for own, _ in chosen], [relative for _, relative in chosen], having)


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


def _joined(parts: Sequence[np.ndarray]) -> Tensor:
    return torch.from_numpy(parts[0] if len(parts) == 1 else np.concatenate(parts))


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
