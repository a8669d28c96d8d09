"""Files that clients send: written to the data directory under names of our own."""

from __future__ import annotations

import os
import re
import secrets
import shutil
from pathlib import Path, PurePosixPath

from starlette.datastructures import UploadFile

from kster.errors import KsterError
from kster.formats import FORMATS
from kster.server.work.engine import Engine

CHUNK = 1 << 20
IMPORTED = ("tmx", "xliff", "po", "tsv", "csv")
PACKED = (".gz", ".xz")
LONGEST_NAME = 180  # bytes; file systems take 255, and names of our own have more in them
_SUFFIXES = re.compile(r"(?:\.\w{1,10}){1,2}$")


def shown_name(upload: UploadFile) -> str:
    """The file's name as it may be shown: no directories, no control characters, and not too long."""
    name = PurePosixPath((upload.filename or "").replace("\\", "/")).name
    name = re.sub(r"[^\w .()+-]", "_", name) or "upload"
    suffixes = _SUFFIXES.search(name)
    ending = suffixes[0] if suffixes else ""
    stem = name.removesuffix(ending).encode("utf-8")[: LONGEST_NAME - len(ending.encode("utf-8"))]
    return stem.decode("utf-8", "ignore") + ending


def format_of(name: str, wanted: str | None) -> tuple[str, str]:
    """(format, suffix of the stored file), by what the client says or by the name."""
    suffixes = [suffix.lower() for suffix in PurePosixPath(name).suffixes]
    packed = suffixes.pop() if suffixes and suffixes[-1] in PACKED else ""
    format = wanted or FORMATS.get(suffixes[-1] if suffixes else "", "")
    if format not in IMPORTED:
        raise KsterError(
            f"{name}: cannot tell its format; accepted: {', '.join(FORMATS)} (also with .gz or .xz), or "
            f"`format` as one of {', '.join(IMPORTED)}; nothing was imported"
        )
    return format, f".{format}{packed}"


def store(engine: Engine, upload: UploadFile, suffix: str) -> tuple[str, Path]:
    """Write an upload to `uploads/ID/`; returns the id and the file. Not for the event loop."""
    id = secrets.token_hex(8)
    directory = engine.uploads / id
    path = directory / f"file{suffix}"
    size = 0
    try:
        directory.mkdir()
        with path.open("wb") as out:
            while chunk := upload.file.read(CHUNK):
                size += len(chunk)
                engine.require_upload_size(size)
                out.write(chunk)
            out.flush()
            os.fsync(out.fileno())  # a job that was accepted must find its file after a crash
    except BaseException:
        shutil.rmtree(directory, ignore_errors=True)
        raise
    return id, path
