"""/v1/memories: memories as wholes; their segments are in `v1_segments`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel, Field
from starlette.responses import FileResponse

from kster.errors import KsterError
from kster.formats import write_pairs
from kster.memory import Memory, MemoryInfo
from kster.server.api.context import Reader, TheEngine, Writer
from kster.server.api.transfers import download
from kster.server.auth.access import NotFound, Principal
from kster.server.work.catalogue import ServerMemory
from kster.server.work.engine import Engine
from kster.server.work.served_model import ServedModel

router = APIRouter(prefix="/v1", tags=["memories"])

PairName = Annotated[
    str | None, Query(description="Language pair such as en-de; needed when a memory has several.")
]


def chosen_pair(engine: Engine, memory: ServerMemory, pair: str | None) -> ServedModel:
    """The language pair meant: the one named, or the only one there is."""
    if pair is not None:
        return engine.model_by_pair(pair)
    own = [served for served, _ in engine.catalogue.pairs(memory)] or engine.models
    if len(own) > 1:
        names = ", ".join(served.pair for served in own)
        raise KsterError(f"which language pair is meant? Name one as `pair`: {names}")
    return own[0]


@dataclass(frozen=True, slots=True)
class ChosenPart:
    """One language pair of a memory."""

    memory: ServerMemory
    served: ServedModel
    part: Memory

    @classmethod
    def of(cls, memory: ServerMemory, pair: str | None, engine: Engine) -> ChosenPart:
        served = chosen_pair(engine, memory, pair)
        part = engine.catalogue.part(memory, served)
        if part is None:
            raise NotFound(f"memory {memory.id} has no examples for {served.pair}")
        return cls(memory, served, part)

    def json(self, **shown: Any) -> dict[str, Any]:
        return {"memory": self.memory.id, "pair": self.served.pair, **shown}


def part_to_read(id: int, engine: TheEngine, principal: Reader, pair: PairName = None) -> ChosenPart:
    return ChosenPart.of(engine.catalogue.get(principal, id), pair, engine)


def part_to_change(id: int, engine: TheEngine, principal: Writer, pair: PairName = None) -> ChosenPart:
    return ChosenPart.of(engine.catalogue.get(principal, id, to_change=True), pair, engine)


PartToRead = Annotated[ChosenPart, Depends(part_to_read)]
PartToChange = Annotated[ChosenPart, Depends(part_to_change)]


class NewMemory(BaseModel):
    name: str
    description: str | None = None
    automatic: bool = Field(False, description="Whether it serves requests that name no memory.")


class MemoryEdit(BaseModel):
    name: str | None = None
    description: str | None = None
    automatic: bool | None = Field(None, description="Whether it serves requests that name no memory.")


@router.get("/memories")
def list_memories(engine: TheEngine, principal: Reader) -> list[dict[str, Any]]:
    """The memories this key may see."""
    visible = engine.catalogue.visible(principal)
    return [memory_json(engine, principal, memory) for memory in visible]


@router.post("/memories", status_code=201)
def create_memory(new: NewMemory, engine: TheEngine, principal: Writer) -> dict[str, Any]:
    """Make an empty memory; a language pair is added to it with its first example."""
    made = engine.catalogue.create(principal, new.name, new.description, automatic=new.automatic)
    return memory_json(engine, principal, made)


@router.get("/memories/{id}")
def show_memory(id: int, engine: TheEngine, principal: Reader) -> dict[str, Any]:
    return memory_json(engine, principal, engine.catalogue.get(principal, id))


@router.patch("/memories/{id}")
def edit_memory(id: int, edit: MemoryEdit, engine: TheEngine, principal: Writer) -> dict[str, Any]:
    memory = engine.catalogue.edit(principal, id, edit.name, edit.description, edit.automatic)
    return memory_json(engine, principal, memory)


@router.delete("/memories/{id}")
def delete_memory(id: int, engine: TheEngine, principal: Writer) -> dict[str, Any]:
    """Delete a memory with all its segments."""
    return {"deleted": engine.catalogue.delete(principal, id).id}


@router.get("/memories/{id}/export")
def export_memory(
    chosen: PartToRead, format: Literal["tmx", "xliff", "xliff2", "po", "tsv", "csv"] = "tmx"
) -> FileResponse:
    """All segments of a language pair as a file."""
    served = chosen.served

    def write(path: Path) -> None:
        write_pairs(path, chosen.part.export(), served.source, served.target, format=format)

    suffix = "xlf" if format.startswith("xliff") else format
    return download(write, f"memory-{chosen.memory.id}-{served.pair}.{suffix}", "application/octet-stream")


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
