"""/v1/memories/…: the status of segments, and who changed what."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from kster.server.api.context import Reader, TheEngine, Writer
from kster.server.api.v1_memories import PairName, part_of, segment_of, teaching_beside

router = APIRouter(prefix="/v1", tags=["memories"])


class Status(BaseModel):
    status: Literal["draft", "approved", "rejected"]
    beside: list[int] = Field(
        [], max_length=1_000, description="Segments whose place it does not take, as when a change is undone."
    )


@router.put("/memories/{id}/segments/{segment}/status")
def set_status(
    id: int, segment: int, wanted: Status, engine: TheEngine, principal: Writer, pair: PairName = None
) -> dict[str, Any]:
    """Only approved segments teach; one takes the place of others with the same source and context.

    `beside` of the answer: the others that taught before. To undo the change, approve them beside each other.
    """
    memory = engine.catalogue.get(principal, id, to_change=True)
    served, part = part_of(engine, memory, pair)
    others = teaching_beside(part, segment_of(part, memory, segment))
    (changed,) = part.set_status(segment, wanted.status, author=principal.name, beside=wanted.beside)
    return {"memory": id, "pair": served.pair, **asdict(changed), "beside": others}


@router.post("/memories/{id}/segments/{segment}/restore")
def restore_segment(
    id: int, segment: int, engine: TheEngine, principal: Writer, pair: PairName = None
) -> dict[str, Any]:
    """Let a rejected or superseded segment teach again, instead of what took its place."""
    return set_status(id, segment, Status(status="approved", beside=[]), engine, principal, pair)


@router.get("/memories/{id}/segments/{segment}/history")
def segment_history(
    id: int, segment: int, engine: TheEngine, principal: Reader, pair: PairName = None
) -> dict[str, Any]:
    """What happened to a segment and its other versions, oldest first."""
    memory = engine.catalogue.get(principal, id)
    served, part = part_of(engine, memory, pair)
    segment_of(part, memory, segment)
    events = [asdict(event) for event in part.history(segment)]
    return {"memory": id, "pair": served.pair, "events": events}


@router.get("/memories/{id}/history")
def memory_history(
    id: int,
    engine: TheEngine,
    principal: Reader,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 50,
    offset: Annotated[int, Query(ge=0, le=1_000_000)] = 0,
    pair: PairName = None,
) -> dict[str, Any]:
    """What happened to a memory, newest first."""
    memory = engine.catalogue.get(principal, id)
    served, part = part_of(engine, memory, pair)
    events = [asdict(event) for event in part.history(limit=limit, offset=offset)]
    return {"memory": id, "pair": served.pair, "events": events}
