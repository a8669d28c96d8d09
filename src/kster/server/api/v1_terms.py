"""/v1/terms: term bases and their terms, which translations keep."""

from __future__ import annotations

import tempfile
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import APIRouter, File, Form, Query, UploadFile
from pydantic import BaseModel, Field
from starlette.responses import FileResponse

from kster.formats import Pair
from kster.server.api.context import Reader, TheEngine, Writer
from kster.server.api.given_terms import GivenTerm
from kster.server.api.transfers import download, shown_name
from kster.server.auth.access import NotFound, Principal
from kster.server.work.engine import Engine
from kster.server.work.term_catalogue import ServerTermBase
from kster.terms import Term
from kster.terms.checking import contradictions, lost_terms
from kster.terms.files import detect_format

router = APIRouter(prefix="/v1/terms", tags=["terms"])

MOST_CHECKED = 1_000  # pairs at once
MEDIA_TYPES = {"tbx": "application/xml", "tsv": "text/tab-separated-values", "csv": "text/csv"}


class NewTermBase(BaseModel):
    name: str
    pair: str | None = Field(None, description="Such as en-de; needed where the server has several.")
    automatic: bool = Field(True, description="Whether it serves requests that name no term base.")


class TermBaseEdit(BaseModel):
    name: str | None = None
    automatic: bool | None = None


class NewTerm(GivenTerm):
    note: str = Field("", max_length=1_000)

    def term(self) -> Term:
        return replace(super().term(), note=self.note.strip())


class CheckedPair(BaseModel):
    source: str
    target: str


class Check(BaseModel):
    pairs: list[CheckedPair] = Field(default_factory=list, max_length=MOST_CHECKED)


@router.get("")
def list_term_bases(engine: TheEngine, principal: Reader) -> list[dict[str, Any]]:
    """The term bases this key may see."""
    return [_json(engine, principal, line) for line in engine.terms.visible(principal)]


@router.post("", status_code=201)
def create_term_base(new: NewTermBase, engine: TheEngine, principal: Writer) -> dict[str, Any]:
    """Make an empty term base of one language pair."""
    served = engine.models[0] if new.pair is None and len(engine.models) == 1 else None
    served = served or engine.model_by_pair(new.pair or "(none was named)")
    return _json(engine, principal, engine.terms.create(principal, new.name, served, new.automatic))


@router.get("/{id}")
def show_term_base(id: int, engine: TheEngine, principal: Reader) -> dict[str, Any]:
    return _json(engine, principal, engine.terms.get(principal, id))


@router.patch("/{id}")
def edit_term_base(id: int, edit: TermBaseEdit, engine: TheEngine, principal: Writer) -> dict[str, Any]:
    return _json(engine, principal, engine.terms.edit(principal, id, edit.name, edit.automatic))


@router.delete("/{id}")
def delete_term_base(id: int, engine: TheEngine, principal: Writer) -> dict[str, Any]:
    """Delete a term base with all its terms."""
    engine.terms.delete(principal, id)
    return {"deleted": id}


@router.get("/{id}/terms")
def list_terms(
    id: int,
    engine: TheEngine,
    principal: Reader,
    query: Annotated[str, Query(max_length=200, description="Text in a source or target.")] = "",
    limit: Annotated[int, Query(ge=1, le=1_000)] = 100,
    offset: Annotated[int, Query(ge=0)] = 0,
) -> dict[str, Any]:
    wanted = query.casefold()
    found = [
        one
        for one in engine.terms.terms(engine.terms.get(principal, id))
        if any(wanted in text.casefold() for text in (one.source, *one.targets))
    ]
    return {"total": len(found), "terms": [asdict(one) for one in found[offset : offset + limit]]}


@router.post("/{id}/terms", status_code=201)
def add_term(id: int, new: NewTerm, engine: TheEngine, principal: Writer) -> dict[str, Any]:
    """Add a term, or replace the one with the same source and part of speech. The next translation keeps
    it."""
    line = engine.terms.get(principal, id, to_change=True)
    return asdict(engine.terms.base(line).add(new.term()))


@router.delete("/{id}/terms/{term}")
def remove_term(id: int, term: int, engine: TheEngine, principal: Writer) -> dict[str, Any]:
    line = engine.terms.get(principal, id, to_change=True)
    if all(one.id != term for one in engine.terms.terms(line)):
        raise NotFound(f"term base {id} has no term {term}")
    engine.terms.base(line).remove([term])
    return {"removed": term}


@router.post("/{id}/import")
def import_terms(
    id: int,
    engine: TheEngine,
    principal: Writer,
    file: Annotated[UploadFile, File(description=".tbx .tsv .csv, also with .gz or .xz")],
    format: Annotated[str | None, Form()] = None,
) -> dict[str, Any]:
    """Add the terms of a file: all usable ones or, if the file is broken, none."""
    line = engine.terms.get(principal, id, to_change=True)
    with tempfile.TemporaryDirectory(prefix="kster-terms-") as folder:
        path = Path(folder) / shown_name(file)
        data = file.file.read(engine.upload_limit + 1)
        engine.require_upload_size(len(data))
        path.write_bytes(data)
        report = engine.terms.base(line).import_file(path, format=format or detect_format(path))
    return {**asdict(report), "rejected": [{**asdict(one), "file": path.name} for one in report.rejected]}


@router.get("/{id}/export")
def export_terms(
    id: int, engine: TheEngine, principal: Reader, format: Literal["tbx", "tsv", "csv"] = "tbx"
) -> FileResponse:
    """All terms as a file."""
    base = engine.terms.base(engine.terms.get(principal, id))
    return download(base.export_file, f"terms-{id}.{format}", MEDIA_TYPES[format])


@router.post("/{id}/check")
def check_terms(id: int, check: Check, engine: TheEngine, principal: Reader) -> dict[str, Any]:
    """Which terms translations have not kept; without pairs, which terms contradict each other."""
    line = engine.terms.get(principal, id)
    terms = engine.terms.terms(line)
    engine.require_size([text for pair in check.pairs for text in (pair.source, pair.target)])
    pairs = [Pair(pair.source, pair.target, None, i) for i, pair in enumerate(check.pairs, 1)]
    source, target = line.pair.split("-", 1) if pairs else ("", "")
    problems = list(lost_terms(terms, pairs, source, target)) if pairs else contradictions(terms)
    return {"ok": not problems, "problems": problems}


def _json(engine: Engine, principal: Principal, line: ServerTermBase) -> dict[str, Any]:
    return {
        "id": line.id,
        "name": line.name,
        "pair": line.pair,
        "created": line.created,
        "automatic": line.automatic,
        "changeable": engine.terms.may_change(principal, line),
        "terms": len(engine.terms.terms(line)),
    }
