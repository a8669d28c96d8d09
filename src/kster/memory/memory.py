"""A memory: examples that change the next translation the moment they are added."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self, get_args

import numpy as np

from kster.errors import KsterError, MemoryStoreError
from kster.formats import Pair, Rejection, read_moses, read_pairs
from kster.memory.adding import Origin, approved
from kster.memory.changeable import ChangeableMemory, load_model
from kster.memory.importing import CHUNK, import_all
from kster.memory.key_maker import KeyMaker
from kster.memory.key_making import AT_ONCE, CHANGES, make_keys
from kster.memory.report import ImportReport
from kster.memory.search.retriever import Batch, Searcher
from kster.memory.search.settings import SearchSettings
from kster.memory.store.backup import restore
from kster.memory.store.description import FILE, FLOAT16, Description
from kster.memory.store.store import Store

if TYPE_CHECKING:
    from kster.smoothing import FitReport, FitSettings, TuneReport

ENTRIES_PER_SHARD = 1 << 20  # 1 GiB of keys at d = 512

Keys = Literal["auto", "now", "later"]
KEYS: tuple[Keys, ...] = get_args(Keys)

log = logging.getLogger(__name__)


class Memory(ChangeableMemory):
    """A directory of examples made with one base model.

    Any number of threads may search while others write; one writes at a time, across processes, and the
    others wait (at most `lock_timeout` seconds). Keys are made before anybody has to wait for them.
    What a call has returned from survives a crash.
    """

    # Opening and closing -------------------------------------------------------------------------

    @classmethod
    def create(
        cls,
        path: str | Path,
        model: KeyMaker | str | Path,
        *,
        source_lang: str | None = None,
        target_lang: str | None = None,
        search: SearchSettings | None = None,
        lock_timeout: float = 30.0,
        entries_per_shard: int = ENTRIES_PER_SHARD,
        key_format: str = FLOAT16,
    ) -> Memory:
        """Make an empty memory in a directory of its own.

        Args:
            path: the directory, which must be empty or not there yet.
            model: the base model, or its directory or hub id.
            source_lang, target_lang: kept with the memory, for its model and for files read and written; by
                default what the model says. Models of several languages need both.
            search: how the memory is searched.
            lock_timeout: how many seconds a change waits for another writer.
            entries_per_shard: how many keys one file holds.
            key_format: "float16", or "int8" for half the disk and keys that are rounded more.

        Returns:
            The open memory.

        Raises:
            KsterError: if there is anything in the directory, or the model cannot be loaded.
        """
        directory = Path(path)
        if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
            what = "exists and is not empty" if directory.is_dir() else "is not a directory"
            raise KsterError(f"{directory}: {what}; a memory needs a directory of its own")
        key_maker = _loaded(model, source_lang, target_lang)
        description = Description.of(
            key_maker, directory, entries_per_shard, source_lang, target_lang, key_format
        )
        Store.create(directory, description)
        return cls.open(directory, key_maker, search=search, lock_timeout=lock_timeout)

    @classmethod
    def open(
        cls,
        path: str | Path,
        model: KeyMaker | None = None,
        *,
        search: SearchSettings | None = None,
        lock_timeout: float = 30.0,
    ) -> Memory:
        """Open a memory.

        Args:
            path: the memory's directory.
            model: the model that made it; if not given, it is loaded when it is first needed.
            search: how the memory is searched.
            lock_timeout: how many seconds a change waits for another writer.

        Returns:
            The open memory; `close` it, or use it as a context manager.

        Raises:
            KsterError: if the directory holds no memory, or one that is damaged or was made by another model.
        """
        directory = Path(path)
        description = Description.read(directory)
        if model is not None:
            description.require(model, directory)
        return cls(directory, description, model, search or SearchSettings(), lock_timeout)

    @classmethod
    def open_or_create(
        cls,
        path: str | Path,
        model: KeyMaker | str | Path,
        *,
        source_lang: str | None = None,
        target_lang: str | None = None,
        search: SearchSettings | None = None,
        lock_timeout: float = 30.0,
    ) -> Memory:
        """Open the memory in a directory, or make an empty one where there is none yet.

        Args:
            path: the memory's directory.
            model: the base model, or its directory or hub id.
            source_lang, target_lang: needed to load a model of several languages.
            search: how the memory is searched.
            lock_timeout: how many seconds a change waits for another writer.

        Returns:
            The open memory.

        Raises:
            KsterError: if the directory holds a memory of another model, or something that is not a memory.
        """
        key_maker = _loaded(model, source_lang, target_lang)
        if (Path(path) / FILE).exists():
            return cls.open(path, key_maker, search=search, lock_timeout=lock_timeout)
        return cls.create(
            path,
            key_maker,
            source_lang=source_lang,
            target_lang=target_lang,
            search=search,
            lock_timeout=lock_timeout,
        )

    @staticmethod
    def restore(file: str | Path, path: str | Path) -> None:
        """Restore a memory from what `back_up` wrote; everything is verified first.

        Args:
            file: The backup.
            path: A new directory.

        Raises:
            KsterError: If the backup is damaged, or the directory has anything in it.
        """
        restore(Path(file), Path(path))

    @property
    def memories(self) -> Sequence[Memory]:
        """The memory itself, as a `MemoryGroup` has several."""
        return [self]

    def __enter__(self) -> Memory:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Importing ------------------------------------------------------------------------------------

    def import_pairs(
        self,
        pairs: Iterable[Pair | Rejection],
        origin: str | None = None,
        progress: Callable[[int], None] | None = None,
        *,
        at_once: int = CHUNK,
        keys: Keys = "auto",
        author: str | None = None,
        approve_drafts: bool = False,
    ) -> ImportReport:
        """Add any number of pairs as one change: if it fails midway, nothing of it is kept.

        A source may have many targets: pairs take the place of older ones with the same source and context,
        but not of each other. Others may write meanwhile; only the end of an import holds them up.
        The pairs can be used as soon as this returns, whether or not their keys are made: what a translation
        needs is made then, the rest by `make_keys`.

        Args:
            pairs: the pairs, and rejections to be reported with them.
            origin: where they come from.
            progress: called with the number of pairs dealt with so far; if it raises, nothing is imported.
            at_once: how many pairs are dealt with between two calls of progress.
            keys: "now" returns when all keys are made, "later" makes none, "auto" makes those of a small
                import (up to 2,000 pairs).
            author: who imports them, for pairs that do not say.
            approve_drafts: whether drafts teach like other pairs.

        Returns:
            How many were added, how many were there already, and which could not be used and why.

        Raises:
            KsterError: if the memory cannot be written.
        """
        if at_once < 1:
            raise KsterError(f"at_once is {at_once}; it must be at least 1. Nothing was imported")
        if keys not in KEYS:
            raise KsterError(f"keys {keys!r} is unknown; accepted: {', '.join(KEYS)}. Nothing was imported")
        if approve_drafts:
            pairs = map(approved, pairs)
        by = Origin(origin, author)
        report, complete = import_all(
            self._store, self.model, pairs, by, progress, at_once, with_keys=keys != "later"
        )
        if not complete and report.added:
            self.sources()  # the first translation need not wait for the index of sources
        if keys == "now":
            self.make_keys(at_once=max(at_once, AT_ONCE))
        return report

    def import_file(
        self,
        path: str | Path | None = None,
        *,
        source: str | Path | None = None,
        target: str | Path | None = None,
        source_lang: str | None = None,
        target_lang: str | None = None,
        format: str | None = None,
        tags: Literal["strip", "keep"] = "strip",
        progress: Callable[[int], None] | None = None,
        keys: Keys = "auto",
        author: str | None = None,
        approve_drafts: bool = False,
    ) -> ImportReport:
        """Import the pairs of a file, whole or not at all.

        Args:
            path: a .tmx, .xlf, .xliff, .po, .tsv or .csv file, also with .gz or .xz.
            source, target: instead of `path`, two files that pair up line by line.
            source_lang, target_lang: which languages of the file to read; by default the memory's.
            format: the kind of file; by default known by its name.
            tags: whether inline elements of TMX and XLIFF are left out ("strip") or kept as text ("keep").
            progress: called with the number of pairs dealt with so far.
            keys, author, approve_drafts: see `import_pairs`. Drafts are what a file marks as fuzzy,
                unfinished or translated by a machine.

        Returns:
            How many were added, how many were there already, and which could not be used and why.

        Raises:
            KsterError: if the file cannot be read; nothing is imported then.
        """
        own = self.description
        if path is not None and source is None and target is None:
            languages = source_lang or own.source_lang, target_lang or own.target_lang
            read = read_pairs(path, *languages, format=format, tags=tags, drafts=True)
            origin = str(path)
        elif path is None and source is not None and target is not None:
            read, origin = read_moses(source, target), f"{source}, {target}"
        else:
            raise KsterError("name what to import: a file, or source and target; nothing was imported")
        with closing(read) as pairs:  # type: ignore[type-var]  # a generator, which closes its file
            return self.import_pairs(
                pairs, origin, progress, keys=keys, author=author, approve_drafts=approve_drafts
            )

    def make_keys(
        self,
        most: int | None = None,
        progress: Callable[[int], None] | None = None,
        *,
        ids: Sequence[int] | None = None,
        at_once: int = AT_ONCE,
    ) -> int:
        """Make keys that were left for later: of the segments that translations asked for, then the newest.

        What is made is kept whenever this ends. Several processes may do this at once.

        Args:
            most: how many segments at most; by default all.
            progress: called with the number of segments done so far.
            ids: only those of these segments.
            at_once: how many are made between two calls of progress.

        Returns:
            How many segments got their keys.

        Raises:
            KsterError: if the memory cannot be written.
        """
        if ids is not None:
            return sum(make_keys(self._store, self.model, ids))
        done, several = 0, CHANGES * at_once
        while most is None or done < most:
            count = several if most is None else min(several, most - done)
            if not (ids := self._demand.next(self._store, count)):
                break
            for given in make_keys(self._store, self.model, ids, at_once):
                done += given
                if progress is not None:
                    progress(done)
        return done

    @classmethod
    def retriever_of_all(
        cls, memories: Sequence[tuple[Self, int]], searcher: Searcher, batch: Batch
    ) -> Searcher:
        """As `SearchedMemory.retriever_of_all`, with the keys made of what resembles these texts most."""
        for memory, _ in memories:
            memory.make_wanted_keys(batch.texts)
        return super().retriever_of_all(memories, searcher, batch)

    def make_wanted_keys(self, texts: Sequence[str]) -> None:
        """Make the keys that the best segments of each text's shortlist lack; those of the rest come next.

        Args:
            texts: source texts that are about to be translated.
        """
        snapshot = self._reader.snapshot()
        lacking = snapshot.without_keys  # (s,)
        if not lacking.any():
            return
        settings, sources = self.search_settings, self.sources(snapshot)
        at_once: dict[int, None] = {}
        for text in texts:
            ids = sources.similar(text, settings.shortlist).segment_ids  # (m,), best first
            missing = lacking[np.searchsorted(snapshot.spans.segment_ids, ids)]
            best = np.arange(len(ids)) < settings.keys_on_demand
            at_once |= dict.fromkeys(ids[missing & best].tolist())
            self._demand.add(ids[missing & ~best].tolist())
        try:
            sum(make_keys(self._store, self.model, list(at_once)))
        except MemoryStoreError as error:  # it is read-only, or another writer is busy
            log.warning("translating without the keys of %d segments: %s", len(at_once), error)

    # Learning from it -----------------------------------------------------------------------------

    def fit(
        self,
        settings: FitSettings | None = None,
        dev: Sequence[tuple[str, str]] | None = None,
        *,
        general: Sequence[tuple[str, str]] | None = None,
    ) -> FitReport:
        """Learn how much to believe this memory's segments, as `kster fit` does; used from then on.

        Args:
            settings: how to fit; by default `FitSettings()`.
            dev: (source, target) pairs that decide when to stop; by default some of the memory's own
                segments.
            general: (source, target) pairs of general text; by default what ships for the languages.

        Returns:
            What was learned, and how much better it is on the development text.

        Raises:
            KsterError: if the memory is empty, or a pair is too long for the model.
        """
        from kster.smoothing import fit

        return fit(self.model, self, settings, dev, general=general)

    def tune(self, dev: Sequence[tuple[str, str]] | None = None) -> TuneReport:
        """Choose kNN-MT's settings for this memory, as `kster tune` does; `method="knn"` then uses them.

        Args:
            dev: (source, target) pairs to choose by; by default the memory's own segments.

        Returns:
            Every combination that was tried, and the best.

        Raises:
            KsterError: if the memory is empty, or a pair is too long for the model.
        """
        from kster.smoothing import tune

        return tune(self.model, self, dev)


def _loaded(model: KeyMaker | str | Path, source_lang: str | None, target_lang: str | None) -> KeyMaker:
    return load_model(str(model), source_lang, target_lang) if isinstance(model, str | Path) else model
