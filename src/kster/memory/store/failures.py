"""What the disk and SQLite complain about, in words for people."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kster.errors import DamagedMemory, DiskFull, MemoryStoreError

FULL = "free some space, then try again"
NOT_ALLOWED = "make it writable for this user, or work on a copy"
LOCKED = "another program holds it; try again when that has finished"
DAMAGED = "restore it from a backup"
GONE = "part of it is missing; restore it from a backup"

ADVICE_BY_ERRNO = {
    errno.ENOSPC: FULL,
    errno.EDQUOT: FULL,
    errno.EFBIG: FULL,
    errno.EACCES: NOT_ALLOWED,
    errno.EPERM: NOT_ALLOWED,
    errno.EROFS: NOT_ALLOWED,
    errno.ENOENT: GONE,
    errno.ENOTDIR: GONE,
}
ADVICE_BY_SQLITE_CODE = {
    sqlite3.SQLITE_FULL: FULL,
    sqlite3.SQLITE_READONLY: NOT_ALLOWED,
    sqlite3.SQLITE_PERM: NOT_ALLOWED,
    sqlite3.SQLITE_CANTOPEN: NOT_ALLOWED,
    sqlite3.SQLITE_BUSY: LOCKED,
    sqlite3.SQLITE_LOCKED: LOCKED,
    sqlite3.SQLITE_CORRUPT: DAMAGED,
    sqlite3.SQLITE_NOTADB: DAMAGED,
}


@contextmanager
def for_people(place: Path, untouched: str = "") -> Iterator[None]:
    """A full or failing disk is no bug of ours: say where, what happened and what to do.

    untouched: how the message ends, such as "nothing was changed".
    """
    try:
        yield
    except (OSError, sqlite3.Error) as error:
        end = f"; {untouched}" if untouched else ""
        message = f"{place}: the memory's files cannot be used ({said(error)}){end}"
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # extended codes
        damaged = code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB) or GONE in message
        full = FULL in message
        raise (DamagedMemory if damaged else DiskFull if full else MemoryStoreError)(message) from error


def said(error: OSError | sqlite3.Error, *, new: bool = False) -> str:
    """What happened, and what to do about it where that is known.

    new: whether the memory is being created, so that nothing of it can be missing.
    """
    if isinstance(error, OSError):
        advice = ADVICE_BY_ERRNO.get(error.errno or 0)
        what = error.strerror or str(error)
        if error.filename is not None:
            what = f"{Path(str(error.filename)).name}: {what}"
    else:
        advice = ADVICE_BY_SQLITE_CODE.get(getattr(error, "sqlite_errorcode", 0) & 0xFF)  # extended codes
        what = str(error)
    return f"{what}: {advice}" if advice and not (new and advice == GONE) else what
