"""A memory: examples that change the next translation the moment they are added."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from typing import Any, Literal

from kster.errors import KsterError
from kster.formats import Pair, Rejection, read_moses, read_pairs
from kster.memory.importing import (
    CHUNK,
    add_all,
    edit_segment,
    replace_unit,
    require_flawless,
    stage,
    write_staged,
)
from kster.memory.key_maker import KeyMaker
from kster.memory.readable import ReadableMemory
from kster.memory.report import CompactReport, ImportReport, bytes_under
from kster.memory.segment import Segment
from kster.memory.settings import SearchSettings
from kster.memory.store.description import Description
from kster.memory.store.store import Store

ENTRIES_PER_SHARD = 1 << 20  # 1 GiB of keys at d = 512
IMPORT_PATIENCE = 600.0  # seconds an import waits for other writers at least: its keys took long to make


class Memory(ReadableMemory):
    """A directory of examples made with one base model.

    Any number of threads may search while others write; one writes at a time, across processes, and the
    others wait (at most `lock_timeout` seconds). Keys are made before anybody has to wait for them.
    What a call has returned from survives a crash.
    """

    def __init__(
        self,
        directory: Path,
        description: Description,
        model: KeyMaker | None,
        search: SearchSettings,
        lock_timeout: float,
    ) -> None:
        """Use `Memory.create` or `Memory.open`."""
        super().__init__(directory, description, search, lock_timeout)
        self._model = model

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
    ) -> Memory:
        """Make an empty memory. Refuses a directory that has anything in it.

        model: loaded, or what to load: a Hugging Face directory or hub id.
        source_lang, target_lang: kept with the memory, for its model and for files read and written;
        by default what the model says. Multilingual models need both when they are loaded.
        """
        directory = Path(path)
        if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
            what = "exists and is not empty" if directory.is_dir() else "is not a directory"
            raise KsterError(f"{directory}: {what}; a memory needs a directory of its own")
        key_maker: KeyMaker = (
            _load(str(model), source_lang, target_lang) if isinstance(model, str | Path) else model
        )
        description = Description.of(key_maker, directory, entries_per_shard, source_lang, target_lang)
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
        """Open a memory; its model is loaded when first needed, unless given. Refuses another model."""
        directory = Path(path)
        description = Description.read(directory)
        if model is not None:
            description.require(model, directory)
        return cls(directory, description, model, search or SearchSettings(), lock_timeout)

    def __enter__(self) -> Memory:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def model(self) -> Any:
        """The base model that made this memory, loaded on first use."""
        if self._model is None:
            description = self.description
            location = description.model_location(self.directory)
            model = _load(location, description.source_lang, description.target_lang)
            description.require(model, self.directory)
            self._model = model
        return self._model

    # Adding and removing -------------------------------------------------------------------------

    def add(self, source: str, target: str, *, origin: str | None = None, unit: str | None = None) -> Segment:
        """Add one example; the next search finds it. A pair that is there already is returned as it is."""
        return self.add_many([Pair(source, target, unit)], origin=origin)[0]

    def add_many(self, pairs: Iterable[Pair], *, origin: str | None = None) -> list[Segment]:
        """Add all of these examples, or none of them when one cannot be used."""
        wanted = list(pairs)
        require_flawless(wanted)
        return add_all(self._store, self.model, wanted, origin)

    def replace(self, unit: str, source: str, target: str, *, origin: str | None = None) -> Segment:
        """Make this pair the only segment with this unit id."""
        pair = Pair(source, target, unit)
        require_flawless([pair])
        return replace_unit(self._store, self.model, pair, origin)

    def edit(
        self, id: int, source: str, target: str, *, origin: str | None = None, unit: str | None = None
    ) -> Segment:
        """Give a segment other texts. It gets a new id, since its entries are new; its unit id stays if None.

        Texts that another segment has already are not added again: that one is returned, this one removed.
        """
        pair = Pair(source, target, unit or self.segment(id).unit)
        require_flawless([pair])
        return edit_segment(self._store, self.model, id, pair, origin)

    def import_pairs(
        self,
        pairs: Iterable[Pair | Rejection],
        origin: str | None = None,
        progress: Callable[[int], None] | None = None,
        *,
        at_once: int = CHUNK,
    ) -> ImportReport:
        """Add any number of pairs as one change: if it fails midway, nothing of it is kept.

        Pairs that are there already are counted and skipped; pairs that cannot be used, and rejections
        that come with the pairs, are in the report with the reason. A source may have many targets.
        Others may write while keys are made; only the end of an import holds them up.
        progress: called with the number of pairs dealt with so far; if it raises, nothing is imported.
        at_once: pairs whose keys are made between two calls of progress.
        """
        if at_once < 1:
            raise KsterError(f"at_once is {at_once}; it must be at least 1. Nothing was imported")
        with self._store.staging() as staging:
            report = stage(self._store, staging, self.model, pairs, origin, progress, at_once)
            if report.added:
                with self._store.writing(IMPORT_PATIENCE) as change:
                    write_staged(change, staging, report)
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
    ) -> ImportReport:
        """Import the pairs of a file, whole or not at all; see `import_pairs`.

        path: .tmx .xlf .xliff .po .tsv .csv …, also with .gz or .xz; or instead of it
        source, target: two files, line by line.
        Languages are the memory's unless given; format is known by the file's name unless given;
        tags says what to do with inline elements of TMX and XLIFF.
        """
        own = self.description
        if path is not None and source is None and target is None:
            languages = source_lang or own.source_lang, target_lang or own.target_lang
            read, origin = read_pairs(path, *languages, format=format, tags=tags), str(path)
        elif path is None and source is not None and target is not None:
            read, origin = read_moses(source, target), f"{source}, {target}"
        else:
            raise KsterError("name what to import: a file, or source and target; nothing was imported")
        with closing(read) as pairs:  # type: ignore[type-var]  # a generator, which closes its file
            return self.import_pairs(pairs, origin=origin, progress=progress)

    def remove(self, ids: int | Iterable[int]) -> int:
        """Remove segments for good; returns how many. When one is unknown none is removed."""
        wanted = {ids} if isinstance(ids, int) else set(ids)
        with self._store.writing() as change:
            if unknown := sorted(wanted - change.database.by_ids(wanted).keys()):
                named = ", ".join(map(str, unknown[:10])) + (" …" if len(unknown) > 10 else "")
                raise KsterError(f"{self.directory}: no segment {named}; nothing was removed")
            change.remove(wanted)
        return len(wanted)

    def remove_pair(self, source: str, target: str) -> int:
        """Remove the segment with exactly this source and target; returns how many there were."""
        with self._store.writing() as change:
            found = [segment.id for segment in change.database.by_pair(source, target)]
            if found:
                change.remove(found)
        return len(found)

    # Caring --------------------------------------------------------------------------------------

    def compact(self) -> CompactReport:
        """Give back the space of removed segments. Ids of what remains do not change."""
        before = bytes_under(self.directory)
        segments, entries = self._store.compact()
        return CompactReport(segments, entries, max(0, before - bytes_under(self.directory)))


def _load(name: str, source_lang: str | None = None, target_lang: str | None = None) -> Any:
    from kster.model import BaseModel

    return BaseModel.load(name, source_lang=source_lang, target_lang=target_lang)
