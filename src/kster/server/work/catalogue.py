"""The memories a server knows: who may see them, and where their language pairs lie.

A memory of the server is what people call a translation memory: a name and pairs of texts, perhaps in
several directions. Underneath, each language pair is one `kster.memory.Memory` of that pair's model, made
when the first example arrives. Memories named on the command line have one pair and belong to everybody.
"""

from __future__ import annotations

import logging
import shutil
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kster.errors import KsterError
from kster.memory import Memory, MemorySize
from kster.server.auth.access import Forbidden, NotFound, Principal
from kster.server.database import ServerDatabase, now
from kster.server.work.owned import Owned, OwnedThings, require_whole
from kster.server.work.served_model import ServedModel

log = logging.getLogger("kster.server")

MEMORIES = "memories"
LOCK_TIMEOUT = 120.0  # seconds an example waits while an import is written
MAX_DESCRIPTION = 10_000  # every list of memories repeats them


@dataclass(frozen=True, slots=True)
class ServerMemory(Owned):
    """One line of the catalogue."""

    description: str | None
    external_id: str | None
    directory: Path | None  # of a memory named on the command line

    @property
    def shared(self) -> bool:
        return self.directory is not None


class Catalogue(OwnedThings[ServerMemory]):
    """All of a server's memories, opened once each."""

    table, noun = "memories", "memory"

    def __init__(self, data: Path, database: ServerDatabase, models: Sequence[ServedModel]) -> None:
        super().__init__(data / MEMORIES, database)
        self._models = models
        self._open: dict[tuple[int, str], Memory] = {}  # by memory id and model fingerprint
        self._damaged: dict[tuple[int, str], str] = {}  # those that could not be opened, and why
        self._shared: set[int] = set()  # those named on this start's command line
        self._lock = threading.Lock()

    def _of_row(self, row: Any) -> ServerMemory:
        directory = Path(row["directory"]) if row["directory"] else None
        return ServerMemory(**{**dict(row), "directory": directory, "automatic": bool(row["automatic"])})

    # Who sees what -----------------------------------------------------------------------------------

    def may_change(self, principal: Principal, memory: ServerMemory) -> bool:
        return principal.may("admin") or (not memory.shared and super().may_change(principal, memory))

    def _sees(self, principal: Principal, memory: ServerMemory) -> bool:
        return memory.id in self._shared if memory.shared else super()._sees(principal, memory)

    def _changed_by(self, memory: ServerMemory) -> str:
        return (
            "is shared by all and changed by admin keys only"
            if memory.shared
            else super()._changed_by(memory)
        )

    def automatic(self, principal: Principal, served: ServedModel) -> list[tuple[ServerMemory, Memory]]:
        """The memories that serve this client when it names none; damaged ones are left out."""
        return self._usable((memory, served) for memory in self._automatic(principal))

    def _automatic(self, principal: Principal) -> list[ServerMemory]:
        # An admin sees everybody's memories, but other keys' examples do not belong in its translations.
        own = (m for m in self.visible(principal) if m.shared or m.owner == principal.key_id)
        return [memory for memory in own if memory.automatic]

    def chosen(
        self, principal: Principal, served: ServedModel, ids: Iterable[int] | None
    ) -> list[tuple[ServerMemory, Memory]]:
        """Of the memories named, those with examples for this model; for None, the automatic ones.

        Raises KsterError if a memory that was named is damaged: it is not silently left out.
        """
        if ids is None:
            return self.automatic(principal, served)
        return self.parts([self.get(principal, id) for id in dict.fromkeys(ids)], served)

    def warnings(self, principal: Principal, served: ServedModel, ids: Iterable[int] | None) -> list[str]:
        """For a client that named no memory: which of those that should have served it could not."""
        if ids is not None:
            return []
        return [
            f"memory {memory.id} ({memory.name}) was left out: {self.forget_paths(reason)}"
            for memory in self._automatic(principal)
            if (reason := self._damaged.get((memory.id, served.model.fingerprint)))
        ]

    def damage(self, memory: ServerMemory) -> str | None:
        """Why a memory, or a language pair of it, cannot be used; None where all is well."""
        found = [reason for (id, _), reason in self._damaged.items() if id == memory.id]
        return self.forget_paths(found[0]) if found else None

    def default(self, principal: Principal, served: ServedModel) -> ServerMemory:
        """The memory for an example that came without naming one; made if there is none yet."""
        own = [memory for memory in self._automatic(principal) if self.may_change(principal, memory)]
        if with_pair := self._usable((memory, served) for memory in own):
            return with_pair[0][0]
        for memory in own:
            if not memory.shared:
                return memory
        about = "Examples that came without naming a memory"
        return self.create(principal, "Suggestions", about, automatic=True)

    # Making and unmaking -----------------------------------------------------------------------------

    def share(self, directory: Path) -> ServerMemory:
        """Serve a memory named on the command line, under the id it had before."""
        resolved = directory.resolve()
        served, memory = self._open_shared(resolved)
        shared = self._entered(resolved, memory.description.created)
        self._open[shared.id, served.model.fingerprint] = memory
        self._shared.add(shared.id)
        return shared

    def _entered(self, directory: Path, created: str) -> ServerMemory:
        """The catalogue's line for a memory that was named on the command line; made if it is missing."""
        self._database.change(
            "INSERT OR IGNORE INTO memories (name, created, directory) VALUES (?, ?, ?)",
            (directory.name, created, str(directory)),
        )
        row = self._database.one("SELECT * FROM memories WHERE directory = ?", (str(directory),))
        assert row is not None
        return self._of_row(row)

    def _open_shared(self, directory: Path) -> tuple[ServedModel, Memory]:
        with Memory.open(directory) as opened:
            description = opened.description
        for served in self._models:
            if served.model.fingerprint == description.fingerprint:
                return served, Memory.open(directory, served.model, lock_timeout=LOCK_TIMEOUT)
        raise KsterError(
            f"{directory}: made with the model {description.model}, which is not served; add "
            f"--model {description.model}"
        )

    def create(
        self,
        principal: Principal,
        name: str,
        description: str | None = None,
        external_id: str | None = None,
        automatic: bool = False,
    ) -> ServerMemory:
        """automatic: whether it serves requests of this client that name no memory."""
        name = self._require_name(name)
        _, id = self._database.change(
            "INSERT INTO memories (name, description, external_id, created, owner, automatic) "
            "VALUES (?, ?, ?, ?, ?, ?)",
            (name, _require_description(description), external_id, now(), principal.key_id, automatic),
        )
        return self.get(principal, id)

    def edit(
        self,
        principal: Principal,
        id: int,
        name: str | None = None,
        description: str | None = None,
        automatic: bool | None = None,
    ) -> ServerMemory:
        memory = self.get(principal, id, to_change=True)
        self._database.change(
            "UPDATE memories SET name = ?, description = ?, automatic = ? WHERE id = ?",
            (
                memory.name if name is None else self._require_name(name),
                memory.description if description is None else _require_description(description),
                memory.automatic if automatic is None else automatic,
                id,
            ),
        )
        return self.get(principal, id)

    def delete(self, principal: Principal, id: int) -> ServerMemory:
        memory = self.get(principal, id, to_change=True)
        if memory.shared:
            raise Forbidden(
                f"memory {id} ({memory.name}) was named on the command line and is not deleted here; "
                "start the server without it, then delete its directory"
            )
        self._database.change("DELETE FROM memories WHERE id = ?", (id,))
        with self._lock:
            # Not closed: a translation may be using it; its files live on until that is done.
            for key in [key for key in self._open if key[0] == id]:
                del self._open[key]
            shutil.rmtree(self._root / str(id), ignore_errors=True)
        return memory

    # Language pairs ----------------------------------------------------------------------------------

    def part(self, memory: ServerMemory, served: ServedModel, *, create: bool = False) -> Memory | None:
        """The examples of one language pair; None if there are none yet, unless they are to be created.

        Raises KsterError if they are damaged.
        """
        key = (memory.id, served.model.fingerprint)
        with self._lock:
            if key in self._open:
                return self._open[key]
            if memory.shared:
                if create:
                    raise KsterError(f"memory {memory.id} ({memory.name}) is not for {served.pair}")
                return None
            directory = self._root / str(memory.id) / served.model.fingerprint[:16]
            if directory.is_dir():
                try:
                    opened = Memory.open(directory, served.model, lock_timeout=LOCK_TIMEOUT)
                except Exception as error:
                    self._damaged[key] = str(error)
                    raise
                self._damaged.pop(key, None)
            elif create and self.exists(memory.id):
                opened = Memory.create(directory, served.model, lock_timeout=LOCK_TIMEOUT)
            elif create:
                raise NotFound(f"no memory {memory.id}")
            else:
                return None
            self._open[key] = opened
            return opened

    def parts(
        self, memories: Sequence[ServerMemory], served: ServedModel
    ) -> list[tuple[ServerMemory, Memory]]:
        """Those of these memories with examples for this model. Raises KsterError if one is damaged."""
        found = ((memory, self.part(memory, served)) for memory in memories)
        return [(memory, part) for memory, part in found if part is not None]

    def pairs(self, memory: ServerMemory) -> list[tuple[ServedModel, Memory]]:
        """The language pairs of a memory, without damaged ones."""
        usable = self._usable((memory, served) for served in self._models)
        known = {served.model.fingerprint: served for served in self._models}
        return [(known[part.description.fingerprint], part) for _, part in usable]

    def _usable(
        self, wanted: Iterable[tuple[ServerMemory, ServedModel]]
    ) -> list[tuple[ServerMemory, Memory]]:
        found = []
        for memory, served in wanted:
            try:
                if (part := self.part(memory, served)) is not None:
                    found.append((memory, part))
            except Exception as error:
                more = {"memory": memory.id, "reason": str(error)}
                log.warning("a memory cannot be opened and is left out", extra=more)
        return found

    def sizes(self) -> list[tuple[int, str, MemorySize]]:
        """Id, language pair and size of each memory in use."""
        names = {served.model.fingerprint: served.pair for served in self._models}
        with self._lock:
            in_use = list(self._open.items())
        return [(id, names[model], memory.size()) for (id, model), memory in in_use]

    def in_use(self) -> list[Memory]:
        """The memories that have been opened."""
        with self._lock:
            return list(self._open.values())

    def id_of(self, directory: str) -> int | None:
        """The memory that has a language pair in this directory."""
        with self._lock:
            found = (id for (id, _), memory in self._open.items() if str(memory.directory) == directory)
            return next(found, None)

    def forget_paths(self, message: str) -> str:
        """A message for clients: memories by id instead of by directory."""
        with self._lock:
            named = {str(memory.directory): f"memory {id}" for (id, _), memory in self._open.items()}
        for directory, name in sorted(named.items(), key=lambda item: -len(item[0])):
            message = message.replace(directory, name)
        return message.replace(str(self._root), "memories")

    def close(self) -> None:
        with self._lock:
            for memory in self._open.values():
                memory.close()
            self._open.clear()


def _require_description(description: str | None) -> str | None:
    if description is None:
        return None
    if len(description) > MAX_DESCRIPTION:
        raise KsterError(f"a memory's description has at most {MAX_DESCRIPTION:,} characters")
    return require_whole(description, "the description")
