"""Imports into a cluster: all of its cores make the keys, and all pairs appear at once.

What is imported is staged in directories that the catalogue does not name as parts of a memory. A small
import goes to one shard, which takes it over into the memory's newest part in one transaction. A large one is
divided among all shards by the words of the source (the same source in one place, so that the newest of
equal ones is known), and one commit in the catalogue makes the directories parts of the memory.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import chain, islice
from secrets import token_hex
from typing import Any, NamedTuple

import ray

from kster.cluster.calls import (
    CHANGE_SECONDS,
    SHARD,
    Unreachable,
    ask_of_parts,
    change,
    change_soon,
    got,
    shards_offered,
)
from kster.cluster.catalogue_service import Parts
from kster.cluster.wire import Part
from kster.errors import KsterError
from kster.formats import Pair, Rejection
from kster.memory import ImportReport, KeyMaker
from kster.memory.adding import Origin, drafts_of, flaw
from kster.memory.importing import CHUNK
from kster.memory.sources.words import signature_of
from kster.memory.store.change import Draft
from kster.memory.store.description import Description
from kster.model import BaseModel

log = logging.getLogger("kster.cluster")

PAIRS_A_TASK = CHUNK
TOUCHED_SECONDS = 60.0  # between two signs of life of an import
CHUNKS_AHEAD = 2  # whose keys are being made, for each core


class Destination(NamedTuple):
    """The memory that an import goes into."""

    number: int
    description: Description
    model: KeyMaker
    places: Parts

    @property
    def parts(self) -> list[Part]:
        return self.places.of(self.number, self.description.fingerprint)


class NamedModel(NamedTuple):
    """A model that every node has in the same place."""

    name: str
    precision: str
    source: str | None
    target: str | None
    gpu: bool


def reference_of(model: KeyMaker) -> NamedModel | KeyMaker:
    """What a task is given to have the same model: its name, or the model itself where that can travel."""
    if not isinstance(model, BaseModel):
        return model
    return NamedModel(
        model.name, model.network.precision, model.source_lang, model.target_lang, model.device.type == "cuda"
    )


@lru_cache(maxsize=2)
def _loaded(named: NamedModel) -> BaseModel:
    return BaseModel.load(
        named.name, precision=named.precision, source_lang=named.source, target_lang=named.target
    )


def model_of(reference: NamedModel | KeyMaker) -> KeyMaker:
    return _loaded(reference) if isinstance(reference, NamedModel) else reference


@ray.remote(max_retries=3)
def make_drafts(
    reference: NamedModel | KeyMaker, pairs: Sequence[Pair], origin: Origin, shards: int
) -> tuple[Any, ...]:
    """For each shard its drafts; and at last, for each pair that cannot be used, its place and why."""
    divided: list[list[Draft]] = [[] for _ in range(shards)]
    refused: list[tuple[int, str]] = []
    for place, outcome in enumerate(drafts_of(model_of(reference), pairs, origin)):
        if isinstance(outcome, Draft):
            divided[shard_of(outcome.new.source, shards)].append(outcome)
        else:
            refused.append((place, outcome))
    return (*divided, refused)


def shard_of(source: str, shards: int) -> int:
    """Which of so many directories a source belongs to."""
    return signature_of(source) % shards


def import_over_shards(
    memory: Destination,
    pairs: Iterable[Pair | Rejection],
    origin: Origin,
    progress: Callable[[int], None] | None,
    split_from: int,
) -> ImportReport:
    """See `Memory.import_pairs`. split_from: more pairs than this are divided among all shards."""
    stream = iter(pairs)
    beginning = list(islice(stream, split_from + 1))
    home = memory.parts[-1]
    shards, large = shards_offered(), len(beginning) > split_from
    if not large or len(shards) < 2:
        shards, large = [home.shard], False
    work = _Import(memory, shards, origin, progress)
    try:
        work.stage(chain(beginning, stream))
        if large:
            work.commit(home.shard)
        elif work.report.added:
            added, known = change(
                SHARD + home.shard, "take_over", token_hex(16), home.directory, work.directories[0]
            )
            work.report.added, work.report.duplicates = added, work.report.duplicates + known
    finally:
        work.discard()
    return work.report


class _Import:
    def __init__(
        self,
        memory: Destination,
        shards: Sequence[str],
        origin: Origin,
        progress: Callable[[int], None] | None,
    ) -> None:
        self.memory, self.parts, self.shards = memory, memory.places, shards
        self.origin, self.progress = origin, progress or (lambda _: None)
        self.report = ImportReport()
        self.id = token_hex(8)
        name = f"{memory.number}-{memory.description.fingerprint[:16]}-{self.id}"
        self.directories = [name for _ in shards]
        self._staged = list(zip(shards, self.directories, strict=True))  # ours until they are committed
        self._seen, self._touched = 0, 0.0
        self._model = ray.put(reference_of(memory.model))

    def stage(self, pairs: Iterator[Pair | Rejection]) -> None:
        """Make the keys of every pair that is new and usable."""
        self._touch()
        for shard, directory in self._staged:
            change(SHARD + shard, "create", directory, self.memory.description)
        cores = int(ray.cluster_resources().get("CPU", 1))
        under_way: deque[tuple[int, dict[int, Pair], Any]] = deque()
        while chunk := list(islice(pairs, PAIRS_A_TASK)):
            new = self._usable(chunk)
            self._seen += len(chunk)
            if new:
                drafts = make_drafts.options(
                    **_resources(self.memory.model), num_returns=len(self.shards) + 1
                )
                made = drafts.remote(self._model, list(new.values()), self.origin, len(self.shards))
                under_way.append((self._seen, new, made))
            if len(under_way) >= CHUNKS_AHEAD * cores:
                self._store(*under_way.popleft())
        while under_way:
            self._store(*under_way.popleft())
        self.progress(self._seen)

    def _usable(self, chunk: Sequence[Pair | Rejection]) -> dict[int, Pair]:
        """By number in the import, from 1. Pairs that are twice in it are found when they are stored."""
        new: dict[int, Pair] = {}
        pairs = [item for item in chunk if isinstance(item, Pair)]
        known = self._known([(pair.source, pair.target) for pair in pairs if not flaw(pair)])
        for number, item in enumerate(chunk, self._seen + 1):
            if isinstance(item, Rejection):
                self.report.rejected.append(item)
            elif reason := flaw(item):
                self.report.rejected.append(self._rejection(item, number, reason))
            elif (item.source, item.target) in known:
                self.report.duplicates += 1
            else:
                new[number] = item
        return new

    def _known(self, texts: Sequence[tuple[str, str]]) -> set[tuple[str, str]]:
        return set().union(*ask_of_parts(self.memory.parts, "known", texts).values())

    def _store(self, seen: int, new: dict[int, Pair], made: Sequence[Any]) -> None:
        """In the order of the import: of equal contexts the newest counts."""
        *drafts, refused = made
        asked = [
            change_soon(SHARD + shard, "add_drafts", token_hex(16), directory, own)
            for (shard, directory), own in zip(self._staged, drafts, strict=True)
        ]
        numbers = list(new)
        reasons = got(refused)
        for place, reason in reasons:
            self.report.rejected.append(self._rejection(new[numbers[place]], numbers[place], reason))
        added = sum(got(answer, CHANGE_SECONDS) for answer in asked)
        self.report.added += added
        self.report.duplicates += len(new) - len(reasons) - added
        if time.monotonic() - self._touched > TOUCHED_SECONDS:
            self._touch()
        self.progress(seen)

    def commit(self, home: str) -> None:
        """Make what was staged part of the memory, and a new part for what is added from now on."""
        memory, newest = self.memory, f"{self.directories[0]}-home"
        change(SHARD + home, "create", newest, memory.description)
        self.parts.add(memory.number, memory.description.fingerprint, [*self._staged, (home, newest)])
        self._staged = []

    def discard(self) -> None:
        """Delete what did not become part of the memory."""
        for shard, directory in self._staged:
            with suppress(Unreachable, KsterError):  # it is swept later
                change(SHARD + shard, "delete", [directory], seconds=5.0)
        if self._staged:
            with suppress(Unreachable):
                self.parts.forget_staged(self.directories)

    def _touch(self) -> None:
        self._touched = time.monotonic()
        self.parts.touch_staged(self._staged)

    def _rejection(self, pair: Pair, number: int, reason: str) -> Rejection:
        unit = pair.id or (f"pair {number}" if pair.line is None else None)
        return Rejection(file=self.origin.name or "", line=pair.line, unit=unit, reason=reason)


def _resources(model: KeyMaker) -> dict[str, float]:
    on_gpu = isinstance(model, BaseModel) and model.device.type == "cuda"
    return {"num_cpus": 0, "num_gpus": 1} if on_gpu else {"num_cpus": 1}
