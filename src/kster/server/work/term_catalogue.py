"""The term bases a server keeps: who may see them, and which serve a translation.

Each is a file of its own (`kster.terms.TermBase`) in the data directory, of one pair of languages, and
belongs to the key that made it. Like memories, automatic ones serve requests of their owner that name none.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kster.errors import KsterError
from kster.server.auth.access import Principal
from kster.server.database import ServerDatabase, now
from kster.server.work.owned import Owned, OwnedThings
from kster.server.work.served_model import ServedModel
from kster.terms import Term, TermBase

TERMS = "terms"
FILE = "base.terms"


@dataclass(frozen=True, slots=True)
class ServerTermBase(Owned):
    """One line of the catalogue."""

    pair: str  # en-de


class TermCatalogue(OwnedThings[ServerTermBase]):
    """All of a server's term bases, opened once each."""

    table, noun = "term_bases", "term base"

    def __init__(self, data: Path, database: ServerDatabase) -> None:
        super().__init__(data / TERMS, database)
        self._open: dict[int, TermBase] = {}
        self._read: dict[int, tuple[tuple[int, int], list[Term]]] = {}  # terms, and of which version
        self._lock = threading.RLock()

    def _of_row(self, row: Any) -> ServerTermBase:
        return ServerTermBase(**{**dict(row), "automatic": bool(row["automatic"])})

    def create(self, principal: Principal, name: str, served: ServedModel, automatic: bool) -> ServerTermBase:
        _, id = self._database.change(
            "INSERT INTO term_bases (name, pair, created, owner, automatic) VALUES (?, ?, ?, ?, ?)",
            (self._require_name(name), served.pair, now(), principal.key_id, automatic),
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
                line.name if name is None else self._require_name(name),
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
        """All terms of a base, read again only when something has changed."""
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
        """Of the term bases named, those for this pair of languages; for None, the automatic ones."""
        if ids is None:
            seen = self.visible(principal)
            own = [line for line in seen if line.owner == principal.key_id and line.automatic]
        else:
            own = [self.get(principal, id) for id in dict.fromkeys(ids)]
        return [line for line in own if line.pair == served.pair]

    def joined(self, given: Iterable[Term], bases: Iterable[ServerTermBase]) -> list[Term]:
        """The terms given with a request, then those of its bases; of a repeated term the first counts."""
        found: dict[tuple[str, str | None], Term] = {}
        for one in [*given, *(one for line in bases for one in self.terms(line))]:
            found.setdefault((one.source, one.part_of_speech), one)
        return list(found.values())

    def close(self) -> None:
        with self._lock:
            for base in self._open.values():
                base.close()
            self._open.clear()
