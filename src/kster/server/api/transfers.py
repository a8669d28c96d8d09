"""Uploads, which are stored in the data directory under names of our own, and downloads."""

from __future__ import annotations

import re
import secrets
import shutil
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from starlette.background import BackgroundTask
from starlette.datastructures import UploadFile
from starlette.responses import FileResponse

from kster.errors import KsterError
from kster.files import sync
from kster.formats import FORMATS
from kster.server.auth.access import Principal
from kster.server.work.catalogue import ServerMemory
from kster.server.work.engine import Engine
from kster.server.work.jobs import Job
from kster.server.work.served_model import ServedModel

CHUNK = 1 << 20
IMPORTED = ("tmx", "xliff", "po", "tsv", "csv")
PACKED = (".gz", ".xz")
LONGEST_NAME = 180  # bytes; file systems take 255, and our own names add to it
_SUFFIXES = re.compile(r"(?:\.\w{1,10}){1,2}$")


def shown_name(upload: UploadFile) -> str:
    """The file's name as it may be shown: no directories, no control characters, and not too long."""
    name = PurePosixPath((upload.filename or "").replace("\\", "/")).name
    name = re.sub(r"[^\w .()+-]", "_", name) or "upload"
    suffixes = _SUFFIXES.search(name)
    ending = suffixes[0] if suffixes else ""
    stem = name.removesuffix(ending).encode("utf-8")[: LONGEST_NAME - len(ending.encode("utf-8"))]
    return stem.decode("utf-8", "ignore") + ending


def suffix_of(name: str, wanted: str | None) -> str:
    """Format and packing (.tmx.gz), as the client says or the name shows."""
    suffixes = [suffix.lower() for suffix in PurePosixPath(name).suffixes]
    packed = suffixes.pop() if suffixes and suffixes[-1] in PACKED else ""
    format = wanted or FORMATS.get(suffixes[-1] if suffixes else "", "")
    if format not in IMPORTED:
        raise KsterError(
            f"{name}: cannot tell its format; accepted: {', '.join(FORMATS)} (also with .gz or .xz), or "
            f"`format` as one of {', '.join(IMPORTED)}; nothing was imported"
        )
    return f".{format}{packed}"


def import_upload(
    engine: Engine,
    principal: Principal,
    memory: ServerMemory,
    upload: UploadFile,
    suffix: str,
    pair_of: Callable[[Path], ServedModel],
) -> Job:
    """Store a file in `uploads/ID/` and queue its import. Not for the event loop.

    suffix: format and packing (.tmx.gz). pair_of: finds the language pair of the stored file.
    """
    id = secrets.token_hex(8)
    path = engine.uploads / id / f"file{suffix}"
    path.parent.mkdir()
    try:
        _store(engine, upload, path)
        request = {
            "pair": pair_of(path).pair,
            "file": path.name,
            "name": shown_name(upload),
            "format": suffix.split(".")[1],
            "author": principal.name,
        }
        return engine.jobs.submit("import", memory.id, principal.key_id, request, id)
    except BaseException:
        shutil.rmtree(path.parent, ignore_errors=True)
        raise


def _store(engine: Engine, upload: UploadFile, path: Path) -> None:
    size = 0
    with path.open("xb") as out:
        while chunk := upload.file.read(CHUNK):
            size += len(chunk)
            engine.require_upload_size(size)
            out.write(chunk)
        sync(out)  # a job that was accepted must find its file after a crash


def download(write: Callable[[Path], object], name: str, media_type: str) -> FileResponse:
    """A file that `write` makes now, deleted when it has been sent. Not for the event loop."""
    folder = TemporaryDirectory(prefix="kster-")
    try:
        write(Path(folder.name) / name)
    except BaseException:
        folder.cleanup()
        raise
    cleanup = BackgroundTask(folder.cleanup)
    return FileResponse(Path(folder.name) / name, media_type=media_type, filename=name, background=cleanup)
