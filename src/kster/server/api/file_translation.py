"""LibreTranslate's /translate_file: a file in, a link to the translated file out."""

from __future__ import annotations

import asyncio
import re
import secrets
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar
from urllib.parse import quote

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import FileResponse

from kster.documents.kinds import open_document
from kster.errors import KsterError
from kster.server.api.context import TheEngine
from kster.server.api.libretranslate import Caller
from kster.server.api.parameters import Given
from kster.server.api.texts import Means, Wish, in_good_time, is_target_already
from kster.server.api.transfers import shown_name
from kster.server.auth.access import NotFound
from kster.server.work.engine import Engine
from kster.server.work.served_model import ServedModel
from kster.text.codes import CodedText
from kster.text.languages import AUTO
from kster.translation import Translation
from kster.translation.files import DocumentTexts
from kster.translation.parts import Part

Sized = TypeVar("Sized", str, CodedText, Part)

router = APIRouter(tags=["LibreTranslate"])

DOWNLOADS = "downloads"
KEPT_SECONDS = 3600
MAX_CHARACTERS = 2_000_000  # of one file
PIECES_AT_ONCE = 32  # others' requests come in between
CHARACTERS_AT_ONCE = 4_000  # a fraction of `timeout_seconds` on two cores
DETECTED_BY = 50  # pieces looked at for `auto`
MOST_NAMED = 100  # places to check


@router.post("/translate_file")
async def translate_file(
    request: Request, parameters: Given, engine: TheEngine, principal: Caller
) -> dict[str, Any]:
    """Multipart `file`, `source`, `target` and, if wanted, `memories` and `exact_matches`; the link
    works for an hour.

    `repaired` names places where placeholders or tags had to be put back: check these.
    """
    upload = parameters.files.get("file")
    if upload is None:
        raise KsterError("Invalid request: missing file parameter")
    source, target = parameters.require("source"), parameters.require("target")
    name = shown_name(upload)
    data = await upload.read()
    if source == AUTO:
        source = await in_good_time(engine, source_of, engine, name, data, target)
    if is_target_already(engine, source, target):
        await in_good_time(engine, open_document, name, data, source, target)  # which may refuse it
        translated, repaired, warnings = data, list[str](), list[str]()
    else:
        served = engine.model_for(source, target)
        wish = Wish(
            memories=parameters.memories("memories"),
            exact_matches=parameters.flag("exact_matches", default=True),
        )
        means = await Means.of(engine, principal, served, wish)
        translated, repaired = await translate_document(engine, served, name, data, means)
        warnings = list(means.warnings)
        target = served.target
    path = await asyncio.to_thread(keep, engine, name, target, translated)
    said = {"repaired": repaired[:MOST_NAMED], "warnings": warnings}
    url = str(request.base_url) + f"download_file/{quote(path.name)}"
    return {"translatedFileUrl": url} | {name: value for name, value in said.items() if value}


def source_of(engine: Engine, name: str, data: bytes, target: str) -> str:
    """The language that a file says it is in, or else the one it seems to be in."""
    document = open_document(name, data, AUTO, target)
    if document.declared_source:
        return document.declared_source
    pieces = ["".join(map(str, unit.text)) for unit in document.units[:DETECTED_BY]]
    return engine.detector.best("\n".join(pieces))[0] if pieces else target


async def translate_document(
    engine: Engine,
    served: ServedModel,
    name: str,
    data: bytes,
    means: Means,
    report: Callable[[float], None] = lambda progress: None,
) -> tuple[bytes, list[str]]:
    """The translated file, and the places in it to check, because codes had to be put back there.

    report: called now and then with how much is done, from 0 to 1.
    """
    document = await in_good_time(engine, DocumentTexts, name, data, served.source, served.target)
    if (size := sum(map(len, document.texts))) > MAX_CHARACTERS:
        raise KsterError(f"{name}: {size:,} characters; at most {MAX_CHARACTERS:,} are accepted in a file")
    done: dict[CodedText, Translation] = {}
    for some in portions(document.texts):
        patience = 1 + sum(map(len, some)) / CHARACTERS_AT_ONCE  # a single text may be long
        results = await engine.translate(
            served,
            some,
            means.memories,
            exact_matches=means.exact_matches,
            terms=means.terms,
            patience=patience,
            key=means.key,
        )
        done.update(zip(some, results, strict=True))
        report(len(done) / len(document.texts))
    return await in_good_time(engine, document.written, done), document.repaired(done)


def portions(pieces: Sequence[Sized], characters: int = CHARACTERS_AT_ONCE) -> Iterator[list[Sized]]:
    """Pieces in order, as many at a time as are translated quickly; a long one alone."""
    portion: list[Sized] = []
    size = 0
    for piece in pieces:
        if portion and (len(portion) == PIECES_AT_ONCE or size + len(piece) > characters):
            yield portion
            portion, size = [], 0
        portion.append(piece)
        size += len(piece)
    if portion:
        yield portion


@router.get("/download_file/{name}")
def download_file(name: str, engine: TheEngine) -> FileResponse:
    """The translated file, for anyone who knows the link."""
    path = engine.settings.data / DOWNLOADS / name
    if not re.fullmatch(r"[0-9a-f]{32}\.[\w.+() -]{1,250}", name) or not path.is_file():
        raise NotFound("no such file, or it has expired")
    return FileResponse(path, media_type="application/octet-stream", filename=name.partition(".")[2])


def keep(engine: Engine, name: str, target: str, content: bytes) -> Path:
    """Write a translated file under a name nobody can guess, and delete old ones."""
    directory = engine.settings.data / DOWNLOADS
    directory.mkdir(exist_ok=True)
    for old in directory.iterdir():
        if old.stat().st_mtime < time.time() - KEPT_SECONDS:
            shutil.rmtree(old, ignore_errors=True) if old.is_dir() else old.unlink(missing_ok=True)
    plain = PurePosixPath(name)
    language = re.sub(r"\W", "_", target)
    path = directory / f"{secrets.token_hex(16)}.{plain.stem}_{language}{plain.suffix}"
    path.write_bytes(content)
    return path
