"""What does Ray cost, and how does a cluster grow?

    python benchmarks/cluster.py [--model models/en-de] [--segments 1500] [--sentences 16]
                                 [--shards 1,2] [--replicas 1,2]

A cluster on this machine, started and stopped here. Everything is a ratio of two ways measured in turns:

- the tax: translating with a memory on one shard, over translating with the same memory in a directory, in
  time, and in processor time of this process and the shard's, which other work on the machine disturbs less;
- shards: finding and fetching the shortlists of a sentence over S shards with S times the entries, over one;
- replicas: sentences a second of R processes that translate at the same time, over R times that of one;
- the wire: bytes and time of a batch's keys as float16, and as int8 with a scale for each key.

The memory is made of the shipped example with numbers put in; for more entries its segments are repeated with
other numbers and keys that differ a little.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # replicas share the cores

from kster.cluster.environment import LOOPBACK, prepare

prepare(LOOPBACK)  # before Ray is imported

import numpy as np
import ray
from ray.cluster_utils import Cluster

from kster.cluster.calls import CATALOGUE_RESOURCE, NAMESPACE, SHARD, SHARD_RESOURCE, change
from kster.cluster.catalogue_service import Parts, RemoteDatabase
from kster.cluster.cluster_memory import ClusterMemory
from kster.cluster.connection import SYSTEM_SETTINGS, connect, leave, start_actors
from kster.cluster.retrieval import Placed, shortlists
from kster.cluster.wire import Limits, Sentence
from kster.memory import Memory
from kster.memory.adding import Origin, drafts_of
from kster.memory.store.change import Draft
from kster.memory.store.description import Description
from kster.model import BaseModel
from kster.translation import Translator
from large_memory import pairs, sentences, varied
from machine import describe

TURNS = 5
LIMITS = Limits(256, 4_096)


@contextmanager
def cluster(data: Path, shards: int) -> Iterator[None]:
    resources = {CATALOGUE_RESOURCE: 1} | {f"{SHARD_RESOURCE}{i}": 1 for i in range(shards)}
    running = Cluster(
        initialize_head=True,
        head_node_args={
            "num_cpus": os.cpu_count(),
            "object_store_memory": 1 << 30,
            "node_ip_address": LOOPBACK,
            "include_dashboard": False,
            "resources": resources,
            "_system_config": SYSTEM_SETTINGS,
        },
    )
    try:
        connect(running.address)
        start_actors(data)
        yield
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


def in_turns(ways: dict[str, Callable[[], object]], turns: int = TURNS) -> dict[str, float]:
    """Seconds of each way: the median of some turns, after one that does not count."""
    return _in_turns(ways, turns, time.perf_counter)


def processor_in_turns(ways: dict[str, Callable[[], object]], shard: int) -> dict[str, float]:
    """Seconds that each way keeps a core busy in this process and in that of a shard: as above."""
    return _in_turns(ways, TURNS, lambda: busy_seconds(os.getpid()) + busy_seconds(shard))


def _in_turns(
    ways: dict[str, Callable[[], object]], turns: int, clock: Callable[[], float]
) -> dict[str, float]:
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(turns + 1):
        for name, way in ways.items():
            began = clock()
            way()
            if turn:
                seconds[name].append(clock() - began)
    return {name: statistics.median(own) for name, own in seconds.items()}


def busy_seconds(process: int) -> float:
    """What a process's threads have had of the processor (Linux)."""
    threads = Path(f"/proc/{process}/task").glob("*/schedstat")
    return sum(int(thread.read_text().split()[0]) for thread in threads) / 1e9


@ray.remote(num_cpus=0)
class Replica:
    """A process that translates with a memory of the cluster."""

    def __init__(self, model: str, number: int, description: Description, kept: str) -> None:
        self._model = BaseModel.load(model, device="cpu")
        own = ClusterMemory(number, description, self._model, Parts(RemoteDatabase()), Path(kept))
        self._translator, self._memory = Translator(self._model), own

    def translate(self, texts: list[str]) -> float:
        began = time.perf_counter()
        self._translator.translate(texts, memory=self._memory)
        return time.perf_counter() - began


def throughput(replicas: Sequence[Any], texts: list[str]) -> float:
    """Sentences a second when all of them translate these texts at the same time."""
    began = time.perf_counter()
    ray.get([replica.translate.remote(texts) for replica in replicas])
    return len(replicas) * len(texts) / (time.perf_counter() - began)


@ray.remote(num_cpus=0)
class Wire:
    """Hands out the keys of segments in two ways."""

    def __init__(self, root: str, directory: str) -> None:
        self._memory = Memory.open(Path(root) / directory)

    def keys(self, count: int, eight_bits: bool) -> Any:
        keys = self._memory.view().snapshot.entries.gather(np.arange(count))
        if not eight_bits:
            return keys
        scale = np.abs(keys).max(axis=1, keepdims=True).astype(np.float32) / 127
        return np.round(keys / scale).astype(np.int8), scale.astype(np.float16)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="models/en-de")
    parser.add_argument("--segments", type=int, default=1_500)
    parser.add_argument("--sentences", type=int, default=16)
    parser.add_argument("--shards", default="1,2")
    parser.add_argument("--replicas", default="1,2")
    wanted = parser.parse_args()
    shards, replicas = ([int(n) for n in text.split(",")] for text in (wanted.shards, wanted.replicas))
    print(describe(**vars(wanted)), flush=True)
    model = BaseModel.load(wanted.model, device="cpu")
    texts = sentences(wanted.sentences)
    with tempfile.TemporaryDirectory(prefix="kster-") as folder:
        data = Path(folder)
        made = [d for d in drafts_of(model, pairs(wanted.segments), Origin()) if isinstance(d, Draft)]
        description = Description.of(model, data, 1 << 20)
        with cluster(data, max(shards)):
            memories = {n: on_shards(n, n, description, made, data, model) for n in shards}
            report(model, texts, memories, data, replicas, description, wanted.model)


def report(
    model: BaseModel,
    texts: list[str],
    memories: dict[int, ClusterMemory],
    data: Path,
    replicas: Sequence[int],
    description: Description,
    name: str,
) -> None:
    one, translator = memories[1], Translator(model)
    local = Memory.open(data / "shards" / "0" / "1-0", model)
    entries = local.entry_count
    print(f"{entries:,} entries a shard")
    shard, _ = ray.get(ray.get_actor(f"{SHARD}0", namespace=NAMESPACE).process.remote())
    ways: dict[str, dict[str, Callable[[], object]]] = {
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
            tax = seconds["shard"] / seconds["directory"]
            print(
                f"tax {what}, {clock}: {ms['directory']:.1f} ms a sentence, {ms['shard']:.1f} on a shard: "
                f"{tax:.3f}",
                flush=True,
            )
    asked = [Sentence(text) for text in texts]
    found = in_turns(
        {
            str(n): lambda memory=memory: [
                shortlists([Placed(memory.parts)], [text], LIMITS, memory.dimension) for text in asked
            ]
            for n, memory in memories.items()
        }
    )
    for n in memories:
        ms = 1000 * found[str(n)] / len(texts)
        share = found["1"] / found[str(n)]
        print(f"{n} shards, {n * entries:,} entries: {ms:.1f} ms a shortlist, {share:.2f} of one's speed")
    servers = [Replica.remote(name, 1, description, str(data / f"r{i}")) for i in range(max(replicas))]
    ray.get([server.translate.remote(texts[:2]) for server in servers])
    speeds: dict[int, list[float]] = {n: [] for n in replicas}
    for _ in range(TURNS):
        for n in replicas:
            speeds[n].append(throughput(servers[:n], texts))
    for n in replicas:
        speed, single = statistics.median(speeds[n]), statistics.median(speeds[1])
        print(f"{n} replicas: {speed:.2f} sentences a second, {speed / (n * single):.2f} of {n} × one's")
    wire = Wire.remote(str(data / "shards" / "0"), "1-0")
    count = min(entries, 4_096)
    times = in_turns(
        {
            "float16": lambda: ray.get(wire.keys.remote(count, False)),
            "int8": lambda: ray.get(wire.keys.remote(count, True)),
        },
        20,
    )
    for way, size in (("float16", 2), ("int8", 1)):
        sent = count * description.dimension * size / 1e6
        print(f"wire {way}: {sent:.2f} MB for {count:,} keys, {1000 * times[way]:.1f} ms")
    local.close()


if __name__ == "__main__":
    main()
