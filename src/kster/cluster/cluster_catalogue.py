"""The server's catalogue of memories, where these lie on shards."""

from __future__ import annotations

import hashlib
import logging
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import mkdtemp

from kster.cluster.calls import SHARD, Unreachable, ask, ask_about, ask_each, change, shards_offered
from kster.cluster.catalogue_service import Parts, RemoteDatabase
from kster.cluster.cluster_memory import ClusterMemory
from kster.errors import KsterError
from kster.memory import Memory
from kster.memory.memory import ENTRIES_PER_SHARD
from kster.memory.store.description import Description
from kster.server.auth.access import NotFound, Principal
from kster.server.work.catalogue import Catalogue, ServerMemory
from kster.server.work.served_model import ServedModel

log = logging.getLogger("kster.cluster")


class ClusterCatalogue(Catalogue):
    """shared: ids of the memories named on the command line, which serve everybody."""

    def __init__(
        self, data: Path, database: RemoteDatabase, models: Sequence[ServedModel], shared: Sequence[int]
    ) -> None:
        self.places = Parts(database)
        self._kept_in = Path(mkdtemp(prefix="kster-"))
        super().__init__(data, database, models)
        self._shared = set(shared)

    def _sweep(self) -> None:
        """Directories are the shards'; they are swept when the cluster is started."""

    def part(self, memory: ServerMemory, served: ServedModel, *, create: bool = False) -> Memory | None:
        key = (memory.id, served.model.fingerprint)
        with self._lock:
            if key in self._open:
                return self._open[key]
        if not (parts := self.places.of(*key)):
            if memory.shared:
                if create:
                    raise KsterError(f"memory {memory.id} ({memory.name}) is not for {served.pair}")
                return None
            place = self._made_before(memory, served) or (self._make(memory, served) if create else None)
            if place is None:
                return None
            self.places.add_first(*key, *place)
            parts = self.places.of(*key)
        description = ask_about(parts[0], "describe")
        description.require(served.model, Path(parts[0].directory))
        with self._lock:
            opened = ClusterMemory(memory.id, description, served.model, self.places, self._kept_in)
            return self._open.setdefault(key, opened)

    def _make(self, memory: ServerMemory, served: ServedModel) -> tuple[str, str]:
        """An empty directory on the shard that this memory belongs to."""
        if not self.exists(memory.id):
            raise NotFound(f"no memory {memory.id}")
        directory = f"{memory.id}-{served.model.fingerprint[:16]}"
        shard = home_of(directory, shards_offered())
        description = Description.of(served.model, self._root / directory, ENTRIES_PER_SHARD)
        change(SHARD + shard, "create", directory, description)
        return shard, directory

    def _made_before(self, memory: ServerMemory, served: ServedModel) -> tuple[str, str] | None:
        """Where a server without a cluster has kept this memory, if a shard sees that directory."""
        directory = (self._root / str(memory.id) / served.model.fingerprint[:16]).absolute()
        return shard_that_has(str(directory))

    def delete(self, principal: Principal, id: int) -> ServerMemory:
        memory = super().delete(principal, id)
        for part in self.places.remove(id):
            with suppress(Unreachable):  # swept when the cluster is started again
                change(SHARD + part.shard, "delete", [part.directory])
        return memory

    def adopt(self, directory: Path) -> int:
        """Serve a memory that lies elsewhere, by a shard on a machine that has it; returns its id."""
        resolved = str(directory.resolve())
        place = shard_that_has(resolved)
        if place is None:
            raise KsterError(f"{directory}: no shard of the cluster is on a machine that has this memory")
        description: Description = ask(SHARD + place[0], "describe", resolved)
        id = self._entered(Path(resolved), description.created).id
        self.places.add_first(id, description.fingerprint, *place)
        return id

    def close(self) -> None:
        super().close()
        shutil.rmtree(self._kept_in, ignore_errors=True)


def home_of(name: str, shards: Sequence[str]) -> str:
    """The shard for a directory (rendezvous hashing: another shard takes over only its share)."""
    if not shards:
        raise KsterError("the cluster has no shards; start it with `kster cluster up --shards N`")
    return max(shards, key=lambda shard: hashlib.blake2b(f"{shard}/{name}".encode()).digest())


def shard_that_has(directory: str) -> tuple[str, str] | None:
    """A shard on a machine that has a memory in this (absolute) directory, and the directory."""
    lost: list[str] = []
    answers = ask_each({SHARD + shard: ("has", directory) for shard in shards_offered()}, lost=lost)
    having = [name.removeprefix(SHARD) for name, has in answers.items() if has]
    return (home_of(directory, having), directory) if having else None


def sweep_shards(parts: Parts) -> None:
    """Delete what deleted memories and dead imports have left on the shards."""
    for shard in shards_offered():
        with suppress(Unreachable):
            if gone := change(SHARD + shard, "sweep", parts.directories_of(shard)):
                log.info("shard %s: deleted what nobody knows any more: %s", shard, ", ".join(gone))
