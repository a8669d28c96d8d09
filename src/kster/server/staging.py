"""A long import that holds up nobody: keys are made beside the memory, then written into it at once.

Making keys takes the model minutes; a memory lets one writer in at a time. So pairs are first imported
into a memory of the import's own, and its keys are then copied in one short change. Either all of it is
there afterwards, or none.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import torch
from torch import Tensor

from kster.formats import Pair, Rejection
from kster.memory import ImportReport, Memory
from kster.memory.key_maker import ForcedKeys, KeyMaker

PAIRS_AT_ONCE = 32  # between two reports of progress, and two chances for others to use the model
BREATH = 0.002  # seconds; a lock let go and taken again at once is never anybody else's


def import_staged(
    target: Memory,
    pairs: Iterable[Pair | Rejection],
    staging: Path,
    origin: str | None,
    progress: Callable[[int], None],
) -> ImportReport:
    """Import pairs into `target`. progress: called with the number of pairs whose keys are made.

    staging: a directory that does not exist yet; the caller deletes it. progress may raise to stop the
    import; the target is then as it was.
    """
    model: KeyMaker = target.model
    with Memory.create(staging, _Reporting(model, progress)) as made:
        learned = made.import_pairs(pairs, origin)
        with Memory.open(target.directory, _Recalling(model, made), lock_timeout=600) as written:
            report = written.import_pairs(made.export(), origin)
    report.duplicates += learned.duplicates
    report.rejected = learned.rejected + report.rejected
    return report


class _Model:
    """As far as a memory can see, the model it stands for."""

    def __init__(self, model: KeyMaker) -> None:
        self._model = model
        self.name, self.fingerprint = model.name, model.fingerprint
        self.dimension, self.vocabulary_size = model.dimension, model.vocabulary_size
        self.max_length = model.max_length
        self.source_lang, self.target_lang = model.source_lang, model.target_lang

    def tokenise_source(self, texts: Sequence[str]) -> list[list[int]]:
        return self._model.tokenise_source(texts)

    def tokenise_target(self, texts: Sequence[str]) -> list[list[int]]:
        return self._model.tokenise_target(texts)


class _Reporting(_Model):
    """The model, telling after every few pairs how far it is."""

    def __init__(self, model: KeyMaker, progress: Callable[[int], None]) -> None:
        super().__init__(model)
        self._progress, self._done = progress, 0

    def force_decode(self, pairs: Iterable[tuple[str, str]]) -> Iterator[ForcedKeys]:
        stream = iter(pairs)
        while some := list(islice(stream, PAIRS_AT_ONCE)):
            yield from self._model.force_decode(some)
            self._done += len(some)
            self._progress(self._done)
            time.sleep(BREATH)


@dataclass(frozen=True, slots=True)
class _Keys:
    keys: Tensor  # (n, d) float16
    tokens: Tensor  # (n,) int32


class _Recalling(_Model):
    """Gives the keys another memory holds instead of making them; asked in that memory's order."""

    def __init__(self, model: KeyMaker, made: Memory) -> None:
        super().__init__(model)
        self._entries = made.entries()
        self._segments = _in_order(made)

    def tokenise_source(self, texts: Sequence[str]) -> list[list[int]]:
        return [[] for _ in texts]  # only lengths are looked at, and these pairs were short enough before

    tokenise_target = tokenise_source

    def force_decode(self, pairs: Iterable[tuple[str, str]]) -> Iterator[ForcedKeys]:
        entries = self._entries
        for wanted in pairs:
            segment = next(id for id, pair in self._segments if pair == wanted)
            bounds = torch.tensor([segment, segment + 1])
            start, end = torch.searchsorted(entries.segment_ids, bounds).tolist()
            yield _Keys(entries.keys_of(entries.ids[start:end]), entries.values[start:end].int())


def _in_order(memory: Memory) -> Iterator[tuple[int, tuple[str, str]]]:
    offset = 0
    while page := memory.segments(limit=1_000, offset=offset):
        for segment in page:
            yield segment.id, (segment.source, segment.target)
        offset += len(page)
