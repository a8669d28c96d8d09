"""The term bases a server keeps: who may see them, and which serve a translation.

Each is a file of its own (`kster.terms.TermBase`) in the data directory, of one pair of languages, and
belongs to the key that made it. Like memories, those marked so serve requests of their owner that name none.
"""

from __future__ import annotations

import shutil
import sqlite3
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from kster.errors import KsterError
from kster.server.api.parameters import require_whole
from kster.server.auth.access import Forbidden, NotFound, Principal
from kster.server.database import ServerDatabase, now
from kster.server.work.served_model import ServedModel
from kster.terms import Term, TermBase

TERMS = "terms"
FILE = "base.terms"
MAX_NAME = 200


@dataclass(frozen=True, slots=True)
class ServerTermBase:
    """One line of the catalogue. pair: "en-de"."""

    id: int
    name: str
    pair: str
    created: str
    owner: int | None
    automatic: bool


class TermCatalogue:
    """All of a server's term bases, opened once each."""

    def __init__(self, data: Path, database: ServerDatabase) -> None:
        self._root = data / TERMS
        self._root.mkdir(parents=True, exist_ok=True)
        self._database = database
        self._open: dict[int, TermBase] = {}
        self._read: dict[int, tuple[tuple[int, int], list[Term]]] = {}  # terms, and of which version
        self._lock = threading.RLock()
        known = {str(line.id) for line in self._all()}
        for path in self._root.iterdir():  # left by a server that died while it deleted them
            if path.name not in known:
                shutil.rmtree(path, ignore_errors=True)

    def _all(self) -> list[ServerTermBase]:
        return [_line(row) for row in self._database.all("SELECT * FROM term_bases ORDER BY id")]

    def visible(self, principal: Principal) -> list[ServerTermBase]:
        return [line for line in self._all() if principal.may("admin") or line.owner == principal.key_id]

    def get(self, principal: Principal, id: int, *, to_change: bool = False) -> ServerTermBase:
        """One that this client may see, or change. One it may not see is not there at all."""
        found = next((line for line in self.visible(principal) if line.id == id), None)
        if found is None:
            raise NotFound(f"no term base {id}")
        if to_change and not self.may_change(principal, found):
            raise Forbidden(
                f"term base {id} ({found.name}) can be changed by its owner and by admin keys only"
            )
        return found

    def may_change(self, principal: Principal, line: ServerTermBase) -> bool:
        return principal.may("admin") or (principal.may("write") and line.owner == principal.key_id)

    def create(self, principal: Principal, name: str, served: ServedModel, automatic: bool) -> ServerTermBase:
        _, id = self._database.change(
            "INSERT INTO term_bases (name, pair, created, owner, automatic) VALUES (?, ?, ?, ?, ?)",
            (_require_name(name), served.pair, now(), principal.key_id, automatic),
        )
        line = self.get(principal, id)
        with self._lock:
            (self._root / str(id)).mkdir()
            self._open[id] = TermBase.create(self._root / str(id) / FILE, served.source, served.target)
        return line

    def edit(self, principal: Principal, id: int, name: str | None, automatic: bool | None) -> ServerTermBase:
        line = self.get(principal, id, to_change=True)
        self._database.change(
            "UPDATE term_bases SET name = ?, automatic = ? WHERE id = ?",
            (
                line.name if name is None else _require_name(name),
                line.automatic if automatic is None else automatic,
                id,
            ),
        )
        return self.get(principal, id)

    def delete(self, principal: Principal, id: int) -> None:
        line = self.get(principal, id, to_change=True)
        self._database.change("DELETE FROM term_bases WHERE id = ?", (line.id,))
        with self._lock:
            if opened := self._open.pop(line.id, None):
                opened.close()
            self._read.pop(line.id, None)
            shutil.rmtree(self._root / str(line.id), ignore_errors=True)

    def base(self, line: ServerTermBase) -> TermBase:
        with self._lock:
            if line.id not in self._open:
                path = self._root / str(line.id) / FILE
                if not path.is_file():
                    raise KsterError(f"term base {line.id} ({line.name}) has lost its file; delete it")
                self._open[line.id] = TermBase.open(path)
            return self._open[line.id]

    def terms(self, line: ServerTermBase) -> list[Term]:
        """All of them; read again only when something has changed."""
        with self._lock:
            base = self.base(line)
            version = base.version()
            known = self._read.get(line.id)
            if known is None or known[0] != version:
                known = self._read[line.id] = version, base.terms()
            return known[1]

    def chosen(
        self, principal: Principal, served: ServedModel, ids: Iterable[int] | None
    ) -> list[ServerTermBase]:
        """Those named that are for this pair of languages; None: those that serve automatically."""
        if ids is None:
            own = [line for line in self._all() if line.owner == principal.key_id and line.automatic]
        else:
            own = [self.get(principal, id) for id in dict.fromkeys(ids)]
        return [line for line in own if line.pair == served.pair]

    def terms_for(
        self, principal: Principal, served: ServedModel, ids: Iterable[int] | None, given: Iterable[Term]
    ) -> list[Term]:
        """Those a request brings along, then those of its bases; the first of a source counts."""
        bases = self.chosen(principal, served, ids)
        found: dict[tuple[str, str | None], Term] = {}
        for one in [*given, *(one for line in bases for one in self.terms(line))]:
            found.setdefault((one.source, one.part_of_speech), one)
        return list(found.values())

    def close(self) -> None:
        with self._lock:
            for base in self._open.values():
                base.close()
            self._open.clear()


def _line(row: sqlite3.Row) -> ServerTermBase:
    return ServerTermBase(
        row["id"], row["name"], row["pair"], row["created"], row["owner"], bool(row["automatic"])
    )


def _require_name(name: str) -> str:
    if not name.strip() or len(name) > MAX_NAME:
        raise KsterError(f"a term base's name has 1 to {MAX_NAME} characters")
    return require_whole(name.strip(), "the name")
