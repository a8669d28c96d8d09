"""The table of segments in one file: opening a large memory reads it, and from SQLite only what is newer.

Derived data, `index/segments.npz`. It counts as long as the database has its mark, a random number that is
written there together with the file: the file of another memory, or a database that somebody has put back,
does not have it. Whatever is wrong with the file, all is read from SQLite, and the file is made anew.
"""

from __future__ import annotations

import logging
import sqlite3
import zipfile
from contextlib import closing
from secrets import token_hex

import numpy as np

from kster.files import replacing
from kster.memory.store.database import Database, State
from kster.memory.store.spans import COLUMNS, Spans
from kster.memory.store.store import INDEX, Store

FILE = "segments.npz"
WORTH_SAVING = 50_000  # segments, which SQLite takes about half a second to read
SAVE_GROWTH = 0.25  # … and at least this share of all

log = logging.getLogger(__name__)


def all_spans(store: Store, database: Database, state: State) -> tuple[Spans, int]:
    """The segments as of this state, and how many of them are not in the file as they are."""
    saved = _read(store, database.mark(), state.epoch)
    if saved is None:
        spans = database.spans()
        return spans, len(spans)
    spans, generation = saved
    newer = database.spans(generation)
    return spans.updated(newer), len(newer)


def save_if_worth(store: Store, spans: Spans, state: State, unsaved: int) -> None:
    """Write the file when reading took long. Never raises: without it, the next start takes longer."""
    if unsaved < max(WORTH_SAVING, SAVE_GROWTH * len(spans)):
        return
    try:
        with closing(Database(store.directory)) as database:
            database.execute(
                "PRAGMA busy_timeout = 0"
            )  # whoever opens the memory when no one writes will do it
            database.execute("BEGIN IMMEDIATE")
            if database.state() == state:
                mark = token_hex(16)
                _write(store, spans, state, mark)
                database.set_mark(mark)
                database.execute("COMMIT")
    except (OSError, sqlite3.Error) as error:
        log.info("%s: the table of segments could not be saved (%s)", store.directory, error)


def _write(store: Store, spans: Spans, state: State, mark: str) -> None:
    path = store.directory / INDEX / FILE
    path.parent.mkdir(exist_ok=True)
    columns = {name: getattr(spans, name) for name in COLUMNS}
    with replacing(path, durable=False) as file:
        np.savez(file, mark=np.array(mark), state=np.array([state.generation, state.epoch]), **columns)


def _read(store: Store, mark: str | None, epoch: int) -> tuple[Spans, int] | None:
    """What the file has, and its generation; None where it does not count."""
    if mark is None:
        return None
    try:
        with np.load(store.directory / INDEX / FILE, allow_pickle=False) as arrays:  # checks its checksums
            generation, its_epoch = arrays["state"].tolist()
            if str(arrays["mark"]) != mark or its_epoch != epoch:
                return None
            return Spans(*(arrays[name] for name in COLUMNS)), generation
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None
