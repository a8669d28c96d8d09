"""What clients own on a server: rows of a table, each with a directory of its own, seen only by its owner.

Memories and term bases are such things.
"""

from __future__ import annotations

import shutil
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from kster.errors import KsterError
from kster.server.auth.access import Forbidden, NotFound, Principal
from kster.server.database import ServerDatabase

MAX_NAME = 200


@dataclass(frozen=True, slots=True)
class Owned:
    """One row."""

    id: int
    name: str
    created: str
    owner: int | None  # the key that made it
    automatic: bool  # whether it serves requests of its owner that name none


Thing = TypeVar("Thing", bound=Owned)


class OwnedThings(ABC, Generic[Thing]):
    """All of a server's things of one kind. table: their rows; noun: what people call one."""

    table: ClassVar[str]
    noun: ClassVar[str]

    def __init__(self, root: Path, database: ServerDatabase) -> None:
        """root: where their directories lie, named by their ids."""
        self._root, self._database = root, database
        self._root.mkdir(parents=True, exist_ok=True)
        self._sweep()

    def _sweep(self) -> None:
        """Delete what a server left behind that died between forgetting a thing and deleting its files."""
        known = {str(row["id"]) for row in self._database.all(f"SELECT id FROM {self.table}")}
        for path in self._root.iterdir():
            if path.name not in known:
                shutil.rmtree(path, ignore_errors=True)

    @abstractmethod
    def _of_row(self, row: Any) -> Thing: ...

    def visible(self, principal: Principal) -> list[Thing]:
        rows = self._database.all(f"SELECT * FROM {self.table} ORDER BY id")
        return [thing for thing in map(self._of_row, rows) if self._sees(principal, thing)]

    def get(self, principal: Principal, id: int, *, to_change: bool = False) -> Thing:
        """One that this client may see, or change. One it may not see counts as missing."""
        possible = 0 < id < 1 << 63  # SQLite knows no larger ones
        row = self._database.one(f"SELECT * FROM {self.table} WHERE id = ?", (id,)) if possible else None
        thing = self._of_row(row) if row is not None else None
        if thing is None or not self._sees(principal, thing):
            raise NotFound(f"no {self.noun} {id}")
        if to_change and not self.may_change(principal, thing):
            raise Forbidden(f"{self.noun} {id} ({thing.name}) {self._changed_by(thing)}")
        return thing

    def exists(self, id: int) -> bool:
        return self._database.one(f"SELECT 1 FROM {self.table} WHERE id = ?", (id,)) is not None

    def may_change(self, principal: Principal, thing: Thing) -> bool:
        return principal.may("admin") or (principal.may("write") and thing.owner == principal.key_id)

    def _sees(self, principal: Principal, thing: Thing) -> bool:
        return principal.may("admin") or thing.owner == principal.key_id

    def _changed_by(self, thing: Thing) -> str:
        return "can be changed by its owner and by admin keys only"

    def _require_name(self, name: str) -> str:
        if not name.strip() or len(name) > MAX_NAME:
            raise KsterError(f"a {self.noun}'s name has 1 to {MAX_NAME} characters")
        return require_whole(name.strip(), "the name")


def require_whole(text: str, name: str = "it") -> str:
    """The text itself. Raises KsterError for half a character, which JSON can express but files cannot."""
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise KsterError(f"{name} has half a character (a lone surrogate); send whole ones")
    return text
