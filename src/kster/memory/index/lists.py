"""FAISS inverted lists over the rows of a memory: trained, extended, kept in a file, and asked.

Derived from the entry files alone: whatever is wrong with a file of lists, they can be made anew.
"""

from __future__ import annotations

import importlib
import logging
import os
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from kster.memory.settings import POINTS_PER_LIST, SearchSettings
from kster.memory.store.snapshot import Snapshot

ADD = 1 << 12  # rows added at a time, while searches wait: a tenth of a second with 1,500 lists and d = 512
SAVE_GROWTH = 1.25  # the file is written anew when the lists have grown by this much
ABANDONED = 3_600  # seconds after which a file that nobody wrote to any more was left by a writer that died

Rows = npt.NDArray[np.int64]

faiss: Any = importlib.import_module("faiss")  # its stubs do not know its keyword arguments

log = logging.getLogger(__name__)


class Lists:
    """A trained FAISS index over rows 0 …, and the guard it needs: FAISS cannot add while it searches."""

    def __init__(self, index: Any, trained_on: int, directory: Path) -> None:
        # index_factory and read_index may give a wrapper, on which nprobe and selectors have no effect.
        self._whole, self._inner = index, faiss.extract_index_ivf(index)
        self.trained_on = trained_on
        self.directory = directory
        self._saved_rows = 0
        self._guard = SharedGuard()

    @property
    def rows(self) -> int:
        return self._inner.ntotal

    @property
    def bytes_in_ram(self) -> int:
        return self.rows * (self._inner.code_size + 8) + self._inner.nlist * self._inner.d * 4

    @contextmanager
    def searching(self) -> Iterator[Any]:
        with self._guard.shared():
            yield self._inner

    @classmethod
    def train(cls, snapshot: Snapshot, directory: Path, settings: SearchSettings) -> Lists:
        """Choose the lists' centres from a sample; the lists are empty yet."""
        live = np.flatnonzero(snapshot.live)
        lists = settings.lists(len(live))
        log.info("building the search index: %d entries in %d lists", snapshot.rows, lists)
        sample = np.random.default_rng(0).permutation(live)[: lists * POINTS_PER_LIST]
        index = faiss.index_factory(snapshot.entries.dimension, f"IVF{lists},SQ8")
        index.train(snapshot.entries.gather(np.sort(sample)).astype(np.float32))
        return cls(index, snapshot.rows, directory)

    def extend(self, snapshot: Snapshot) -> None:
        """Add all rows the lists lack; saved when they have grown much."""
        for first in range(self.rows, snapshot.rows, ADD):
            keys = snapshot.entries.keys(first, min(first + ADD, snapshot.rows)).astype(np.float32)
            with self._guard.exclusive():
                self._whole.add(keys)
        if self.rows >= SAVE_GROWTH * self._saved_rows:
            self._save(snapshot)

    # The file ------------------------------------------------------------------------------------
    # Its name says what it holds: ivf-EPOCH-TRAINED-ROWS-CONTENTHASH.faiss.

    @classmethod
    def read(cls, snapshot: Snapshot, directory: Path, settings: SearchSettings) -> Lists | None:
        """The saved index, if it is of this memory's present files and not outgrown."""
        for path in directory.glob("ivf-*.faiss"):
            match = re.fullmatch(r"ivf-(\d+)-(\d+)-(\d+)-([0-9a-f]{8})\.faiss", path.name)
            if match is None:
                continue
            epoch, trained_on, rows = (int(match[i]) for i in (1, 2, 3))
            fits = epoch == snapshot.epoch and rows <= snapshot.rows <= settings.retrain_growth * trained_on
            if not fits or f"{snapshot.content_hash(rows):08x}" != match[4]:
                continue
            with suppress(RuntimeError):  # damaged or not readable: it will be built anew
                lists = cls(faiss.read_index(str(path)), trained_on, directory)
                lists._saved_rows = rows
                if lists.rows == rows:
                    return lists
        return None

    def _save(self, snapshot: Snapshot) -> None:
        name = (
            f"ivf-{snapshot.epoch}-{self.trained_on}-{self.rows}-{snapshot.content_hash(self.rows):08x}.faiss"
        )
        new = self.directory / f"{name}.{os.getpid()}-{threading.get_ident()}.new"
        try:
            self.directory.mkdir(exist_ok=True)
            for path in self.directory.glob("ivf-*.new"):
                if time.time() - path.stat().st_mtime > ABANDONED:
                    path.unlink(missing_ok=True)
            faiss.write_index(self._whole, str(new))
            new.replace(self.directory / name)
            for path in self.directory.glob("ivf-*.faiss"):
                if path.name != name:
                    path.unlink(missing_ok=True)
        except (OSError, RuntimeError) as error:  # a read-only or full disk only costs the next start time
            log.warning("the search index could not be saved (%s)", error)
            with suppress(OSError):
                new.unlink(missing_ok=True)
        self._saved_rows = self.rows


class SharedGuard:
    """Any number of searches, or one addition."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._searches = 0
        self._adding = False

    @contextmanager
    def shared(self) -> Iterator[None]:
        with self._changed:
            self._changed.wait_for(lambda: not self._adding)
            self._searches += 1
        try:
            yield
        finally:
            with self._changed:
                self._searches -= 1
                self._changed.notify_all()

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        with self._changed:
            self._changed.wait_for(lambda: not self._adding)
            self._adding = True  # keeps new searches out while those under way end
            self._changed.wait_for(lambda: self._searches == 0)
        try:
            yield
        finally:
            with self._changed:
                self._adding = False
                self._changed.notify_all()


class Probe:
    """A way to ask FAISS: in how many lists to look, and which rows may be found."""

    def __init__(self, lists: Any, probes: int, allowed: npt.NDArray[np.uint8] | None) -> None:
        """allowed: a bitmap of rows; None for all."""
        self._lists = lists
        self._parameters = faiss.SearchParametersIVF(nprobe=probes)
        if allowed is not None:
            self._allowed = allowed, faiss.IDSelectorBitmap(allowed)  # FAISS only points to both
            self._parameters.sel = self._allowed[1]

    def nearest(self, queries: npt.NDArray[np.float32], c: int) -> tuple[Rows, dict[int, Rows]]:
        """(n, c) rows of the nearest codes, -1 where there are fewer; and for queries with more codes at the
        distance of the last than fitted in, all rows up to that distance."""
        queries = np.ascontiguousarray(queries)
        distances, rows = self._lists.search(queries, c + 1, params=self._parameters)
        cut = (distances[:, c] == distances[:, c - 1]) & (rows[:, c] >= 0)
        tied = {int(i): self._up_to(queries[i], distances[i, c]) for i in np.flatnonzero(cut)}
        return rows[:, :c], tied

    def _up_to(self, query: npt.NDArray[np.float32], distance: np.float32) -> Rows:
        """(m,) rows of codes that are as near or nearer.

        FAISS itself keeps the oldest of equal codes, and equal keys have equal codes.
        """
        radius = np.nextafter(distance, np.float32(np.inf))
        return self._lists.range_search(query[None], radius, params=self._parameters)[2]
