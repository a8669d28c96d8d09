"""From pairs of text to entries: what may go in, what is there already, and the keys of the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

import numpy as np
import numpy.typing as npt

from kster.errors import KsterError
from kster.formats import MAX_CHARS, Pair, Rejection
from kster.formats.pair import UnusableUnit
from kster.formats.text import check_pair
from kster.memory.key_maker import KeyMaker
from kster.memory.report import ImportReport
from kster.memory.segment import Segment
from kster.memory.store.database import NewSegment
from kster.memory.store.description import now
from kster.memory.store.staging import Draft, Staging
from kster.memory.store.store import Change, Store
from kster.text.characters import printable

Text = tuple[str, str]  # source and target

CHUNK = 512  # pairs looked at together; bounds memory however long an import is


def stage(
    store: Store,
    staging: Staging,
    model: KeyMaker,
    pairs: Iterable[Pair | Rejection],
    origin: str | None,
    progress: Callable[[int], None] | None = None,
    chunk_size: int = CHUNK,
) -> ImportReport:
    """Make the keys of every pair that is new and usable. Nothing is locked, and the memory is not changed.

    progress: called with the number of pairs dealt with so far.
    """
    report, stream, seen = ImportReport(), iter(pairs), 0
    while chunk := list(islice(stream, chunk_size)):
        new: dict[int, Pair] = {}  # by number in the import, from 1
        earlier: set[Text] = set()  # of this chunk: not staged yet
        known = known_texts(store, [item for item in chunk if isinstance(item, Pair)])
        for number, item in enumerate(chunk, seen + 1):
            if isinstance(item, Rejection):
                report.rejected.append(item)
            elif reason := flaw(item):
                report.rejected.append(_rejection(item, number, origin, reason))
            elif (text := (item.source, item.target)) in earlier or text in known or staging.has(*text):
                report.duplicates += 1
            else:
                earlier.add(text)
                new[number] = item
        for number, outcome in zip(new, drafts_of(model, list(new.values()), origin), strict=True):
            if isinstance(outcome, Draft):
                staging.put(outcome)
                report.added += 1
            else:
                report.rejected.append(_rejection(new[number], number, origin, outcome))
        seen += len(chunk)
        if progress is not None:
            progress(seen)
    return report


def write_staged(change: Change, staging: Staging, report: ImportReport) -> None:
    """Add what was staged, except for what other writers have added meanwhile."""
    for draft in staging.drafts():
        if change.database.by_pair(draft.new.source, draft.new.target):
            report.added -= 1
            report.duplicates += 1
        else:
            change.add(draft)


def add_all(store: Store, model: KeyMaker, pairs: list[Pair], origin: str | None) -> list[Segment]:
    """For each flawless pair its segment: the one there is, or a new one."""
    known = known_texts(store, pairs)
    new: dict[Text, Pair] = {}
    for pair in pairs:
        if (pair.source, pair.target) not in known:
            new.setdefault((pair.source, pair.target), pair)
    drafts = checked_drafts(model, list(new.values()), origin)
    with store.writing() as change:
        return [_add(change, model, pair, origin, drafts) for pair in pairs]


def replace_unit(store: Store, model: KeyMaker, pair: Pair, origin: str | None) -> Segment:
    """Make this flawless pair the only segment with its unit id."""
    assert pair.id is not None
    with store.reading() as database:
        known = any(_is(segment, pair) for segment in database.by_unit(pair.id))
    drafts = {} if known else checked_drafts(model, [pair], origin)
    with store.writing() as change:
        old = change.database.by_unit(pair.id)
        kept = [segment for segment in old if _is(segment, pair)][:1]
        if outdated := [segment.id for segment in old if segment not in kept]:
            change.remove(outdated)
        if kept:
            return kept[0]
        drafts = drafts or checked_drafts(model, [pair], origin)  # another writer has just removed it
        return change.add(drafts[pair.source, pair.target])


def edit_segment(store: Store, model: KeyMaker, id: int, pair: Pair, origin: str | None) -> Segment:
    """Put this flawless pair in the place of a segment; where it is there already, it is what remains."""
    drafts = {} if known_texts(store, [pair]) else checked_drafts(model, [pair], origin)
    with store.writing() as change:
        if id not in change.database.by_ids([id]):
            raise KsterError(f"{store.directory}: no segment {id}; nothing was changed")
        segment = _add(change, model, pair, origin, drafts)
        if segment.id != id:
            change.remove([id])
        return segment


def _add(
    change: Change, model: KeyMaker, pair: Pair, origin: str | None, drafts: dict[Text, Draft]
) -> Segment:
    text = pair.source, pair.target
    if there := change.database.by_pair(*text):
        return there[0]
    if text not in drafts:  # known before, and just removed by another writer
        drafts |= checked_drafts(model, [pair], origin)
    return change.add(drafts[text])


def known_texts(store: Store, pairs: Iterable[Pair]) -> set[Text]:
    """Those of these pairs that the memory has now."""
    with store.reading_apart() as database:
        return {text for pair in pairs if database.by_pair(*(text := (pair.source, pair.target)))}


def checked_drafts(model: KeyMaker, pairs: list[Pair], origin: str | None) -> dict[Text, Draft]:
    """Drafts of all of these pairs; raises KsterError when the model cannot make keys of one."""
    drafts = {}
    for outcome in drafts_of(model, pairs, origin):
        if isinstance(outcome, str):
            raise KsterError(f"{outcome}; nothing was added")
        drafts[outcome.new.source, outcome.new.target] = outcome
    return drafts


def drafts_of(model: KeyMaker, pairs: Sequence[Pair], origin: str | None) -> Iterator[Draft | str]:
    """For each flawless pair in turn: its draft, or the reason why the model cannot make keys of it."""
    created = now()
    named = None if origin is None else printable(origin)  # names of files may hold any bytes
    reasons = too_long(model, pairs)
    fitting = [pair for pair, reason in zip(pairs, reasons, strict=True) if reason is None]
    forced = iter(model.make_keys([(pair.source, pair.target) for pair in fitting]))
    for pair, reason in zip(pairs, reasons, strict=True):
        if reason is not None:
            yield reason
            continue
        sentence = next(forced)  # .keys (n, d), .tokens (n,)
        keys = sentence.keys.numpy()
        if not _all_finite(keys):
            yield "the model's states for it do not fit into float16"
            continue
        new = NewSegment(pair.source, pair.target, named, pair.id, created)
        yield Draft(new, keys, sentence.tokens.numpy())


def _all_finite(keys: npt.NDArray[np.float16]) -> bool:
    """By the exponent's bits: ten times as fast as np.isfinite, which has to convert every number first."""
    return not ((keys.view(np.uint16) & 0x7C00) == 0x7C00).any()


def require_flawless(pairs: Sequence[Pair]) -> None:
    """Raises KsterError, saying that nothing was added."""
    for number, pair in enumerate(pairs, 1):
        where = f"pair {number}: " if len(pairs) > 1 else ""
        for side, text in (("source", pair.source), ("target", pair.target)):
            if not text.strip():
                raise KsterError(
                    f"{where}the {side} is {'blank' if text else 'empty'}; "
                    "accepted: a text and its translation; nothing was added"
                )
        if reason := flaw(pair):
            raise KsterError(f"{where}{reason}; nothing was added")


def flaw(pair: Pair) -> str | None:
    """Why this pair cannot be a segment of any memory; None when it can.

    The rule is the one readers of files have, so that whatever a memory holds can be exported and imported.
    """
    try:
        check_pair(pair.source, pair.target, pair.id, MAX_CHARS)
    except UnusableUnit as reason:
        return str(reason)
    return None


def too_long(model: KeyMaker, pairs: Sequence[Pair]) -> list[str | None]:
    """For each pair: why it is too long for the model; None when it is not."""
    sources = model.tokenise_source([pair.source for pair in pairs])
    targets = model.tokenise_target([pair.target for pair in pairs])
    reasons: list[str | None] = []
    for source, target in zip(sources, targets, strict=True):
        side, tokens = max(("source", source), ("target", target), key=lambda x: len(x[1]))
        fits = len(tokens) <= model.max_length
        limit = f"{len(tokens)} tokens, the model reads at most {model.max_length}"
        reasons.append(None if fits else f"the {side} is too long: {limit}")
    return reasons


def _is(segment: Segment, pair: Pair) -> bool:
    return (segment.source, segment.target) == (pair.source, pair.target)


def _rejection(pair: Pair, number: int, origin: str | None, reason: str) -> Rejection:
    unit = pair.id or (f"pair {number}" if pair.line is None else None)
    return Rejection(file=origin or "", line=pair.line, unit=unit, reason=reason)
