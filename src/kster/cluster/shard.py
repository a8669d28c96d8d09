"""A shard: the memory directories on one disk, and what is asked of them. It knows nothing of Ray."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Sequence
from io import BufferedWriter
from pathlib import Path
from typing import Any

import numpy as np

from kster.cluster.owned_memory import SMOOTHER, OwnedMemory
from kster.cluster.term_counts import Counts, sum_of
from kster.cluster.wire import (
    OWN,
    Asked,
    Best,
    Changed,
    Found,
    Ints,
    Limits,
    Outdated,
    SegmentEntries,
    Sentence,
    Version,
    best_of,
    wanted_of,
)
from kster.errors import KsterError
from kster.files import try_lock, write_atomically
from kster.memory import Segment
from kster.memory.report import bytes_under
from kster.memory.search.codes import CodesName, Projection, codes_name
from kster.memory.search.shortlists import View
from kster.memory.sources.scoring import Frequencies
from kster.memory.store.change import Draft
from kster.memory.store.description import Description
from kster.memory.store.store import Store

OWNER = "owner.lock"
HOLDERS = 64  # replicas whose entries are remembered: about a megabyte each
NEW_SECONDS = 3_600.0  # a directory that is about to be named in the catalogue is not swept

EVERYTHING = Limits(1 << 62, 1 << 62)

READS = {
    *(
        "history",
        "segment",
        "segments",
        "segment_count",
        "find_text",
        "find_sources",
        "matches",
        "tokens_of",
    ),
    *("info", "size", "verify", "provenance", "facts", "known", "with_unit", "missing", "live_after"),
}


class Sent:
    """Which segments' entries have been sent to whom; those who have asked last are remembered."""

    def __init__(self) -> None:
        self._of: dict[str, dict[str, set[int]]] = {}  # by holder and directory
        self._lock = threading.Lock()

    def new(self, holder: str, directory: str, segment_ids: Ints) -> Ints:
        with self._lock:
            known = self._of.get(holder, {}).get(directory, set())
            return np.array([id for id in segment_ids.tolist() if id not in known], np.int64)

    def note(self, holder: str, directory: str, segment_ids: Ints) -> None:
        with self._lock:
            own = self._of.pop(holder, {})
            own.setdefault(directory, set()).update(segment_ids.tolist())
            self._of[holder] = own  # behind all others
            while len(self._of) > HOLDERS:
                del self._of[next(iter(self._of))]

    def forget(self, directory: str) -> None:
        with self._lock:
            for own in self._of.values():
                own.pop(directory, None)


class Shard:
    """The owner of a directory of memories; no second one can be made as long as it lives."""

    def __init__(self, name: str, root: Path, patience: float = 0.0) -> None:
        """patience: seconds to wait for an owner that has just died to be gone."""
        self.name, self.root, self._patience = name, root, patience
        root.mkdir(parents=True, exist_ok=True)
        self._locks: list[BufferedWriter] = []
        self._own(root)
        self._memories: dict[str, OwnedMemory] = {}
        self._sent = Sent()
        self._opening = threading.Lock()

    def _own(self, directory: Path) -> None:
        lock = open(directory / OWNER, "ab")  # noqa: SIM115  (held as long as the shard lives)
        deadline = time.monotonic() + self._patience
        while not (ours := try_lock(lock)) and time.monotonic() < deadline:
            time.sleep(0.2)
        if not ours:
            lock.close()
            raise KsterError(
                f"{directory}: another process owns this shard's directory; stop that one first; nothing was "
                "opened"
            )
        self._locks.append(lock)

    def close(self) -> None:
        for memory in self._memories.values():
            memory.close()
        for lock in self._locks:
            lock.close()

    def _path(self, directory: str) -> Path:
        return self.root / directory  # an absolute one stays as it is

    def _memory(self, directory: str) -> OwnedMemory:
        memory = self._memories.get(directory)
        if memory is not None:
            return memory
        with self._opening:
            if directory not in self._memories:
                if Path(directory).is_absolute():
                    self._own(Path(directory))
                self._memories[directory] = OwnedMemory(self._path(directory))
            return self._memories[directory]

    # Asking --------------------------------------------------------------------------------------

    def has(self, directory: str) -> bool:
        """Whether there is such a memory where this shard is."""
        return (self._path(directory) / "memory.json").is_file()

    def place(self, directory: str) -> str:
        return str(self._path(directory).resolve())

    def describe(self, directory: str) -> Description:
        return self._memory(directory).description

    def size(self) -> dict[str, int]:
        """For people: memories, entries and bytes of the shard's own directory."""
        own = [path.name for path in self.root.iterdir() if path.is_dir()]
        entries = sum(self._memory(directory).entry_count for directory in own if self.has(directory))
        return {"directories": len(own), "entries": entries, "bytes": bytes_under(self.root)}

    def read(self, directory: str, method: str, *arguments: Any, **named: Any) -> Any:
        """What a method of `OwnedMemory` that changes nothing says."""
        if method not in READS:
            raise KsterError(f"no question {method!r}; accepted: {', '.join(sorted(READS))}")
        return getattr(self._memory(directory), method)(*arguments, **named)

    def read_each(
        self, directories: Sequence[str], method: str, arguments: Sequence[Any], named: dict[str, Any]
    ) -> list[Any]:
        return [self.read(directory, method, *arguments, **named) for directory in directories]

    def smoother(self, directory: str) -> dict[str, bytes]:
        """The files of a memory's own smoother."""
        folder = self._path(directory) / SMOOTHER
        files = [file for file in folder.glob("*") if file.is_file() and not file.name.startswith(".")]
        return {file.name: file.read_bytes() for file in files}

    # Searching -----------------------------------------------------------------------------------

    def versions(self, directories: Sequence[str]) -> list[Version]:
        """Of what is searched in each directory: another one after every change."""
        snapshots = [self._memory(directory).view().snapshot for directory in directories]
        return [(snapshot.epoch, snapshot.generation) for snapshot in snapshots]

    def counts(self, memories: Sequence[Sequence[str]], texts: Sequence[str]) -> list[Counts]:
        """For each memory, given as its directories here, its entries and how common the texts' terms are."""
        found = []
        for own in memories:
            views = [self._memory(directory).view() for directory in own]
            frequencies = [sum_of(view.sources.frequencies(text) for view in views) for text in texts]
            found.append(Counts(sum(view.snapshot.live_count for view in views), frequencies))
        return found

    def _agreed(self, asked: Sequence[Asked], texts: Sequence[str]) -> Outdated | list[Counts]:
        """What is to be searched by: how common terms are in all of each memory."""
        now = self.counts([one.directories for one in asked], texts)
        for one, counts in zip(asked, now, strict=True):
            if one.here is not None and not one.here.same_as(counts):
                return Outdated(now)
        return [one.everywhere or counts for one, counts in zip(asked, now, strict=True)]

    def best(
        self,
        memories: Sequence[tuple[Sequence[str], Sequence[Frequencies] | None]],
        sentences: Sequence[Sentence],
        most: int | None,
    ) -> list[Best]:
        """For each sentence the best segments of each directory, or all of them.

        memories: the directories of each and how common each text's terms are in all of it; None where this
        is all there is. most: segments of a directory; None for all.
        """
        asked = [(self._memory(directory).view(), known) for own, known in memories for directory in own]
        answer = []
        for number, sentence in enumerate(sentences):
            found = [
                _best(view, sentence, most, None if known is None else known[number]) for view, known in asked
            ]
            places = np.repeat(np.arange(len(found), dtype=np.int32), [len(ids) for ids, *_ in found])
            answer.append(Best(places, *(np.concatenate(column) for column in zip(*found, strict=True))))
        return answer

    def similar(
        self, asked: Asked, texts: Sequence[str], m: int
    ) -> Outdated | list[list[tuple[float, int, Segment]]]:
        """For each text the m segments of a memory's directories that resemble it best: how much, the
        directory's place, and the segment."""
        agreed = self._agreed([asked], texts)
        if isinstance(agreed, Outdated):
            return agreed
        found: list[list[tuple[float, int, Segment]]] = [[] for _ in texts]
        for place, directory in enumerate(asked.directories):
            memory = self._memory(directory)
            sources = memory.sources()
            for own, text, frequencies in zip(found, texts, agreed[0].frequencies, strict=True):
                similar = sources.similar(text, m, frequencies)
                relative = dict(zip(similar.segment_ids.tolist(), similar.relative.tolist(), strict=True))
                own += [(relative[one.id], place, one) for one in memory.segments_of(relative)]
        return found

    def best_with_entries(
        self,
        asked: Sequence[Asked],
        sentences: Sequence[Sentence],
        limits: Limits,
        share: Limits,
        bases: Ints,
        entries: int | None,
        holder: str,
    ) -> Outdated | Found:
        """For each sentence the best segments of each directory, and entries of the best of these.

        share: how much of a sentence's shortlist the entries may be. bases: see `best_of`. entries: that the
        memories have altogether; None where they have nothing elsewhere. holder: who keeps what is sent.
        """
        directories = [directory for one in asked for directory in one.directories]
        versions = self.versions(directories)  # first: what changes from now on makes them outdated
        agreed = self._agreed(asked, [sentence.text for sentence in sentences])
        if isinstance(agreed, Outdated):
            return agreed
        everything = (sum(one.entries for one in agreed) if entries is None else entries) <= limits.entries
        known = [(one.directories, its.frequencies) for one, its in zip(asked, agreed, strict=True)]
        found = self.best(known, sentences, None if everything else limits.segments)
        sent = [best_of([one], [bases], EVERYTHING if everything else share) for one in found]
        in_order = [directories[i] for i in np.argsort(bases)]
        wanted = list(zip(in_order, wanted_of(sent, len(in_order)), strict=True))
        return Found(found, self._new_entries(holder, wanted), everything, versions, self._codes(directories))

    def _new_entries(self, holder: str, wanted: Sequence[tuple[str, Ints]]) -> list[SegmentEntries]:
        """Of those of these segments that have not been sent to a holder before."""
        new = [(directory, self._sent.new(holder, directory, ids)) for directory, ids in wanted]
        entries = self.entries(new)
        for (directory, _), own in zip(new, entries, strict=True):
            self._sent.note(holder, directory, own.segment_ids)
        return entries

    def _codes(self, directories: Sequence[str]) -> list[tuple[int, CodesName]]:
        snapshots = [self._memory(directory).view().snapshot for directory in directories]
        return [(snapshot.rows, codes_name(snapshot)) for snapshot in snapshots]

    def projection(self, directory: str) -> Projection:
        """What codes of a directory's keys are made by."""
        view = self._memory(directory).view()
        return view.codes.projection(view.snapshot)

    def entries(self, wanted: Sequence[tuple[str, Ints]]) -> list[SegmentEntries]:
        """Of these segments, as far as they have not been removed. wanted: directories and ascending ids."""
        return [self._entries(self._memory(directory), ids) for directory, ids in wanted]

    @staticmethod
    def _entries(memory: OwnedMemory, ids: Ints) -> SegmentEntries:
        view = memory.view()
        spans, live = view.snapshot.spans, view.snapshot.live_segments
        lines = np.searchsorted(spans.segment_ids, ids)
        lines = lines[lines < len(spans)]
        lines = lines[np.isin(spans.segment_ids[lines], ids) & live[lines]]
        rows, entry_ids = view.rows_and_ids(lines)
        if len(entry_ids) and int(entry_ids.max()) > OWN:
            raise KsterError(
                f"{memory.directory}: its entries have larger numbers than a cluster can tell apart"
            )
        firsts = np.concatenate([[0], np.cumsum(spans.counts[lines])]).astype(np.int64)
        files = view.snapshot.entries
        return SegmentEntries(
            spans.segment_ids[lines], firsts, files.gather(rows), files.values_of(rows), entry_ids
        )

    # Changing ------------------------------------------------------------------------------------

    def create(self, directory: str, description: Description) -> None:
        """Make an empty memory, unless it is there."""
        with self._opening:
            if not self.has(directory):
                Store.create(self._path(directory), description)

    def change(self, wanted: Changed) -> Any:
        return self._memory(wanted.directory).change(wanted)

    def add_drafts(self, request: str, directory: str, drafts: Sequence[Draft]) -> int:
        return self._memory(directory).add_drafts(request, drafts)

    def take_over(self, request: str, directory: str, other: str) -> tuple[int, int]:
        """Add what another of the shard's directories holds, in one change."""
        return self._memory(directory).take_over(request, self._memory(other))

    def put_smoother(self, directory: str, files: dict[str, bytes]) -> None:
        """The file that names the others last: at any moment there is one complete smoother."""
        write_smoother(self._path(directory) / SMOOTHER, files)

    def delete(self, directories: Sequence[str]) -> None:
        """Delete directories for good. Those that lie elsewhere are only closed."""
        for directory in directories:
            with self._opening:
                self._sent.forget(directory)
                memory = self._memories.pop(directory, None)
                if memory is not None:
                    memory.close()
                if not Path(directory).is_absolute():
                    shutil.rmtree(self._path(directory), ignore_errors=True)

    def sweep(self, known: Sequence[str]) -> list[str]:
        """Delete memories that the catalogue does not know (any more); returns their directories."""
        kept, begun = set(known), time.time() - NEW_SECONDS
        unknown = [
            path.name
            for path in self.root.iterdir()
            if path.is_dir() and path.name not in kept and path.stat().st_mtime < begun
        ]
        self.delete(unknown)
        return unknown


def _best(
    view: View, sentence: Sentence, most: int | None, known: Frequencies | None
) -> tuple[Ints, Any, Ints, Ints, Any]:
    """The columns of `Best` but the first, of a directory's segments; ids ascending."""
    spans = view.snapshot.spans
    if most is None:
        lines = np.flatnonzero(view.snapshot.live_segments)
        relative = view.sources.relative_scores(sentence.text, known)[lines]
    else:
        found = view.sources.similar(sentence.text, most, known)
        ascending = np.argsort(found.segment_ids)
        lines = np.searchsorted(spans.segment_ids, found.segment_ids[ascending])
        relative = found.relative[ascending]
    ids = spans.segment_ids[lines]
    return ids, relative, spans.counts[lines], *view.sources.words_and_signatures(sentence.words, ids)


def write_smoother(folder: Path, files: dict[str, bytes]) -> None:
    """Put the files of a smoother into a folder, those that name others after these."""
    folder.mkdir(exist_ok=True, parents=True)
    for name in sorted(files, key=lambda name: name.endswith(".json")):
        write_atomically(folder / name, files[name])
    for old in folder.iterdir():
        if old.name not in files and not old.name.startswith("."):
            old.unlink(missing_ok=True)
