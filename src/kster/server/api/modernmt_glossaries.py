"""ModernMT's glossaries: terms in memories that a translation names as `glossaries`, as Weblate does.

They are examples like all others, and terms: a translation that names their memory keeps them.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

from fastapi import APIRouter
from starlette.datastructures import UploadFile

from kster.errors import KsterError
from kster.formats import Pair
from kster.formats.encoding import text_lines
from kster.server.api.context import TheEngine, Writer
from kster.server.api.modernmt import import_json, named_memory, ok, packing, teach
from kster.server.api.parameters import Given, Parameters
from kster.server.api.transfers import import_upload, shown_name
from kster.server.auth.access import Principal
from kster.server.work.catalogue import ServerMemory
from kster.server.work.engine import Engine
from kster.server.work.served_model import ServedModel
from kster.text.languages import match_rank

router = APIRouter(prefix="/mmt", tags=["ModernMT"])

WAITED = 3.0  # seconds for an import: Weblate uses a glossary at once, and waits five seconds for an answer
DIRECTION = "unidirectional"  # from the first language to the others


@router.post("/memories/{id}/glossary")
def add_terms(id: str, given: Given, engine: TheEngine, principal: Writer) -> dict[str, Any]:
    """Add a CSV file whose first line names its languages, or one entry as `terms`. An import that takes
    longer than a few seconds goes on in the background."""
    memory = _glossary(id, given, engine, principal)
    if "csv" in given.files:
        return ok(_import(engine, principal, memory, given, given.files["csv"]))
    return _teach(engine, principal, memory, given, replace=False)


@router.put("/memories/{id}/glossary")
def replace_terms(id: str, given: Given, engine: TheEngine, principal: Writer) -> dict[str, Any]:
    """Replace the entry that has the same `tuid`."""
    memory = _glossary(id, given, engine, principal)
    given.require("tuid")
    return _teach(engine, principal, memory, given, replace=True)


def _glossary(id: str, given: Parameters, engine: Engine, principal: Principal) -> ServerMemory:
    kind = given.text("type") or DIRECTION
    if kind != DIRECTION:
        raise KsterError(f"glossaries of the type {kind!r} are not supported; accepted: {DIRECTION}")
    return named_memory(engine, principal, id, to_change=True)


def _import(
    engine: Engine, principal: Principal, memory: ServerMemory, given: Parameters, upload: UploadFile
) -> dict[str, Any]:

    def pair_of(path: Path) -> ServedModel:
        try:
            return _pair_of(engine, _header(path))
        except KsterError as error:
            said = str(error).replace(str(path), shown_name(upload))
            raise KsterError(f"{said}; nothing was imported") from None

    job = import_upload(engine, principal, memory, upload, f".csv{packing(given)}", pair_of)
    engine.jobs.wait(job, WAITED)
    return import_json(job)


def _header(path: Path) -> list[str]:
    """The languages of a CSV file, which its first line names."""
    line = next(text_lines(path), None) or ""
    try:
        return [code.strip() for code in next(csv.reader([line]), [])]
    except csv.Error as error:
        raise KsterError(f"{path}, line 1: cannot be read as languages in CSV ({error})") from None


def _teach(
    engine: Engine, principal: Principal, memory: ServerMemory, given: Parameters, *, replace: bool
) -> dict[str, Any]:
    texts = _terms(given)
    served = _pair_of(engine, list(texts))
    source, target = (_text(texts, language) for language in (served.source, served.target))
    pair = Pair(source, target, given.text("tuid"))
    return teach(engine, principal, memory, served, pair, replace)


def _terms(parameters: Parameters) -> dict[str, str]:
    """`terms`, a list of {term, language}, by language."""
    given = parameters.values.get("terms")
    try:
        texts = {str(item["language"]): item["term"] for item in given or []}
    except (TypeError, KeyError):
        texts = {}
    if not texts or not all(isinstance(text, str) for text in texts.values()):
        raise KsterError("send a CSV file as `csv`, or `terms` as a list of {term, language}")
    return texts


def _text(texts: dict[str, str], language: str) -> str:
    return texts[max(texts, key=lambda code: match_rank(code, language))]


def _pair_of(engine: Engine, languages: list[str]) -> ServedModel:
    """The served pair from the first of these languages to one of the others."""
    for model in engine.models:
        from_first = bool(languages) and match_rank(languages[0], model.source)
        if from_first and any(match_rank(code, model.target) for code in languages[1:]):
            return model
    pairs = ", ".join(f"{model.source} → {model.target}" for model in engine.models)
    given = ", ".join(languages[:10]) or "no language"
    raise KsterError(f"no model for a glossary in {given}; available: {pairs}")
