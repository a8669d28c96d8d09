"""The index of a memory's sources: always of the snapshot it is asked about, whatever is on disk.

Derived data. One file, `index/sources.npz`, holds what had been indexed when it was last worth saving; newer
segments are indexed when they are first needed and searched beside it. What the file has is trusted only
where ids and hashes of texts agree with the memory's present segments. A file that lacks one of these, or is
damaged, is made again.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator

import numpy as np

from kster.files import replacing
from kster.memory.sources.postings import Ints, Postings
from kster.memory.sources.scoring import Collection, Part
from kster.memory.store.snapshot import Snapshot
from kster.memory.store.store import INDEX, Store

FILE = "sources.npz"
WORTH_SAVING = 10_000  # sources that take longer to index than to read: a quarter of a second
SAVE_GROWTH = 0.25  # … and at least this share of what is in the file

log = logging.getLogger(__name__)


class SourceIndex:
    """Any number of threads may ask."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._path = store.directory / INDEX / FILE
        self._lock = threading.Lock()
        self._parts: list[Part] = []  # of later and later segments
        self._saved = 0  # sources in the file
        self._epoch = -1  # of the snapshot whose lines the parts have
        self._current: tuple[int, Collection] | None = None  # generation and what was made of it

    def collection(self, snapshot: Snapshot) -> Collection:
        """The sources of all segments that are live in this snapshot."""
        current = self._current
        if current is None or current[0] != snapshot.generation:
            with self._lock:
                current = self._current
                if current is None or current[0] != snapshot.generation:
                    current = self._current = snapshot.generation, self._advance(snapshot)
        return current[1]

    def close(self) -> None:
        """Let go of what is held in memory."""
        with self._lock:
            self._parts, self._current, self._epoch = [], None, -1

    def _advance(self, snapshot: Snapshot) -> Collection:
        if self._epoch < 0:
            self._parts = self._read(snapshot)
        elif self._epoch != snapshot.epoch:
            self._parts = [Part(part.postings, lines_of(part.postings, snapshot)) for part in self._parts]
        self._epoch = snapshot.epoch
        last = max((int(part.postings.segment_ids[-1]) for part in self._parts), default=-1)
        newest = int(snapshot.spans.segment_ids[-1]) if len(snapshot.spans) else -1
        if newest > last:
            new = Postings.of(self._sources(last, newest))
            if len(new):
                self._parts.append(Part(new, lines_of(new, snapshot)))
                self._tidy(snapshot)
        parts = self._parts
        if newest < last:  # somebody else has asked about a later snapshot
            parts = [Part(part.postings, lines_of(part.postings, snapshot)) for part in parts]
        return Collection(parts, snapshot.live_segments)

    def _sources(self, after: int, last: int) -> Iterator[tuple[int, int, str]]:
        with self._store.reading_apart() as database:
            yield from database.sources(after, last)

    def _tidy(self, snapshot: Snapshot) -> None:
        """Few parts, each more than twice as large as the next; one, in the file, when enough is new."""
        unsaved = sum(len(part.postings) for part in self._parts) - self._saved
        if unsaved >= max(WORTH_SAVING, SAVE_GROWTH * self._saved):
            self._parts = [self._merged(self._parts, snapshot)]
            self._save(self._parts[0].postings)
            return
        first = 1 if self._saved else 0  # what is in the file stays as it is
        while len(self._parts) - first > 1 and len(self._parts[-2].postings) <= 2 * len(
            self._parts[-1].postings
        ):
            self._parts[-2:] = [self._merged(self._parts[-2:], snapshot)]

    @staticmethod
    def _merged(parts: list[Part], snapshot: Snapshot) -> Part:
        if len(parts) == 1:
            return parts[0]
        kept = np.append(~snapshot.removed_segments, False)  # line -1; others may become live again
        postings = Postings.merged([part.postings for part in parts], [kept[part.lines] for part in parts])
        return Part(postings, lines_of(postings, snapshot))

    # The file ------------------------------------------------------------------------------------

    def _read(self, snapshot: Snapshot) -> list[Part]:
        postings = Postings.read(self._path)
        self._saved = 0
        if postings is None or not len(postings):
            return []
        lines = lines_of(postings, snapshot)
        covered = np.zeros(len(snapshot.spans) + 1, np.bool_)
        covered[lines] = True
        due = ~snapshot.removed_segments & (snapshot.spans.segment_ids <= postings.segment_ids[-1])
        if (due & ~covered[:-1]).any():
            return []
        self._saved = len(postings)
        return [Part(postings, lines)]

    def _save(self, postings: Postings) -> None:
        self._saved = len(postings)
        try:
            self._path.parent.mkdir(exist_ok=True)
            with replacing(self._path, durable=False) as file:
                postings.write(file)
        except OSError as error:  # a read-only or full disk only costs the next start time
            log.warning("the index of sources could not be saved (%s)", error)


def lines_of(postings: Postings, snapshot: Snapshot) -> Ints:
    """(n,) the snapshot's line of each source, -1 where it has no such segment with such texts."""
    spans = snapshot.spans
    if not len(spans):
        return np.full(len(postings), -1)
    lines = np.minimum(np.searchsorted(spans.segment_ids, postings.segment_ids), len(spans) - 1)
    same = spans.segment_ids[lines] == postings.segment_ids
    same &= spans.pair_hashes[lines] == postings.pair_hashes
    return np.where(same, lines, -1)
