"""A term base: one SQLite file. Every change is one transaction, so it happens whole or not at all."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from types import TracebackType

from kster.errors import KsterError
from kster.formats.pair import Rejection
from kster.terms.files import read_terms, write_terms
from kster.terms.term import Term, term

FORMAT = 2
APPLICATION = 0x4B544231  # "KTB1": tells a term base from other SQLite files
PATIENCE = 30  # seconds to wait for another writer

SCHEMA = f"""
PRAGMA application_id = {APPLICATION};
PRAGMA user_version = {FORMAT};
CREATE TABLE languages (source TEXT NOT NULL, target TEXT NOT NULL);
CREATE TABLE terms (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    source TEXT NOT NULL,
    targets TEXT NOT NULL,                 -- a JSON list, the preferred one first
    part_of_speech TEXT NOT NULL,          -- empty where unknown
    case_rule TEXT NOT NULL,
    note TEXT NOT NULL,
    translate INTEGER NOT NULL,
    inside_words INTEGER NOT NULL,
    gender TEXT NOT NULL DEFAULT '',       -- empty where unknown; not in format 1
    UNIQUE (source, part_of_speech)
);
"""
COLUMNS = "id, source, targets, part_of_speech, case_rule, note, translate, inside_words, gender"


@dataclass(frozen=True, slots=True)
class TermImport:
    """What an import did. replaced: terms of the same source and part of speech that said something else."""

    added: int
    replaced: int
    unchanged: int
    rejected: tuple[Rejection, ...]


class TermBase:
    """Terms of one pair of languages, in a file; at most one of a source and part of speech.

    with TermBase.create("company.terms", "en", "de") as base:
        base.add(term("knock box", ["Abschlagbehälter"]))
    """

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection
        row = connection.execute("SELECT source, target FROM languages").fetchone()
        self.source_lang: str = row[0]
        self.target_lang: str = row[1]

    @classmethod
    def create(cls, path: str | PathLike[str], source_lang: str, target_lang: str) -> TermBase:
        """A new, empty term base; the file must not exist."""
        path = Path(path)
        with _for_people(path, "nothing was made"):
            try:
                path.open("xb").close()
            except FileExistsError as error:
                raise KsterError(f"{path}: exists already; nothing was changed") from error
            connection = _connect(path)
            connection.executescript(f"BEGIN; {SCHEMA}")
            connection.execute("INSERT INTO languages VALUES (?, ?)", (source_lang, target_lang))
            connection.execute("COMMIT")
            return cls(path, connection)

    @classmethod
    def open(cls, path: str | PathLike[str]) -> TermBase:
        path = Path(path)
        if not path.is_file():
            raise KsterError(
                f"{path}: no such term base; make one with `kster terms create {path} "
                "--source-lang CODE --target-lang CODE`"
            )
        with _for_people(path, "nothing was changed"):
            connection = _connect(path)
            (application,) = connection.execute("PRAGMA application_id").fetchone()
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            if application != APPLICATION:
                raise KsterError(f"{path}: not a term base; read files of terms with `kster terms import`")
            if not 1 <= version <= FORMAT:
                raise KsterError(f"{path}: a term base of format {version}; this KSTER reads {FORMAT}")
            if version == 1:
                _add_genders(path, connection)
            return cls(path, connection)

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> TermBase:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # Reading -----------------------------------------------------------------------------------------

    def terms(self) -> list[Term]:
        """All terms, in the order they were first added."""
        with _for_people(self.path, "nothing was changed"):
            return [
                _term(row) for row in self._connection.execute(f"SELECT {COLUMNS} FROM terms ORDER BY id")
            ]

    def version(self) -> tuple[int, int]:
        """Differs after every change, by any process; takes microseconds."""
        (others,) = self._connection.execute("PRAGMA data_version").fetchone()
        return others, self._connection.total_changes

    def export_file(self, path: str | PathLike[str], *, format: str | None = None) -> int:
        """Write all terms to a TBX, TSV or CSV file; returns how many."""
        return write_terms(Path(path), self.terms(), self.source_lang, self.target_lang, format=format)

    # Changing ----------------------------------------------------------------------------------------

    def add(self, new: Term) -> Term:
        """Add a term, or replace the one with the same source and part of speech."""
        with self._change():
            self._put(new)
            (id,) = self._connection.execute(
                "SELECT id FROM terms WHERE source = ? AND part_of_speech = ?",
                (new.source, new.part_of_speech or ""),
            ).fetchone()
        return replace(new, id=id)

    def remove(self, ids: Sequence[int]) -> int:
        """Remove terms by their ids: all of them, or none if one is unknown. Returns how many."""
        wanted = list(dict.fromkeys(ids))
        with self._change():
            for id in wanted:
                if not self._connection.execute("DELETE FROM terms WHERE id = ?", (id,)).rowcount:
                    raise KsterError(f"{self.path}: there is no term {id}; nothing was removed")
        return len(wanted)

    def remove_source(self, source: str) -> int:
        """Remove the terms of a source, whatever their part of speech. Returns how many."""
        with self._change():
            return self._connection.execute("DELETE FROM terms WHERE source = ?", (source,)).rowcount

    def import_file(self, path: str | PathLike[str], *, format: str | None = None) -> TermImport:
        """Add the terms of a TBX, TSV or CSV file; they replace those that were there.

        A broken row or entry is left out; a file that cannot be read to its end changes nothing.
        """
        found: list[Term] = []
        rejected: list[Rejection] = []
        for item in read_terms(Path(path), self.source_lang, self.target_lang, format=format):
            (rejected if isinstance(item, Rejection) else found).append(item)  # type: ignore[arg-type]
        counts = {"added": 0, "replaced": 0, "unchanged": 0}
        with self._change():
            for one in _joined(found):
                counts[self._put(one)] += 1
        return TermImport(**counts, rejected=tuple(rejected))

    def _put(self, new: Term) -> str:
        key = (new.source, new.part_of_speech or "")
        values = (json.dumps(new.targets, ensure_ascii=False), new.case, new.note, new.translate)
        more = (new.inside_words, new.gender or "")
        old = self._connection.execute(
            "SELECT targets, case_rule, note, translate, inside_words, gender FROM terms "
            "WHERE source = ? AND part_of_speech = ?",
            key,
        ).fetchone()
        if old == (*values, *more):
            return "unchanged"
        self._connection.execute(
            "INSERT INTO terms (source, part_of_speech, targets, case_rule, note, translate, inside_words, "
            "gender) VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (source, part_of_speech) DO UPDATE SET "
            "targets = excluded.targets, case_rule = excluded.case_rule, note = excluded.note, "
            "translate = excluded.translate, inside_words = excluded.inside_words, gender = excluded.gender",
            (*key, *values, *more),
        )
        return "added" if old is None else "replaced"

    @contextmanager
    def _change(self) -> Iterator[None]:
        with _for_people(self.path, "nothing was changed"):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")


def _joined(terms: Iterable[Term]) -> list[Term]:
    """Rows of one source are one term: the first row's target is preferred, and its rules count."""
    joined: dict[tuple[str, str | None], Term] = {}
    for one in terms:
        first = joined.setdefault((one.source, one.part_of_speech), one)
        targets = dict.fromkeys(first.targets + one.targets) if first.translate else first.targets
        joined[one.source, one.part_of_speech] = replace(first, targets=tuple(targets))
    return list(joined.values())


def _add_genders(path: Path, connection: sqlite3.Connection) -> None:
    """From format 1 to 2; a file that cannot be written is read as if it had been."""
    if not os.access(path, os.W_OK):
        connection.execute("CREATE TEMP VIEW terms AS SELECT *, '' AS gender FROM main.terms")
        return
    connection.execute("BEGIN IMMEDIATE")
    if connection.execute("PRAGMA user_version").fetchone() == (1,):  # nobody else did it meanwhile
        connection.execute("ALTER TABLE terms ADD COLUMN gender TEXT NOT NULL DEFAULT ''")
        connection.execute(f"PRAGMA user_version = {FORMAT}")
    connection.execute("COMMIT")


def _connect(path: Path) -> sqlite3.Connection:
    mode = "rw" if os.access(path, os.W_OK) else "ro"
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}",
        uri=True,
        timeout=PATIENCE,
        isolation_level=None,
        check_same_thread=False,
    )
    connection.execute("PRAGMA synchronous = FULL")
    return connection


@contextmanager
def _for_people(path: Path, after: str) -> Iterator[None]:
    try:
        yield
    except sqlite3.DatabaseError as error:
        locked = "locked" in str(error)
        reason = "another program is changing it" if locked else f"cannot be used ({error})"
        raise KsterError(f"{path}: {reason}; {after}") from error
    except OSError as error:
        raise KsterError(f"{path}: {error.strerror or error}; {after}") from error


def _term(row: tuple) -> Term:
    id, source, targets, part_of_speech, case, note, translate, inside_words, gender = row
    made = term(
        source,
        json.loads(targets),
        part_of_speech=part_of_speech,
        case=case,
        note=note,
        translate=bool(translate),
        inside_words=bool(inside_words),
        gender=gender,
    )
    return replace(made, id=id)
