"""ModernMT's API at `/mmt`, as its public client and Weblate speak it.

The client sends everything with POST and names the real method in `X-HTTP-Method-Override`; the middleware
restores it.
"""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Any

from fastapi import APIRouter

from kster.documents.html import HtmlText
from kster.errors import KsterError
from kster.formats import Pair, read_pairs
from kster.memory import Memory
from kster.server.api.context import Reader, TheEngine, Writer
from kster.server.api.parameters import Given, Parameters, memory_id, whole_number
from kster.server.api.texts import MAX_ALTERNATIVES, Wish, translate_texts
from kster.server.api.transfers import import_upload
from kster.server.api.v1_jobs import visible_job
from kster.server.auth.access import NotFound, Principal
from kster.server.work.catalogue import ServerMemory
from kster.server.work.engine import Engine
from kster.server.work.jobs import Job
from kster.server.work.served_model import ServedModel

router = APIRouter(prefix="/mmt", tags=["ModernMT"])

LOOKED_AT = 200  # units of a TMX that are read to find its languages
_ADDED = re.compile(r"segment-(\d+)-(\d+)")


def ok(data: Any) -> dict[str, Any]:
    return {"status": 200, "data": data}


@router.get("/translate")
async def translate(parameters: Given, engine: TheEngine, principal: Reader) -> dict[str, Any]:
    """`hints` are ids of memories; by default the automatic ones are used. `glossaries` are ids of memories
    whose segments are terms that must be kept. `exact_matches` says whether a text that a memory holds as a
    whole comes back as taught; it does unless that is false."""
    texts, target = parameters.texts("q"), parameters.require("target")
    engine.require_size(texts)
    given = parameters.text("source")
    source = given or engine.detector.best("\n".join(texts))[0]
    served = engine.model_for(source, target)
    html = (parameters.text("format") or "").lower() in ("text/html", "html", "text/xml")
    more = parameters.number("alt_translations", 0, MAX_ALTERNATIVES)
    ids = parameters.ids("glossaries")

    def glossaries(served: ServedModel) -> list[Memory]:
        return [part for _, part in engine.catalogue.chosen(principal, served, ids)]

    wish = Wish(
        HtmlText if html else None,
        more,
        memories=_hints(parameters),
        glossaries=glossaries,
        exact_matches=parameters.flag("exact_matches", default=True),
    )
    answers = await translate_texts(engine, principal, served, texts, wish)
    data = []
    for text, answer in zip(texts, answers, strict=True):
        item = {"translation": answer.text, "characters": len(text), "billedCharacters": len(text)}
        if given is None:
            item["detectedLanguage"] = served.source
        if more:
            item["altTranslations"] = answer.alternatives
        if answer.repaired:
            item["repaired"] = True
        data.append(item)
    return ok(texts.answer(data))


def _hints(given: Parameters) -> list[int] | None:
    """`hints`, and `context_vector` such as "1:0.5,2:0.1"."""
    vector = [memory_id(part.partition(":")[0], "context_vector") for part in given.listed("context_vector")]
    return [*given.ids("hints"), *vector] or given.memories("memories")


@router.get("/translate/detect")
async def detect(parameters: Given, engine: TheEngine, principal: Reader) -> dict[str, Any]:
    texts = parameters.texts("q")
    engine.require_size(texts)
    data = [{"billedCharacters": len(t), "detectedLanguage": engine.detector.best(t)[0]} for t in texts]
    return ok(texts.answer(data))


@router.get("/languages")
async def languages(engine: TheEngine) -> dict[str, Any]:
    """The target languages of each source language."""
    targets: dict[str, list[str]] = {}
    for model in engine.models:
        targets.setdefault(model.source, []).append(model.target)
    return ok(targets)


@router.get("/translate/languages")
async def supported_languages(engine: TheEngine) -> dict[str, Any]:
    """All languages of the models served."""
    return ok(sorted({code for model in engine.models for code in (model.source, model.target)}))


# Memories --------------------------------------------------------------------------------------------


@router.get("/memories")
def list_memories(engine: TheEngine, principal: Reader) -> dict[str, Any]:
    return ok([_memory_json(memory) for memory in engine.catalogue.visible(principal)])


@router.post("/memories")
def create_memory(given: Given, engine: TheEngine, principal: Writer) -> dict[str, Any]:
    name, description = given.require("name"), given.text("description")
    made = engine.catalogue.create(principal, name, description, given.text("external_id"))
    return ok(_memory_json(made))


@router.get("/memories/{id}")
def show_memory(id: str, engine: TheEngine, principal: Reader) -> dict[str, Any]:
    return ok(_memory_json(named_memory(engine, principal, id)))


@router.put("/memories/{id}")
def edit_memory(id: str, given: Given, engine: TheEngine, principal: Writer) -> dict[str, Any]:
    memory = named_memory(engine, principal, id)
    edited = engine.catalogue.edit(principal, memory.id, given.text("name"), given.text("description"))
    return ok(_memory_json(edited))


@router.delete("/memories/{id}")
def delete_memory(id: str, engine: TheEngine, principal: Writer) -> dict[str, Any]:
    memory = named_memory(engine, principal, id)
    return ok(_memory_json(engine.catalogue.delete(principal, memory.id)))


@router.post("/memories/{id}/content")
def add_content(id: str, given: Given, engine: TheEngine, principal: Writer) -> dict[str, Any]:
    """One pair, learned when this returns, or a TMX file, imported in the background."""
    memory = named_memory(engine, principal, id, to_change=True)
    if "tmx" not in given.files:
        return _teach(engine, principal, memory, given, replace=False)
    upload, suffix = given.files["tmx"], f".tmx{packing(given)}"
    job = import_upload(engine, principal, memory, upload, suffix, partial(_pair_of_tmx, engine))
    return ok(import_json(job))


def packing(given: Parameters) -> str:
    """The suffix for an uploaded file whose `compression` is given."""
    packed = (given.text("compression") or "").lower()
    if packed not in ("", "gzip"):
        raise KsterError(f"compression {packed!r} is not supported; accepted: gzip")
    return ".gz" if packed else ""


@router.put("/memories/{id}/content")
def replace_content(id: str, given: Given, engine: TheEngine, principal: Writer) -> dict[str, Any]:
    """The pair takes the place of whatever has its `tuid`."""
    memory = named_memory(engine, principal, id, to_change=True)
    given.require("tuid")
    return _teach(engine, principal, memory, given, replace=True)


def _teach(
    engine: Engine, principal: Principal, memory: ServerMemory, given: Parameters, *, replace: bool
) -> dict[str, Any]:
    served = engine.model_for(given.require("source"), given.require("target"))
    pair = Pair(given.require("sentence"), given.require("translation"), given.text("tuid"))
    return teach(engine, principal, memory, served, pair, replace)


def teach(
    engine: Engine, principal: Principal, memory: ServerMemory, served: ServedModel, pair: Pair, replace: bool
) -> dict[str, Any]:
    """Learn a single pair; the import job in the answer is already done."""
    author = principal.name
    (segment,) = engine.teach(memory, served, [pair], "modernmt", replace_unit=replace, author=author)
    return ok(_taught_json(f"segment-{memory.id}-{segment.id}", memory))


def _taught_json(id: str, memory: ServerMemory) -> dict[str, Any]:
    return {"id": id, "memory": memory.id, "size": 1, "progress": 1.0}


@router.get("/import-jobs/{id}")
def show_job(id: str, engine: TheEngine, principal: Reader) -> dict[str, Any]:
    if added := _ADDED.fullmatch(id):  # a single pair, learned before the client had this id
        memory = engine.catalogue.get(principal, int(added[1]))
        return ok(_taught_json(id, memory))
    job = visible_job(engine, principal, id)
    if job.kind != "import":
        raise NotFound(f"no import job {id}")
    if job.state == "failed":
        raise KsterError(engine.catalogue.forget_paths(f"the import failed: {job.error}"))
    return ok(import_json(job))


def import_json(job: Job) -> dict[str, Any]:
    return {"id": job.id, "memory": job.memory, "size": job.total or 0, "progress": job.progress}


def named_memory(engine: Engine, principal: Principal, id: str, *, to_change: bool = False) -> ServerMemory:
    """By our id, or by the external id that its owner gave it."""
    number = whole_number(id)
    if number is None:
        named = [memory.id for memory in engine.catalogue.visible(principal) if memory.external_id == id]
        if not named:
            raise NotFound(f"no memory {id}")
        number = named[0]
    return engine.catalogue.get(principal, number, to_change=to_change)


def _memory_json(memory: ServerMemory) -> dict[str, Any]:
    return {
        "id": memory.id,
        "name": memory.name,
        "description": memory.description,
        "creationDate": memory.created,
        "externalId": memory.external_id,
    }


def _pair_of_tmx(engine: Engine, path: Path) -> ServedModel:
    """The first of the served language pairs that a TMX has units in."""
    for served in engine.models:
        try:
            for number, item in enumerate(read_pairs(path, served.source, served.target, format="tmx")):
                if isinstance(item, Pair):
                    return served
                if number >= LOOKED_AT:
                    break
        except KsterError:  # none in these languages, or broken: the import job will say so
            continue
    return engine.models[0]
