"""/v1/memories/…/segments: examples one by one, their status, and who changed what."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from pydantic import AfterValidator, BaseModel, Field

from kster.errors import KsterError
from kster.formats import Pair
from kster.memory import Memory, Segment
from kster.server.api.context import Reader, TheEngine, Writer
from kster.server.api.v1_memories import ChosenPart, PairName, PartToChange, PartToRead, chosen_pair
from kster.server.auth.access import NotFound
from kster.server.work.owned import require_whole

router = APIRouter(prefix="/v1/memories/{id}", tags=["memories"])

WholeText = Annotated[str, AfterValidator(require_whole)]


class Example(BaseModel):
    source: str
    target: str
    pair: str | None = None
    unit: WholeText | None = Field(None, max_length=500, description="An id of the client's own.")
    context: WholeText | None = Field(
        None, max_length=1_000, description="Where the source stands, if it means something else elsewhere."
    )
    status: Literal["draft", "approved", "rejected"] = Field(
        "approved", description="Drafts and rejected segments are kept, but teach nothing."
    )


class Status(BaseModel):
    status: Literal["draft", "approved", "rejected"]
    beside: list[int] = Field(
        [], max_length=1_000, description="Segments that it does not supersede, as when a change is undone."
    )


@router.get("/segments")
def list_segments(
    id: int,
    engine: TheEngine,
    principal: Reader,
    query: Annotated[str | None, Query(max_length=1_000)] = None,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 50,
    offset: Annotated[int, Query(ge=0)] = 0,
    newest: bool = False,
    state: Annotated[
        Literal["live", "draft", "rejected", "superseded", "kept"],
        Query(description="live: those that teach; superseded: replaced by newer ones; kept: all of these."),
    ] = "live",
    pair: PairName = None,
) -> dict[str, Any]:
    """Segments in the order they were added, or newest first; query: text in either side, ignoring case."""
    memory = engine.catalogue.get(principal, id)
    if pair is None and not engine.catalogue.pairs(memory):
        return {"memory": id, "pair": None, "total": 0, "segments": []}
    served = chosen_pair(engine, memory, pair)
    part = engine.catalogue.part(memory, served)
    if part is None:
        return {"memory": id, "pair": served.pair, "total": 0, "segments": []}
    total = part.segment_count(query, state=state)
    if newest:
        first = max(0, total - offset - limit)
        found = part.segments(max(0, total - offset - first), first, query, state=state)
        found.reverse()
    else:
        found = part.segments(limit, offset, query, state=state)
    segments = [asdict(segment) for segment in found]
    return {"memory": id, "pair": served.pair, "total": total, "segments": segments}


@router.post("/segments", status_code=201)
def add_segment(id: int, example: Example, engine: TheEngine, principal: Writer) -> dict[str, Any]:
    """Add one example; the next translation knows it. One that is there already is returned as it is."""
    memory = engine.catalogue.get(principal, id, to_change=True)
    served = chosen_pair(engine, memory, example.pair)
    pair = Pair(example.source, example.target, example.unit, None, example.context, example.status)
    (segment,) = engine.teach(memory, served, [pair], "v1", author=principal.name)
    return {"memory": id, "pair": served.pair, **asdict(segment)}


@router.get("/segments/{segment}")
def show_segment(segment: int, chosen: PartToRead) -> dict[str, Any]:
    return chosen.json(**asdict(segment_of(chosen, segment)))


@router.put("/segments/{segment}")
def edit_segment(
    id: int, segment: int, example: Example, engine: TheEngine, principal: Writer, pair: PairName = None
) -> dict[str, Any]:
    """Replace a segment's texts. It gets a new id, since its keys change as well."""
    memory = engine.catalogue.get(principal, id, to_change=True)
    chosen = ChosenPart.of(memory, pair or example.pair, engine)
    old = segment_of(chosen, segment)
    if (old.source, old.target) == (example.source, example.target):
        return chosen.json(**asdict(old))
    others = teaching_beside(chosen.part, old, example.source)
    engine.require_size([example.source, example.target])
    given = {"origin": "v1", "unit": example.unit, "author": principal.name}
    new = chosen.part.edit(segment, example.source, example.target, **given)
    engine.metrics.taught.inc()
    return chosen.json(**asdict(new), beside=others)


@router.delete("/segments/{segment}")
def remove_segment(segment: int, chosen: PartToChange, principal: Writer) -> dict[str, Any]:
    """Remove one example; it is never retrieved again."""
    others = teaching_beside(chosen.part, segment_of(chosen, segment))
    chosen.part.remove(segment, author=principal.name)
    return {"removed": segment, "beside": others}


@router.put("/segments/{segment}/status")
def set_status(segment: int, wanted: Status, chosen: PartToChange, principal: Writer) -> dict[str, Any]:
    """Only approved segments teach; one supersedes others with the same source and context.

    `beside` in the answer: the others that taught before. To undo the change, approve these with each other
    as `beside`.
    """
    others = teaching_beside(chosen.part, segment_of(chosen, segment))
    (changed,) = chosen.part.set_status(segment, wanted.status, author=principal.name, beside=wanted.beside)
    return chosen.json(**asdict(changed), beside=others)


@router.post("/segments/{segment}/restore")
def restore_segment(segment: int, chosen: PartToChange, principal: Writer) -> dict[str, Any]:
    """Let a rejected or superseded segment teach again, instead of the one that replaced it."""
    return set_status(segment, Status(status="approved", beside=[]), chosen, principal)


@router.get("/segments/{segment}/history")
def segment_history(segment: int, chosen: PartToRead) -> dict[str, Any]:
    """What happened to a segment and its other versions, oldest first."""
    segment_of(chosen, segment)
    return chosen.json(events=[asdict(event) for event in chosen.part.history(segment)])


@router.get("/history")
def memory_history(
    chosen: PartToRead,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 50,
    offset: Annotated[int, Query(ge=0, le=1_000_000)] = 0,
) -> dict[str, Any]:
    """What happened to a memory, newest first."""
    events = chosen.part.history(limit=limit, offset=offset)
    return chosen.json(events=[asdict(event) for event in events])


def segment_of(chosen: ChosenPart, id: int) -> Segment:
    try:
        return chosen.part.segment(id)
    except KsterError:
        raise NotFound(f"memory {chosen.memory.id} has no segment {id}") from None


def teaching_beside(part: Memory, segment: Segment, *sources: str) -> list[int]:
    """Ids of the other live segments that a change of this one can affect: those with its context and its
    source, or one of `sources`, and the one that replaced it. An undo needs to know them."""
    found = {
        other.id
        for source in {segment.source, *sources}
        for other in part.find_text(source=source)
        if other.context == segment.context
    }
    if segment.superseded_by is not None:
        with suppress(KsterError):  # it may be gone
            found |= {newer.id for newer in [part.segment(segment.superseded_by)] if newer.is_live}
    return sorted(found - {segment.id})
