"""DeepL's glossaries: terms in a memory that a translation names as `glossary_id`.

A glossary is a memory of one language pair, with its id. Its segments are examples like all others, and
terms: a translation that names it keeps them.
"""

from __future__ import annotations

import csv
from datetime import datetime
from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from kster.errors import KsterError
from kster.formats import Pair
from kster.memory import Memory
from kster.server.api.context import Reader, TheEngine, Writer
from kster.server.api.parameters import Given, whole_number
from kster.server.auth.access import NotFound, Principal
from kster.server.work.catalogue import ServerMemory
from kster.server.work.engine import Engine
from kster.server.work.served_model import ServedModel

router = APIRouter(prefix="/v2", tags=["DeepL"])

MARK = "glossary:"  # before the language pair, in the external id of a memory that is a glossary
MAX_ENTRIES = 10_000  # learned while the client waits
TSV = "text/tab-separated-values"


@router.get("/glossary-language-pairs")
async def language_pairs(engine: TheEngine, principal: Reader) -> dict[str, Any]:
    pairs = [{"source_lang": model.source, "target_lang": model.target} for model in engine.models]
    return {"supported_languages": pairs}


@router.post("/glossaries", status_code=201)
def create_glossary(given: Given, engine: TheEngine, principal: Writer) -> dict[str, Any]:
    """`entries` as `tsv` or `csv`; they are learned when this returns."""
    served = engine.model_for(given.require("source_lang"), given.require("target_lang"))
    entries = _entries(given.require("entries"), given.text("entries_format") or "tsv")
    memory = engine.catalogue.create(principal, given.require("name"), external_id=f"{MARK}{served.pair}")
    try:
        engine.teach(memory, served, entries, "glossary", author=principal.name)
    except BaseException:
        engine.catalogue.delete(principal, memory.id)
        raise
    return _glossary_json(engine, memory, served)


@router.get("/glossaries")
def list_glossaries(engine: TheEngine, principal: Reader) -> dict[str, Any]:
    pairs = {f"{MARK}{served.pair}": served for served in engine.models}
    return {
        "glossaries": [
            _glossary_json(engine, memory, pairs[memory.external_id])
            for memory in engine.catalogue.visible(principal)
            if memory.external_id in pairs
        ]
    }


@router.get("/glossaries/{id}")
def show_glossary(id: str, engine: TheEngine, principal: Reader) -> dict[str, Any]:
    return _glossary_json(engine, *_glossary(engine, principal, id))


@router.get("/glossaries/{id}/entries")
def show_entries(id: str, engine: TheEngine, principal: Reader) -> Response:
    part = engine.catalogue.part(*_glossary(engine, principal, id))
    segments = part.segments() if part is not None else []
    lines = (f"{_on_one_line(s.source)}\t{_on_one_line(s.target)}" for s in segments)
    return Response("\n".join(lines), media_type=TSV)


@router.delete("/glossaries/{id}", status_code=204)
def delete_glossary(id: str, engine: TheEngine, principal: Writer) -> None:
    memory, _ = _glossary(engine, principal, id)
    engine.catalogue.delete(principal, memory.id)


def glossary_part(engine: Engine, principal: Principal, id: str, served: ServedModel) -> Memory:
    """The terms of a glossary. Raises KsterError if it is not for this language pair."""
    memory, own = _glossary(engine, principal, id)
    part = engine.catalogue.part(memory, own)
    if own is not served or part is None:
        raise KsterError(f"glossary {id} is for {own.source} → {own.target}, not for {served.pair}")
    return part


def _glossary(engine: Engine, principal: Principal, id: str) -> tuple[ServerMemory, ServedModel]:
    if (number := whole_number(id)) is None:
        raise NotFound(f"no glossary {id}")
    memory = engine.catalogue.get(principal, number)
    if not (memory.external_id or "").startswith(MARK):
        raise NotFound(f"memory {id} is not a glossary; name it as `kster_memories`")
    return memory, engine.model_by_pair(str(memory.external_id).removeprefix(MARK))


def _glossary_json(engine: Engine, memory: ServerMemory, served: ServedModel) -> dict[str, Any]:
    part = engine.catalogue.part(memory, served)
    return {
        "glossary_id": str(memory.id),
        "ready": True,
        "name": memory.name,
        "source_lang": served.source,
        "target_lang": served.target,
        "creation_time": datetime.fromisoformat(memory.created).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "entry_count": part.segment_count() if part is not None else 0,
    }


def _entries(text: str, format: str) -> list[Pair]:
    """The terms of a table: source and target; CSV may have two more columns, their languages."""
    if format not in ("tsv", "csv"):
        raise KsterError(f"Value for 'entries_format' not supported: {format}. Accepted: tsv, csv.")
    try:
        if format == "tsv":
            rows = list(csv.reader(text.splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE))
        else:
            rows = list(csv.reader(text.splitlines(keepends=True), strict=True))
    except csv.Error as error:
        raise KsterError(f"Invalid glossary entries provided: {error}.") from None
    found: dict[str, Pair] = {}
    for number, row in enumerate(rows, 1):
        cells = [cell.strip() for cell in row]
        if not any(cells):
            continue
        columns = (2,) if format == "tsv" else (2, 4)
        if len(cells) not in columns or not all(cells[:2]):
            raise KsterError(f"Invalid glossary entries provided: line {number} needs a source and a target.")
        source, target = cells[:2]
        if source in found:
            raise KsterError(f"Invalid glossary entries provided: line {number} repeats {source!r}.")
        found[source] = Pair(source, target)
    if not 0 < len(found) <= MAX_ENTRIES:
        raise KsterError(f"Invalid glossary entries provided: {len(found)}; accepted: 1 to {MAX_ENTRIES:,}.")
    return list(found.values())


def _on_one_line(text: str) -> str:
    return " ".join(text.split())
