"""DeepL's documents: uploaded, translated in the background, polled, downloaded.

They are translated one at a time, in turns with other requests. A restart forgets them.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import FileResponse

from kster.documents.kinds import SUFFIXES
from kster.errors import KsterError
from kster.server.api.context import Reader, TheEngine
from kster.server.api.deepl import require_languages, required, wish_of
from kster.server.api.file_translation import KEPT_SECONDS, keep, source_of, translate_document
from kster.server.api.parameters import Given
from kster.server.api.texts import Means, in_good_time, is_target_already
from kster.server.api.transfers import shown_name
from kster.server.auth.access import NotFound
from kster.server.errors import ApiError, TooMany

log = logging.getLogger("kster.server")

router = APIRouter(prefix="/v2", tags=["DeepL"])

MOST_WAITING = 16  # documents, which are held in memory
STATUS_SECONDS = 2.0  # that a status request waits for the end: the client polls every five


class NotReady(ApiError):
    status, kind = 503, "NotReadyException"


@dataclass(slots=True)
class Upload:
    """A document that was uploaded; its task returns the translated file."""

    name: str
    characters: int
    task: asyncio.Task[Path] = field(init=False)
    progress: float = 0.0  # from 0 to 1
    key: str = field(default_factory=lambda: secrets.token_hex(32))
    made: float = field(default_factory=time.monotonic)

    def report(self, progress: float) -> None:
        self.progress = progress


Work = Callable[[Callable[[float], None]], Coroutine[Any, Any, Path]]
"""Makes the translated file; it is called with a function to report its progress to."""


class Documents:
    """The documents of a running server, for as long as their files are kept."""

    def __init__(self) -> None:
        self._uploads: dict[str, Upload] = {}
        self._turn = asyncio.Lock()

    def add(self, name: str, characters: int, work: Work) -> tuple[str, Upload]:
        """Queue a document to be translated; returns its id as well."""
        for id, old in list(self._uploads.items()):
            if old.task.done() and time.monotonic() - old.made > KEPT_SECONDS:
                del self._uploads[id]
        if sum(not upload.task.done() for upload in self._uploads.values()) >= MOST_WAITING:
            raise TooMany(f"{MOST_WAITING} documents are waiting already; try again later")
        id = secrets.token_hex(16)
        document = self._uploads[id] = Upload(name, characters)
        document.task = asyncio.create_task(self._in_turn(work, document))
        return id, document

    async def _in_turn(self, work: Work, document: Upload) -> Path:
        async with self._turn:
            return await work(document.report)

    def get(self, id: str, key: str) -> Upload:
        upload = self._uploads.get(id)
        if upload is None or not secrets.compare_digest(upload.key.encode(), key.encode()):
            raise NotFound("Document not found.")
        return upload

    async def close(self) -> None:
        """Give up what is not done."""
        tasks = [upload.task for upload in self._uploads.values() if not upload.task.done()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def documents_of(request: Request) -> Documents:
    documents: Documents = request.app.state.documents
    return documents


@router.post("/document")
async def upload(request: Request, given: Given, engine: TheEngine, principal: Reader) -> dict[str, str]:
    """Multipart `file`, `target_lang`, and `source_lang`, which is detected if it is missing."""
    file = given.files.get("file")
    if file is None:
        raise KsterError("Parameter 'file' not specified.")
    file.filename = given.text("filename") or file.filename
    name = shown_name(file)
    suffix = PurePosixPath(name).suffix.lower()
    if suffix not in SUFFIXES:
        raise KsterError(f"Invalid file type {suffix or name!r}. Accepted: {', '.join(SUFFIXES)}.")
    if (given.text("output_format") or suffix).lower().removeprefix(".") != suffix.removeprefix("."):
        raise KsterError("Value for 'output_format' not supported: a file keeps its format.")
    source, target = given.text("source_lang"), required(given, "target_lang")
    require_languages(engine, source, target)
    wish = wish_of(engine, principal, given)
    data = await file.read()
    if source is None:
        source = await in_good_time(engine, source_of, engine, name, data, target)
    if is_target_already(engine, source, target):
        raise KsterError("Source and target language are equal.")
    served = engine.model_for(source, target)
    means = await Means.of(engine, principal, served, wish)

    async def work(report: Callable[[float], None]) -> Path:
        translated, _ = await translate_document(engine, served, name, data, means, report)
        return await asyncio.to_thread(keep, engine, name, served.target, translated)

    id, document = documents_of(request).add(name, len(data), work)
    return {"document_id": id, "document_key": document.key}


@router.post("/document/{id}")
async def status(
    id: str, request: Request, given: Given, engine: TheEngine, principal: Reader
) -> dict[str, Any]:
    document = documents_of(request).get(id, required(given, "document_key"))
    await asyncio.wait({document.task}, timeout=STATUS_SECONDS)
    if not document.task.done():
        return {"document_id": id, "status": "translating", "kster_progress": round(document.progress, 3)}
    error = document.task.exception()
    if error is None:
        return {"document_id": id, "status": "done", "billed_characters": document.characters}
    if not isinstance(error, KsterError):
        log.error("a document was not translated", exc_info=error)
        error = KsterError("internal error")
    message = engine.catalogue.forget_paths(str(error))
    return {"document_id": id, "status": "error", "message": message, "error_message": message}


@router.post("/document/{id}/result")
async def result(id: str, request: Request, given: Given, principal: Reader) -> FileResponse:
    """The translated file, for an hour."""
    document = documents_of(request).get(id, required(given, "document_key"))
    if not document.task.done():
        raise NotReady("Document not ready. Try again later.")
    if document.task.exception() is not None or not document.task.result().is_file():
        raise NotFound("Document not found: it could not be translated, or has expired.")
    return FileResponse(document.task.result(), media_type="application/octet-stream", filename=document.name)
