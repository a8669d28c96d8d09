"""From pairs of text to entries: what may go in, what is there already, and the keys of the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

import torch

from kster.errors import KsterError
from kster.formats import MAX_CHARS, Pair, Rejection
from kster.formats.pair import UnusableUnit
from kster.formats.text import check_pair, printable
from kster.memory.database import NewSegment
from kster.memory.description import now
from kster.memory.key_maker import KeyMaker
from kster.memory.report import ImportReport
from kster.memory.segment import Segment
from kster.memory.store import Change

CHUNK = 2_048  # pairs looked at together; bounds memory however long an import is


def import_into(
    change: Change,
    model: KeyMaker,
    pairs: Iterable[Pair | Rejection],
    origin: str | None,
    progress: Callable[[int], None] | None = None,
) -> ImportReport:
    """Add every pair that is new and usable. progress: called with the number of pairs seen so far."""
    report, stream, seen = ImportReport(), iter(pairs), 0
    while chunk := list(islice(stream, CHUNK)):
        new: dict[int, Pair] = {}  # by number in the import, from 1
        earlier: set[tuple[str, str]] = set()  # of this chunk: not in the database yet
        for number, item in enumerate(chunk, seen + 1):
            if isinstance(item, Rejection):
                report.rejected.append(item)
            elif reason := flaw(item):
                report.rejected.append(_rejection(item, number, origin, reason))
            elif (item.source, item.target) in earlier or change.database.by_pair(item.source, item.target):
                report.duplicates += 1
            else:
                earlier.add((item.source, item.target))
                new[number] = item
        for number, outcome in zip(new, add_pairs(change, model, list(new.values()), origin), strict=True):
            if isinstance(outcome, Segment):
                report.added += 1
            else:
                report.rejected.append(_rejection(new[number], number, origin, outcome))
        seen += len(chunk)
        if progress is not None:
            progress(seen)
    return report


def add_new(change: Change, model: KeyMaker, pairs: list[Pair], origin: str | None) -> list[Segment]:
    """For each pair its segment: the one there is, or a new one."""
    texts = [(pair.source, pair.target) for pair in pairs]
    segments = {text: known[0] for text in texts if (known := change.database.by_pair(*text))}
    new: dict[tuple[str, str], Pair] = {}
    for text, pair in zip(texts, pairs, strict=True):
        if text not in segments:
            new.setdefault(text, pair)
    for segment in add_checked(change, model, list(new.values()), origin):
        segments[segment.source, segment.target] = segment
    return [segments[text] for text in texts]


def add_checked(change: Change, model: KeyMaker, pairs: list[Pair], origin: str | None) -> list[Segment]:
    """New segments for all of these pairs; raises KsterError when the model cannot make keys of one."""
    segments = []
    for outcome in add_pairs(change, model, pairs, origin):
        if isinstance(outcome, str):
            raise KsterError(f"{outcome}; nothing was added")
        segments.append(outcome)
    return segments


def add_pairs(
    change: Change, model: KeyMaker, pairs: Sequence[Pair], origin: str | None
) -> Iterator[Segment | str]:
    """For each flawless pair in turn: its new segment, or the reason why the model cannot make keys of it."""
    created = now()
    named = None if origin is None else printable(origin)  # names of files may hold any bytes
    reasons = too_long(model, pairs)
    fitting = [pair for pair, reason in zip(pairs, reasons, strict=True) if reason is None]
    forced = iter(model.force_decode([(pair.source, pair.target) for pair in fitting]))
    for pair, reason in zip(pairs, reasons, strict=True):
        if reason is not None:
            yield reason
            continue
        sentence = next(forced)  # .keys (n, d), .tokens (n,)
        if not torch.isfinite(sentence.keys).all():
            yield "the model's states for it do not fit into float16"
            continue
        new = NewSegment(pair.source, pair.target, named, pair.id, created)
        yield change.add(new, sentence.keys.numpy(), sentence.tokens.numpy())


def require_flawless(pairs: Iterable[Pair]) -> None:
    """Raises KsterError, saying that nothing was added."""
    for pair in pairs:
        if reason := flaw(pair):
            raise KsterError(f"{reason}; nothing was added")


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


def _rejection(pair: Pair, number: int, origin: str | None, reason: str) -> Rejection:
    return Rejection(file=origin or "", line=None, unit=pair.id or f"pair {number}", reason=reason)
