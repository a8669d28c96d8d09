"""From pairs of text to segments: what may go in, what is there already, and the keys of the rest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from kster.errors import KsterError
from kster.formats import Pair, Rejection
from kster.formats.pair import UnusableUnit
from kster.formats.text import check_pair
from kster.memory.key_maker import ForcedKeys, KeyMaker
from kster.memory.segment import STATUSES, Segment
from kster.memory.store.change import ENTRY_ROOM, Change, Draft
from kster.memory.store.database import KEPT, LIVE, NewSegment
from kster.memory.store.description import now
from kster.memory.store.history import set_status, supersede, supersede_others
from kster.memory.store.store import Store
from kster.text.characters import printable
from kster.text.marks import marked_pair

Text = tuple[str, str]  # source and target


@dataclass(frozen=True, slots=True)
class Origin:
    """Where pairs come from: a file or tool, and who brings them."""

    name: str | None = None
    author: str | None = None


def add_all(store: Store, model: KeyMaker, pairs: list[Pair], origin: Origin) -> list[Segment]:
    """For each flawless pair its segment: the one there is, or a new one."""
    known = known_texts(store, pairs)
    new: dict[Text, Pair] = {}
    for pair in pairs:
        if (pair.source, pair.target) not in known:
            new.setdefault((pair.source, pair.target), pair)
    drafts = checked_drafts(model, list(new.values()), origin)
    with store.writing() as change:
        newest = change.database.newest()
        return [_add(change, model, pair, origin, drafts, newest) for pair in pairs]


def replace_unit(store: Store, model: KeyMaker, pair: Pair, origin: Origin) -> Segment:
    """Make this flawless pair the only live segment with its unit id."""
    assert pair.id is not None
    with store.reading() as database:
        known = any(_is(segment, pair) for segment in database.by_unit(pair.id))
    drafts = {} if known else checked_drafts(model, [pair], origin)
    with store.writing() as change:
        old = change.database.by_unit(pair.id)
        kept = [segment for segment in old if _is(segment, pair)][:1]
        if not kept:
            drafts = drafts or checked_drafts(model, [pair], origin)  # another writer has just removed it
            kept = [change.add(drafts[pair.source, pair.target])]
        supersede(change, [segment.id for segment in old], kept[0].id, origin.author, "edited")
        supersede_others(change, kept[0], origin.author)
        return kept[0]


def edit_segment(store: Store, model: KeyMaker, id: int, pair: Pair, origin: Origin) -> Segment:
    """Replace a segment by this flawless pair, or by the segment that already has these texts."""
    drafts = {} if known_texts(store, [pair]) else checked_drafts(model, [pair], origin)
    with store.writing() as change:
        if id not in change.database.by_ids([id], state="kept"):
            raise KsterError(f"{store.directory}: no segment {id}; nothing was changed")
        return _add(change, model, pair, origin, drafts, change.database.newest(), edited=[id])


def _add(
    change: Change,
    model: KeyMaker,
    pair: Pair,
    origin: Origin,
    drafts: dict[Text, Draft],
    newest: int,
    edited: Sequence[int] = (),
) -> Segment:
    """newest: the last segment from before this change; edited: segments that are to become this pair."""
    text = pair.source, pair.target
    if found := change.database.by_pair(*text):
        there = found[0]
        supersede(change, edited, there.id, origin.author, "edited")
        if pair.status != "approved" or there.is_live:
            return there
        set_status(change, [there], "approved", origin.author)
        return change.database.by_ids([there.id])[there.id]
    if text not in drafts:  # known before, and just removed by another writer
        drafts |= checked_drafts(model, [pair], origin)
    segment = change.add(drafts[text])
    supersede(change, edited, segment.id, origin.author, "edited")
    if segment.is_live:
        supersede_others(change, segment, origin.author, last=newest)
    return segment


def known_texts(store: Store, pairs: Sequence[Pair]) -> set[Text]:
    """Which of these flawless pairs the memory has now."""
    with store.reading_apart() as database:
        return database.known([(pair.source, pair.target) for pair in pairs])


def checked_drafts(model: KeyMaker, pairs: list[Pair], origin: Origin) -> dict[Text, Draft]:
    """Drafts of all of these pairs; raises KsterError when the model cannot make keys of one."""
    drafts = {}
    for outcome in drafts_of(model, pairs, origin):
        if isinstance(outcome, str):
            raise KsterError(f"{outcome}; nothing was added")
        drafts[outcome.new.source, outcome.new.target] = outcome
    return drafts


def drafts_of(model: KeyMaker, pairs: Sequence[Pair], origin: Origin) -> Iterator[Draft | str]:
    """For each flawless pair in turn: its draft, or the reason why the model cannot make keys of it."""
    created = now()
    return drafts_of_segments(model, [new_segment(pair, origin, created) for pair in pairs])


def drafts_of_segments(model: KeyMaker, segments: Sequence[NewSegment]) -> Iterator[Draft | str]:
    """The same for segments that have no keys yet."""
    texts = [(segment.source, segment.target) for segment in segments]
    for segment, made in zip(segments, keys_or_reasons(model, texts), strict=True):
        yield made if isinstance(made, str) else Draft(segment, made.keys.numpy(), made.tokens.numpy())


def new_segment(pair: Pair, origin: Origin, created: str) -> NewSegment:
    named = None if origin.name is None else printable(origin.name)  # names of files may hold any bytes
    author = pair.author or origin.author
    removed = LIVE if pair.status == "approved" else KEPT
    texts = pair.source, pair.target, named, pair.id, created
    return NewSegment(*texts, pair.status, author, pair.context, removed)


def keys_or_reasons(model: KeyMaker, texts: Sequence[Text]) -> Iterator[ForcedKeys | str]:
    """For each pair of texts in turn: its keys, or the reason why the model cannot make them.

    Codes are replaced by marks, as they are in texts to translate.
    """
    texts = [marked_pair(*text) for text in texts]
    reasons = too_long(model, texts)
    forced = iter(model.make_keys([t for t, reason in zip(texts, reasons, strict=True) if reason is None]))
    for reason in reasons:
        if reason is not None:
            yield reason
            continue
        sentence = next(forced)  # .keys (n, d), .tokens (n,)
        finite = _all_finite(sentence.keys.numpy())
        yield sentence if finite else "the model's states for it do not fit into float16"


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
        if pair.status not in STATUSES:
            raise KsterError(
                f"{where}status is {pair.status!r}; accepted: {', '.join(STATUSES)}; nothing was added"
            )
        if reason := flaw(pair):
            raise KsterError(f"{where}{reason}; nothing was added")


def approved(item: Pair | Rejection) -> Pair | Rejection:
    """A draft as a pair that teaches like others."""
    if isinstance(item, Pair) and item.status == "draft":
        return replace(item, status="approved")
    return item


def flaw(pair: Pair) -> str | None:
    """Why this pair cannot be a segment of any memory; None when it can.

    The rule is the one readers of files have, so that whatever a memory holds can be exported and imported.
    """
    try:
        check_pair(pair.source, pair.target, pair.id)
    except UnusableUnit as reason:
        return str(reason)
    return None


def too_long(model: KeyMaker, texts: Sequence[Text]) -> list[str | None]:
    """For each pair of texts: why it is too long for the model; None when it is not."""
    most = min(model.max_length, ENTRY_ROOM)
    sources = model.tokenise_source([source for source, _ in texts])
    targets = model.tokenise_target([target for _, target in texts])
    reasons: list[str | None] = []
    for source, target in zip(sources, targets, strict=True):
        side, tokens = max(("source", source), ("target", target), key=lambda x: len(x[1]))
        limit = f"{len(tokens)} tokens, the model reads at most {most}"
        reasons.append(None if len(tokens) <= most else f"the {side} is too long: {limit}")
    return reasons


def plainly_too_long(model: KeyMaker, texts: Sequence[Text]) -> list[str | None]:
    """The same, but only for texts with more bytes than the model reads tokens.

    A token hardly ever has less than a byte of its text; the exceptions are noticed when keys are made.
    """
    long = [i for i, text in enumerate(texts) if max(len(side.encode()) for side in text) >= model.max_length]
    reasons: list[str | None] = [None] * len(texts)
    for i, reason in zip(long, too_long(model, [texts[i] for i in long]), strict=True):
        reasons[i] = reason
    return reasons


def _is(segment: Segment, pair: Pair) -> bool:
    return (segment.source, segment.target) == (pair.source, pair.target)
