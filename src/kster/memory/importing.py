"""Imports any number of pairs as one change: a small import with its keys, a large one as text only."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import TypeVar

from kster.formats import Pair, Rejection
from kster.memory.adding import (
    Origin,
    drafts_of_segments,
    flaw,
    known_texts,
    new_segment,
    plainly_too_long,
)
from kster.memory.key_maker import KeyMaker
from kster.memory.report import ImportReport
from kster.memory.store.change import Change, Draft
from kster.memory.store.description import now
from kster.memory.store.history import set_status, supersede_older
from kster.memory.store.staging import Staged, Staging, staging_area
from kster.memory.store.store import Store

CHUNK = 512  # pairs looked at together; bounds memory however long an import is
PATIENCE = 600.0  # seconds an import waits for other writers at least
SMALL = 2_000  # new pairs up to which keys are made before anything is written …
SMALL_CHARACTERS = 400_000  # … and characters of their targets: about 100 MiB of keys at d = 512

Progress = Callable[[int], None]
T = TypeVar("T")


def import_all(
    store: Store,
    model: KeyMaker,
    pairs: Iterable[Pair | Rejection],
    origin: Origin,
    progress: Progress | None,
    at_once: int,
    *,
    with_keys: bool,
) -> tuple[ImportReport, bool]:
    """Add all pairs that are new and usable; returns also whether they have their keys.

    with_keys: False leaves the keys of a small import for later, too.
    progress: called with the number of pairs dealt with so far.
    """
    tell = progress or (lambda _: None)
    with store.reading() as database:
        generation = database.state().generation
    with staging_area(store.directory) as staging:
        report = ImportReport()
        seen = 0
        for seen in _stage(store, staging, model, pairs, origin, report, at_once):
            if done := seen - staging.count if with_keys and _is_small(staging) else seen:
                tell(done)
        with_keys = with_keys and _is_small(staging)
        if with_keys:
            _add_with_keys(store, staging, model, origin, report, lambda left: tell(seen - left), at_once)
        elif staging.count or report.approved:
            with store.writing(PATIENCE) as change:
                newest = change.database.newest()
                _add_texts(change, staging, report, generation)
                _settle(change, report, newest, origin.author)
    return report, with_keys


def _settle(change: Change, report: ImportReport, newest: int, author: str | None) -> None:
    """Let new pairs supersede what was there, but not each other, and approve drafts that were finished.

    newest: the last segment that was there.
    """
    supersede_older(change, newest, author)
    drafts = change.database.by_ids(report.approved, state="draft").values()
    set_status(change, drafts, "approved", author)


def _is_small(staging: Staging) -> bool:
    return staging.count <= SMALL and staging.characters <= SMALL_CHARACTERS


def _stage(
    store: Store,
    staging: Staging,
    model: KeyMaker,
    pairs: Iterable[Pair | Rejection],
    origin: Origin,
    report: ImportReport,
    at_once: int,
) -> Iterator[int]:
    """Put what is new and usable into the area; yields the number of pairs read so far."""
    seen, created = 0, now()
    for chunk in _parts(pairs, at_once):
        usable: dict[int, Pair] = {}  # by number in the import, from 1
        for number, item in enumerate(chunk, seen + 1):
            if isinstance(item, Rejection):
                report.rejected.append(item)
            elif reason := flaw(item):
                report.rejected.append(_rejection(item.id, item.line, number, origin, reason))
            else:
                usable[number] = item
        texts = [(pair.source, pair.target) for pair in usable.values()]
        there = known_texts(store, list(usable.values())) | staging.known(texts)
        finished = [(p.source, p.target) for p in usable.values() if p.status == "approved"]
        with store.reading_apart() as database:
            approved = database.drafts_among(text for text in finished if text in there)
        report.approved += approved
        report.duplicates -= len(approved)
        staged = []
        for (number, pair), reason in zip(usable.items(), plainly_too_long(model, texts), strict=True):
            text = pair.source, pair.target
            if text in there:
                report.duplicates += 1
            elif reason is not None:
                report.rejected.append(_rejection(pair.id, pair.line, number, origin, reason))
            else:
                there.add(text)
                report.drafts += pair.status == "draft"
                staged.append(Staged(number, pair.line, new_segment(pair, origin, created)))
        staging.put(staged)
        seen += len(chunk)
        yield seen


def _add_with_keys(
    store: Store,
    staging: Staging,
    model: KeyMaker,
    origin: Origin,
    report: ImportReport,
    tell_left: Progress,
    at_once: int,
) -> None:
    drafts: list[Draft] = []
    left = staging.count
    for part in _parts(staging.all(), at_once):
        for staged, outcome in zip(part, drafts_of_segments(model, [one.new for one in part]), strict=True):
            if isinstance(outcome, Draft):
                drafts.append(outcome)
            else:
                where = staged.new.unit, staged.line, staged.number
                report.rejected.append(_rejection(*where, origin, outcome))
        left -= len(part)
        tell_left(left)
    if not drafts and not report.approved:
        return
    with store.writing(PATIENCE) as change:
        newest = change.database.newest()
        for draft in drafts:
            if change.database.by_pair(draft.new.source, draft.new.target):
                report.duplicates += 1  # another writer has added it meanwhile
            else:
                change.add(draft)
                report.added += 1
        _settle(change, report, newest, origin.author)


def _add_texts(change: Change, staging: Staging, report: ImportReport, generation: int) -> None:
    """generation: of the memory when it was first asked which pairs it has."""
    rows: Iterable[tuple[object, ...]] = staging.rows()
    if change.database.state().generation != generation:  # others have written meanwhile
        rows = _without_known(change.database.known, rows)
    report.added = change.add_texts(rows)
    report.duplicates += staging.count - report.added


def _without_known(
    known: Callable[[Sequence[tuple[str, str]]], set[tuple[str, str]]], rows: Iterable[tuple[object, ...]]
) -> Iterable[tuple[object, ...]]:
    for part in _parts(rows, CHUNK):
        there = known([(str(source), str(target)) for source, target, *_ in part])
        yield from (row for row in part if row[:2] not in there)


def _parts(items: Iterable[T], size: int) -> Iterator[list[T]]:
    stream = iter(items)
    while part := list(islice(stream, size)):
        yield part


def _rejection(unit: str | None, line: int | None, number: int, origin: Origin, reason: str) -> Rejection:
    unit = unit or (f"pair {number}" if line is None else None)
    return Rejection(file=origin.name or "", line=line, unit=unit, reason=reason)
