"""`kill -9` of shards, of the catalogue and of a raylet: nothing that was acknowledged is lost."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

pytest.importorskip("ray")

import ray
from clusters import SMALL, catalogue_process, memory_on, running, shard_process
from ray.cluster_utils import Cluster
from speller import Speller

from kster.cluster.actors import ShardActor
from kster.cluster.calls import NAMESPACE, SHARD_RESOURCE, Unreachable
from kster.cluster.cluster_memory import ClusterMemory
from kster.cluster.connection import SHARDS as SHARDS_FOLDER
from kster.errors import KsterError
from kster.formats import Pair
from kster.memory import Memory

SHARDS = ("a", "b")
KILLS = 50

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kills")


@pytest.fixture(scope="module")
def cluster(data: Path) -> Iterator[Cluster]:
    with running(data, SHARDS, raylets=True) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def memory(cluster: Cluster, data: Path) -> ClusterMemory:
    memory = memory_on(SHARDS, Speller(), 1, data / "kept")
    memory.split_from = 20
    memory.import_pairs([Pair(f"beginning {i}", f"t {i}") for i in range(40)])  # lies on both shards now
    return memory


def insist(action, seconds: float = 90):
    """What an action says as soon as everybody it asks is back."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            return action()
        except (Unreachable, ray.exceptions.RayActorError):
            if time.monotonic() > deadline:
                raise
            time.sleep(0.3)


def export_for_a_minute(memory: ClusterMemory) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        list(memory.export())
        time.sleep(0.2)


def require(memory: ClusterMemory, acknowledged: set[str], refused: set[str]) -> None:
    """All that was acknowledged, each once; of what was not, any."""
    sources = [pair.source for pair in insist(lambda: list(memory.export()))]
    assert len(sources) == len(set(sources))
    assert acknowledged <= set(sources) <= acknowledged | refused


def test_fifty_kills_lose_nothing_that_was_acknowledged(memory: ClusterMemory) -> None:
    chance = random.Random(7)
    acknowledged = {f"beginning {i}" for i in range(40)}
    unknown = set[str]()
    home = memory.parts[-1].shard
    victims = {"home": lambda: shard_process(home), "catalogue": catalogue_process}
    victims |= {name: lambda name=name: shard_process(name) for name in SHARDS}
    for kill in range(KILLS):
        process = insist(victims[chance.choice(list(victims))])
        with ThreadPoolExecutor(2) as threads:
            texts = [f"kill {kill} text {i}" for i in range(4)]
            adding = [threads.submit(memory.add, text, "t") for text in texts]
            if kill % 5 == 4:  # an import of both shards, on its way
                pairs = [Pair(f"kill {kill} pair {i}", "t") for i in range(40)]
                adding.append(threads.submit(memory.import_pairs, pairs))
                texts.append("import")
            time.sleep(chance.random() * 0.1)
            os.kill(process, signal.SIGKILL)
            for text, done in zip(texts, adding, strict=True):
                whole = {pair.source for pair in pairs} if text == "import" else {text}
                try:
                    done.result(timeout=180)
                    acknowledged |= whole
                except KsterError:
                    unknown |= whole
        if kill % 10 == 9:
            require(memory, acknowledged, unknown)
    require(memory, acknowledged, unknown)
    assert len(acknowledged) > 40 + 2 * KILLS  # most of it was done, since changes wait for who comes back
    for part in memory.parts:
        gone = insist(lambda: memory.segments(limit=3))
        insist(lambda gone=gone: memory.remove([segment.id for segment in gone]))
        acknowledged -= {segment.source for segment in gone}
        os.kill(shard_process(part.shard), signal.SIGKILL)  # just after a removal
        require(memory, acknowledged, unknown)


def test_an_import_that_was_killed_leaves_all_or_nothing(memory: ClusterMemory) -> None:
    before = insist(memory.segment_count)
    for attempt in range(6):
        pairs = [Pair(f"attempt {attempt} pair {i}", f"t {i}") for i in range(60)]
        with ThreadPoolExecutor(1) as thread:
            importing = thread.submit(memory.import_pairs, pairs)
            time.sleep(0.15 * attempt)
            os.kill(insist(lambda attempt=attempt: shard_process(SHARDS[attempt % 2])), signal.SIGKILL)
            try:
                added = importing.result(timeout=180).added
            except KsterError:
                added = 0
        now = insist(memory.segment_count)
        assert now - before in ({60} if added else {0, 60})
        before = now


def test_a_raylet_that_dies_takes_its_shard_along_until_another_offers_the_disk(
    memory: ClusterMemory, cluster: Cluster
) -> None:
    known = {pair.source for pair in insist(lambda: list(memory.export()))}
    node = next(n for n in cluster.worker_nodes if _has(n, "b"))
    cluster.remove_node(node, allow_graceful=False)
    with pytest.raises(Unreachable, match="shard b does not answer"):
        export_for_a_minute(memory)  # its process ends a moment after its raylet
    partial = memory.allowing_loss()
    assert partial.entry_count > 0
    assert partial.lost == ["shard-b"]
    cluster.add_node(**SMALL, num_cpus=1, resources={SHARD_RESOURCE + "b": 1})
    assert {pair.source for pair in insist(lambda: list(memory.export()), 180)} == known


def _has(node: object, shard: str) -> bool:
    own = next(n for n in ray.nodes() if n["NodeID"] == node.node_id)  # type: ignore[attr-defined]
    return SHARD_RESOURCE + shard in own["Resources"]


def test_a_second_owner_of_a_shard_is_refused(cluster: Cluster, memory: ClusterMemory, data: Path) -> None:
    insist(lambda: shard_process("a"))
    second = ShardActor.options(name="second", namespace=NAMESPACE, num_cpus=0).remote(
        "a", str(data / SHARDS_FOLDER / "a"), 0.0
    )
    with pytest.raises(ray.exceptions.RayActorError, match="another process owns"):
        ray.get(second.process.remote(), timeout=60)
    assert insist(memory.segment_count) > 0


def test_when_the_cluster_is_down_the_directories_are_ordinary_memories(
    cluster: Cluster, memory: ClusterMemory, data: Path
) -> None:
    parts = memory.parts
    count = insist(memory.segment_count)
    found = 0
    for part in parts:
        with Memory.open(data / SHARDS_FOLDER / part.shard / part.directory, Speller()) as directory:
            assert directory.verify() == []
            found += directory.segment_count()
    assert found == count
