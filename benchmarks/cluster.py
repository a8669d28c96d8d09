"""What does Ray cost, and how does a cluster grow?

    python benchmarks/cluster.py [--model models/en-de] [--segments 1500] [--sentences 16] [--share 0.2]
                                 [--parts tax,shards,replicas,wire] [--shards 1,2] [--replicas 1,2]
                                 [--own-nodes]

A cluster on this machine, started and stopped here. Everything is a ratio:

- the tax: translating with a memory on one shard, over translating with the same memory in a directory, in
  time, and in processor time of this process and the shard's, which other work on the machine disturbs less;
  with the entries and codes of earlier sentences, and as if each were the first;
- shards: shortlists a second over S shards with S times the entries, over those of one shard; asked for by
  several threads, so that no shard waits, and one by one; with entries that were sent before, and without;
- replicas: sentences a second of `kster serve --ray` with R replicas, over R times those of one;
- the wire: bytes and time of a batch's keys as float16, and as int8 with a scale for each key.

With --share, each shard and each replica may use that share of a core and no more (`cpu_quotas.py`): a
machine with few cores then stands for one with many slow ones, if all the shares and this process fit into
its cores. With --own-nodes each shard has a Ray node, as on machines of their own, and shares its share with
that.

The memory is made of the shipped example with numbers put in; for more entries its segments are repeated with
other numbers and keys that differ a little.
"""

from __future__ import annotations

import argparse
import os
import socket
import statistics
import subprocess
import tempfile
import time
from collections import ChainMap
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from secrets import token_hex
from typing import Any, TypeVar

os.environ.setdefault("OMP_NUM_THREADS", "1")  # replicas share the cores

from kster.cluster.environment import LOOPBACK, prepare

prepare(LOOPBACK)  # before Ray is imported

import httpx
import numpy as np
import ray
import torch
from ray import serve
from ray._private.ray_constants import PROCESS_TYPE_RAYLET
from ray.cluster_utils import Cluster

from cpu_quotas import CpuQuotas, busy_seconds, cpu_quotas
from kster.cluster import kept_entries
from kster.cluster.calls import CATALOGUE_RESOURCE, NAMESPACE, SHARD, SHARD_RESOURCE, change
from kster.cluster.catalogue_service import Parts, RemoteDatabase
from kster.cluster.cluster_memory import ClusterMemory
from kster.cluster.connection import SYSTEM_SETTINGS, connect, leave, start_actors
from kster.cluster.retrieval import Placed, retriever
from kster.cluster.serving import Replicas, deploy
from kster.cluster.wire import Limits, Sentence
from kster.memory import Memory, SearchableMemory
from kster.memory.adding import Origin, drafts_of
from kster.memory.store.change import Draft
from kster.memory.store.description import Description
from kster.model import BaseModel
from kster.server.settings import ModelSetting, ServerSettings
from kster.translation import Translator
from large_memory import NOISE, pairs, sentences
from machine import describe

K = TypeVar("K")

TURNS = 5
CPU = torch.device("cpu")
LIMITS = Limits(256, 4_096)
REPEATED = 4  # times a sentence in a turn
ASKING = 32  # threads that ask for shortlists
CLIENTS = 4  # of each replica


@contextmanager
def cluster(data: Path, shards: int, own_nodes: bool) -> Iterator[list[int]]:
    """Yields the raylets of the shards that have a node of their own."""
    node = {"object_store_memory": 1 << 29, "node_ip_address": LOOPBACK}
    disks = [{f"{SHARD_RESOURCE}{i}": 1} for i in range(shards)]
    running = Cluster(
        initialize_head=True,
        head_node_args={
            **node,
            "num_cpus": os.cpu_count(),
            "include_dashboard": False,
            "resources": {CATALOGUE_RESOURCE: 1, **({} if own_nodes else ChainMap(*disks))},
            "_system_config": SYSTEM_SETTINGS,
        },
    )
    try:
        nodes = [running.add_node(**node, num_cpus=1, resources=disk) for disk in disks if own_nodes]
        connect(running.address)
        start_actors(data)
        yield [own.all_processes[PROCESS_TYPE_RAYLET][0].process.pid for own in nodes]
    finally:
        leave()
        running.shutdown()


def on_shards(
    number: int, shards: int, description: Description, drafts: Sequence[Draft], data: Path, model: Any
) -> ClusterMemory:
    """A memory over so many shards, with as many times the entries."""
    parts = Parts(RemoteDatabase())
    places = []
    for i in range(shards):
        directory = f"{number}-{i}"
        change(f"{SHARD}{i}", "create", directory, description)
        own = drafts if i == 0 else varied(drafts, 1_000 * number + i)
        for first in range(0, len(own), 500):
            change(f"{SHARD}{i}", "add_drafts", token_hex(8), directory, own[first : first + 500])
        places.append((str(i), directory))
    parts.add(number, description.fingerprint, places)
    return ClusterMemory(number, description, model, parts, data / "kept")


def varied(drafts: Sequence[Draft], copy: int) -> list[Draft]:
    """Other segments like these: another number in the texts, and keys that differ a little."""
    random = np.random.default_rng(copy)
    made = []
    for draft in drafts:
        keys = draft.keys.astype(np.float32)
        noise = random.standard_normal(keys.shape, dtype=np.float32)
        noise *= NOISE * np.linalg.norm(keys, axis=1, keepdims=True) / np.sqrt(keys.shape[1])
        new = replace(draft.new, source=f"{draft.new.source} {copy}", target=f"{draft.new.target} {copy}")
        made.append(Draft(new, (keys + noise).astype(np.float16), draft.values))
    return made


def in_turns(ways: dict[K, Callable[[], object]], turns: int = TURNS) -> dict[K, float]:
    """Seconds of each way: the median of some turns, after one that does not count."""
    return _in_turns(ways, turns, time.perf_counter)


def processor_in_turns(ways: dict[str, Callable[[], object]], shard: int) -> dict[str, float]:
    """Seconds that each way keeps a core busy in this process and in that of a shard: as above."""
    return _in_turns(ways, TURNS, lambda: busy_seconds(os.getpid()) + busy_seconds(shard))


def _in_turns(ways: dict[K, Callable[[], object]], turns: int, clock: Callable[[], float]) -> dict[K, float]:
    seconds: dict[K, list[float]] = {name: [] for name in ways}
    for turn in range(turns + 1):
        for name, way in ways.items():
            began = clock()
            way()
            if turn:
                seconds[name].append(clock() - began)
    return {name: statistics.median(own) for name, own in seconds.items()}


def actor_process(name: str, namespace: str = NAMESPACE) -> int:
    return int(ray.get(ray.get_actor(name, namespace=namespace).process.remote())[0])


@dataclass
class Watch:
    """How long something took, and how much of the processor some processes had meanwhile."""

    processes: Sequence[int]
    quotas: CpuQuotas | None
    seconds: float = 0.0
    busy: float = 0.0

    def __enter__(self) -> Watch:
        self._began = self._now()
        return self

    def __exit__(self, *_: object) -> None:
        both = zip(self._now(), self._began, strict=True)
        self.seconds, self.busy, self._periods, self._full = (now - then for now, then in both)

    def _now(self) -> tuple[float, float, int, int]:
        periods = [self.quotas.periods(process) for process in self.processes] if self.quotas else []
        wanted, full = (sum(column) for column in zip(*periods, strict=True)) if periods else (0, 0)
        return time.perf_counter(), sum(map(busy_seconds, self.processes)), wanted, full

    def __str__(self) -> str:
        had = f"each had {self.busy / self.seconds / len(self.processes):.3f} of a core"
        if not self.quotas:
            return had
        return f"{had}, its whole share in {self._full / max(1, self._periods):.0%} of the periods"


@ray.remote(num_cpus=0)
class Wire:
    """Hands out the keys of segments in two ways."""

    def __init__(self, directory: str) -> None:
        self._memory = Memory.open(Path(directory))

    def keys(self, count: int, eight_bits: bool) -> Any:
        keys = self._memory.view().snapshot.entries.gather(np.arange(count))
        if not eight_bits:
            return keys
        scale = np.abs(keys).max(axis=1, keepdims=True).astype(np.float32) / 127
        return np.round(keys / scale).astype(np.int8), scale.astype(np.float16)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default="models/en-de")
    parser.add_argument("--segments", type=int, default=1_500)
    parser.add_argument("--sentences", type=int, default=16)
    parser.add_argument("--share", type=float, help="of a core, for each shard and each replica")
    parser.add_argument("--parts", default="tax,shards,replicas,wire")
    parser.add_argument("--shards", default="1,2")
    parser.add_argument("--replicas", default="1,2")
    parser.add_argument("--own-nodes", action="store_true", help="a Ray node for each shard")
    wanted = parser.parse_args()
    shards, replicas = ([int(n) for n in text.split(",")] for text in (wanted.shards, wanted.replicas))
    parts = wanted.parts.split(",")
    print(describe(**vars(wanted)), flush=True)
    model = BaseModel.load(wanted.model, device="cpu")
    made = [d for d in drafts_of(model, pairs(wanted.segments), Origin()) if isinstance(d, Draft)]
    texts = sentences(wanted.sentences)
    with ExitStack() as stack:
        data = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kster-")))
        local = stack.enter_context(Memory.create(data / "memory", model))
        with local._store.writing() as change:  # as an import does, without a model
            for draft in made:
                change.add(draft)
        print(f"{local.entry_count:,} entries a shard", flush=True)
        quotas = stack.enter_context(cpu_quotas(wanted.share)) if wanted.share else None
        most = max(shards) if "shards" in parts else 1
        raylets = stack.enter_context(cluster(data, most, wanted.own_nodes))
        if quotas:
            quotas.limit([actor_process(f"{SHARD}{i}") for i in range(most)], raylets)
        description = Description.of(model, data, 1 << 20)
        memories = {n: on_shards(n, n, description, made, data, model) for n in shards if n <= most}
        if "tax" in parts:
            tax(Translator(model), local, memories[1], texts)
        if "shards" in parts:
            growth_by_shards(memories, texts, quotas)
        if "replicas" in parts:
            growth_by_replicas(wanted.model, data, replicas, texts, quotas)
        if "wire" in parts:
            wire(data / "memory", min(local.entry_count, LIMITS.entries), description.dimension)


def tax(translator: Translator, local: Memory, one: ClusterMemory, texts: list[str]) -> None:
    shard = actor_process(f"{SHARD}0")

    def anew(text: str, memory: SearchableMemory) -> None:
        """Without the codes and entries that were kept from earlier sentences."""
        local._reader.codes._table = None
        forget_entries()
        translator.translate([text], memory=memory)

    ways: dict[str, dict[str, Callable[[], object]]] = {
        "one by one, nothing kept": {
            "directory": lambda: [anew(text, local) for text in texts],
            "shard": lambda: [anew(text, one) for text in texts],
        },
        "one by one": {
            "directory": lambda: [translator.translate([text], memory=local) for text in texts],
            "shard": lambda: [translator.translate([text], memory=one) for text in texts],
        },
        "in a batch": {
            "directory": lambda: translator.translate(texts, memory=local),
            "shard": lambda: translator.translate(texts, memory=one),
        },
    }
    for what, both in ways.items():
        for clock, seconds in (("time", in_turns(both)), ("processor", processor_in_turns(both, shard))):
            ms = {way: 1000 * s / len(texts) for way, s in seconds.items()}
            ratio = seconds["shard"] / seconds["directory"]
            print(
                f"tax {what}, {clock}: {ms['directory']:.1f} ms a sentence, {ms['shard']:.1f} on a shard: "
                f"{ratio:.3f}",
                flush=True,
            )


def forget_entries() -> None:
    kept_entries._kept = {d: kept.emptied() for d, kept in kept_entries._kept.items()}


def growth_by_shards(memories: dict[int, ClusterMemory], texts: list[str], quotas: CpuQuotas | None) -> None:
    """Of sentences whose terms and entries have been met before; that each have a new term; and whose entries
    all have to be sent."""
    new = count()

    def found(memory: ClusterMemory, text: str) -> None:
        if kind == "nothing kept":
            forget_entries()
        retriever([Placed(memory.parts)], [Sentence(text)], LIMITS, memory.dimension, CPU)

    for kind, asked in {
        "terms met before": lambda: texts,
        "a new term in each": lambda: [f"{text} new{next(new)}" for text in texts],
        "nothing kept": lambda: texts,
    }.items():
        ways = {n: lambda m=m, asked=asked: [found(m, text) for text in asked()] for n, m in memories.items()}
        alone = in_turns(ways)
        speeds: dict[int, list[float]] = {n: [] for n in memories}
        watches: dict[int, Watch] = {}
        with ThreadPoolExecutor(ASKING) as threads:
            for turn in range(TURNS + 1):
                for n, memory in memories.items():
                    wanted = [text for _ in range(REPEATED) for text in asked()]
                    watches[n] = Watch([actor_process(f"{SHARD}{i}") for i in range(n)], quotas)
                    with watches[n]:
                        list(threads.map(lambda text, memory=memory: found(memory, text), wanted))
                    if turn:
                        speeds[n].append(len(wanted) / watches[n].seconds)
        one = statistics.median(speeds[1])
        for n, memory in memories.items():
            speed, ms = statistics.median(speeds[n]), 1000 * alone[n] / len(texts)
            print(
                f"{n} shards, {memory.entry_count:,} entries, {kind}: {speed:.1f} shortlists a second, "
                f"{speed / one:.2f} of one's; {watches[n]}; one by one {ms:.1f} ms, "
                f"{alone[1] / alone[n]:.2f} of one's speed",
                flush=True,
            )


def growth_by_replicas(
    model: str, data: Path, counts: Sequence[int], texts: list[str], quotas: CpuQuotas | None
) -> None:
    """Each replica is sent as many sentences, all different, by as many clients."""
    port = free_port()
    settings = ServerSettings(
        port=port,
        data=data,
        models=[ModelSetting(path=str(Path(model).absolute()))],
        memories=[data / "memory"],
    )
    speeds: dict[int, float] = {}
    for n in counts:
        deploy(settings, Replicas(n))
        replicas = replica_processes()
        if quotas:
            quotas.limit(replicas)
        translated(port, texts[:4], 4 * n)  # each has loaded everything by then
        watch = Watch(replicas, quotas)
        with watch:
            translated(port, texts, n)
        speeds[n] = n * len(texts) / watch.seconds
        print(
            f"{n} replicas: {speeds[n]:.2f} sentences a second, {speeds[n] / (n * speeds[counts[0]]):.2f} of "
            f"{n} × one's; {1000 * watch.busy / n / len(texts):.0f} ms of a core a sentence; {watch}",
            flush=True,
        )
    serve.shutdown()


def translated(port: int, texts: list[str], times: int) -> None:
    """Sentences like these, so many times as often, but never the same one; CLIENTS for each time."""
    made = [f"{text} {i}{j}" for i in range(times) for j, text in enumerate(texts)]
    with httpx.Client(base_url=f"http://{LOOPBACK}:{port}", timeout=300) as http:

        def translate(text: str) -> None:
            answer = http.post("/v1/translate", json={"text": text, "source": "en", "target": "de"})
            answer.raise_for_status()

        with ThreadPoolExecutor(CLIENTS * times) as clients:
            list(clients.map(translate, made))


def replica_processes() -> list[int]:
    """Of the replicas that are served by, among the processes that this one has started."""
    lines = [
        line.split(maxsplit=2)
        for line in subprocess.run(
            ["ps", "-eo", "pid=,ppid=,args="], capture_output=True, text=True, check=True
        ).stdout.splitlines()
    ]
    own = {os.getpid()}
    while more := {int(line[0]) for line in lines if int(line[1]) in own} - own:
        own |= more
    return [int(line[0]) for line in lines if int(line[0]) in own and "ray::ServeReplica" in line[2]]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


def wire(directory: Path, keys: int, dimension: int) -> None:
    server = Wire.remote(str(directory))
    times = in_turns(
        {
            "float16": lambda: ray.get(server.keys.remote(keys, False)),
            "int8": lambda: ray.get(server.keys.remote(keys, True)),
        },
        20,
    )
    for way, size in (("float16", 2), ("int8", 1)):
        sent = keys * dimension * size / 1e6
        print(f"wire {way}: {sent:.2f} MB for {keys:,} keys, {1000 * times[way]:.1f} ms")


if __name__ == "__main__":
    main()
