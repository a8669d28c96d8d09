"""/v1/memories: memories and their segments."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from pydantic import AfterValidator, BaseModel, Field
from starlette.responses import StreamingResponse

from kster.errors import KsterError
from kster.formats import Pair, write_pairs
from kster.memory import Memory, MemoryInfo, Segment
from kster.server.api.context import Reader, TheEngine, Writer
from kster.server.api.parameters import require_whole
from kster.server.auth.access import NotFound, Principal
from kster.server.work.catalogue import ServerMemory
from kster.server.work.engine import Engine
from kster.server.work.served_model import ServedModel

router = APIRouter(prefix="/v1", tags=["memories"])

PairName = Annotated[
    str | None, Query(description="Language pair such as en-de; needed when a memory has several.")
]


class NewMemory(BaseModel):
    name: str
    description: str | None = None
    automatic: bool = Field(False, description="Whether it serves requests that name no memory.")


class MemoryEdit(BaseModel):
    name: str | None = None
    description: str | None = None
    automatic: bool | None = Field(None, description="Whether it serves requests that name no memory.")


class Example(BaseModel):
    source: str
    target: str
    pair: str | None = None
    unit: Annotated[str, AfterValidator(require_whole)] | None = Field(
        None, max_length=500, description="An id of the client's own."
    )
    context: Annotated[str, AfterValidator(require_whole)] | None = Field(
        None, max_length=1_000, description="Where the source stands, if it means something else elsewhere."
    )
    status: Literal["draft", "approved", "rejected"] = Field(
        "approved", description="Drafts and rejected segments are kept, but teach nothing."
    )


@router.get("/memories")
def list_memories(engine: TheEngine, principal: Reader) -> list[dict[str, Any]]:
    """The memories this key may see."""
    visible = engine.catalogue.visible(principal)
    return [memory_json(engine, principal, memory) for memory in visible]


@router.post("/memories", status_code=201)
def create_memory(new: NewMemory, engine: TheEngine, principal: Writer) -> dict[str, Any]:
    """Make an empty memory; a language pair is added to it with its first example."""
    return memory_json(
        engine,
        principal,
        engine.catalogue.create(principal, new.name, new.description, automatic=new.automatic),
    )


@router.get("/memories/{id}")
def show_memory(id: int, engine: TheEngine, principal: Reader) -> dict[str, Any]:
    memory = engine.catalogue.get(principal, id)
    return memory_json(engine, principal, memory)


@router.patch("/memories/{id}")
def edit_memory(id: int, edit: MemoryEdit, engine: TheEngine, principal: Writer) -> dict[str, Any]:
    memory = engine.catalogue.edit(principal, id, edit.name, edit.description, edit.automatic)
    return memory_json(engine, principal, memory)


@router.delete("/memories/{id}")
def delete_memory(id: int, engine: TheEngine, principal: Writer) -> dict[str, Any]:
    """Delete a memory with all its segments."""
    memory = engine.catalogue.delete(principal, id)
    return {"deleted": memory.id}


# Segments --------------------------------------------------------------------------------------------


@router.get("/memories/{id}/segments")
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
        Query(description="live: they teach; superseded: newer ones took their place; kept: all of them."),
    ] = "live",
    pair: PairName = None,
) -> dict[str, Any]:
    """Segments in the order they were added, or newest first; query: text in either side, in any case."""
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


@router.post("/memories/{id}/segments", status_code=201)
def add_segment(id: int, example: Example, engine: TheEngine, principal: Writer) -> dict[str, Any]:
    """Add one example; the next translation knows it. One that is there already is returned as it is."""
    memory = engine.catalogue.get(principal, id, to_change=True)
    served = chosen_pair(engine, memory, example.pair)
    pair = Pair(example.source, example.target, example.unit, None, example.context, example.status)
    (segment,) = engine.teach(memory, served, [pair], "v1", author=principal.name)
    return {"memory": id, "pair": served.pair, **asdict(segment)}


@router.get("/memories/{id}/segments/{segment}")
def show_segment(
    id: int, segment: int, engine: TheEngine, principal: Reader, pair: PairName = None
) -> dict[str, Any]:
    memory = engine.catalogue.get(principal, id)
    served, part = part_of(engine, memory, pair)
    found = segment_of(part, memory, segment)
    return {"memory": id, "pair": served.pair, **asdict(found)}


@router.put("/memories/{id}/segments/{segment}")
def edit_segment(
    id: int, segment: int, example: Example, engine: TheEngine, principal: Writer, pair: PairName = None
) -> dict[str, Any]:
    """Replace a segment's texts. It gets a new id, since what the model makes of it changes, too."""
    memory = engine.catalogue.get(principal, id, to_change=True)
    served, part = part_of(engine, memory, pair or example.pair)
    old = segment_of(part, memory, segment)
    if (old.source, old.target) == (example.source, example.target):
        return {"memory": id, "pair": served.pair, **asdict(old)}
    pair_given = Pair(example.source, example.target, example.unit)
    others = teaching_beside(part, old, example.source)
    new = engine.edit(part, segment, pair_given, "v1", principal.name)
    return {"memory": id, "pair": served.pair, **asdict(new), "beside": others}


@router.delete("/memories/{id}/segments/{segment}")
def remove_segment(
    id: int, segment: int, engine: TheEngine, principal: Writer, pair: PairName = None
) -> dict[str, Any]:
    """Remove one example; it is never retrieved again."""
    memory = engine.catalogue.get(principal, id, to_change=True)
    _, part = part_of(engine, memory, pair)
    others = teaching_beside(part, segment_of(part, memory, segment))
    part.remove(segment, author=principal.name)
    return {"removed": segment, "beside": others}


@router.get("/memories/{id}/export")
def export_memory(
    id: int,
    engine: TheEngine,
    principal: Reader,
    format: Literal["tmx", "xliff", "xliff2", "po", "tsv", "csv"] = "tmx",
    pair: PairName = None,
) -> StreamingResponse:
    """All segments of a language pair as a file."""
    memory = engine.catalogue.get(principal, id)
    served, part = part_of(engine, memory, pair)
    file = tempfile.TemporaryDirectory(prefix="kster-export-")
    path = Path(file.name) / f"memory.{format}"
    try:
        write_pairs(path, part.export(), served.source, served.target, format=format)
    except BaseException:
        file.cleanup()
        raise

    def content() -> Iterator[bytes]:
        with file, path.open("rb") as stream:
            while chunk := stream.read(1 << 16):
                yield chunk

    name = f"memory-{id}-{served.pair}.{'xlf' if format.startswith('xliff') else format}"
    disposition = {"Content-Disposition": f'attachment; filename="{name}"'}
    return StreamingResponse(content(), media_type="application/octet-stream", headers=disposition)


# ------------------------------------------------------------------------------------------------------


def chosen_pair(engine: Engine, memory: ServerMemory, pair: str | None) -> ServedModel:
    """The language pair meant: the one named, or the only one there is."""
    if pair is not None:
        return engine.model_by_pair(pair)
    own = [served for served, _ in engine.catalogue.pairs(memory)] or engine.models
    if len(own) > 1:
        names = ", ".join(served.pair for served in own)
        raise KsterError(f"which language pair is meant? Name one as `pair`: {names}")
    return own[0]


def memory_json(engine: Engine, principal: Principal, memory: ServerMemory) -> dict[str, Any]:
    pairs = [_pair_json(served, part.info()) for served, part in engine.catalogue.pairs(memory)]
    return {
        "id": memory.id,
        "name": memory.name,
        "description": memory.description,
        "created": memory.created,
        "shared": memory.shared,
        "automatic": memory.automatic,
        "writable": engine.catalogue.may_change(principal, memory),
        "damaged": engine.catalogue.damage(memory),
        "segments": sum(pair["segments"] for pair in pairs),
        "pairs": pairs,
    }


def _pair_json(served: ServedModel, info: MemoryInfo) -> dict[str, Any]:
    fit = info.fit or {}
    return {
        "pair": served.pair,
        "source": served.source,
        "target": served.target,
        "segments": info.segments,
        "entries": info.entries,
        "without_keys": info.without_keys,
        "unusable": info.unusable,
        "bytes_on_disk": info.bytes_on_disk,
        "fitted": info.fitted,
        "tuned": info.tuned,
        "fit": {
            name: fit[name] for name in ("dev", "train_tokens", "memory_entries", "seconds") if name in fit
        }
        or None,
    }


def part_of(engine: Engine, memory: ServerMemory, pair: str | None) -> tuple[ServedModel, Memory]:
    served = chosen_pair(engine, memory, pair)
    part = engine.catalogue.part(memory, served)
    if part is None:
        raise NotFound(f"memory {memory.id} has no examples for {served.pair}")
    return served, part


def segment_of(part: Memory, memory: ServerMemory, id: int) -> Segment:
    try:
        return part.segment(id)
    except KsterError:
        raise NotFound(f"memory {memory.id} has no segment {id}") from None


def teaching_beside(part: Memory, segment: Segment, *sources: str) -> list[int]:
    """The others that teach now and that a change of this segment can reach: those with its source, or one of
    these, in its context, and the one in its place. An undo needs to know them."""
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
