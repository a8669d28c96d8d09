"""`kster cluster up` and `kster serve --ray` as people use them: two replicas, two shards, real clients."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

pytest.importorskip("ray")

sys.path.insert(0, str(Path(__file__).parents[1] / "server"))
from running import RunningServer, free_port, start

from kster.memory import Memory
from tiny import ENGLISH, GERMAN

pytestmark = pytest.mark.slow

TIMES = 200


def kster(*arguments: str) -> str:
    command = [sys.executable, "-m", "kster", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def served(taught_marian: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("served")
    data = folder / "data"
    os.environ["RAY_AUTH_TOKEN_PATH"] = str(folder / "token")
    kster("cluster", "up", "--data", str(data), "--port", str(free_port()), "--cores", "2")
    try:
        server = start(data, "--ray", "--replicas", "2", "--max-replicas", "3", "--model", str(taught_marian))
        yield server
        assert server.stop() == 0
    finally:
        kster("cluster", "down", "--data", str(data))
        del os.environ["RAY_AUTH_TOKEN_PATH"]


@pytest.fixture(scope="module")
def memory(served: RunningServer) -> int:
    return served.http.post("/v1/memories", json={"name": "ours", "automatic": True}).json()["id"]


def translated(served: RunningServer, text: str, memory: int, **more: object) -> httpx.Response:
    wanted = {"text": text, "source": "en", "target": "de", "memories": [memory], **more}
    return served.http.post("/v1/translate", json=wanted)


def text_of(answer: httpx.Response) -> str:
    assert answer.status_code == 200, answer.text
    return answer.json()["translations"][0]["text"]


def processes(served: RunningServer, kind: str) -> list[int]:
    """The actors of a kind among the processes that this cluster's Ray has started, and no other's."""
    command = ["ps", "-eo", "pid=,ppid=,args="]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    lines = [line.split(maxsplit=2) for line in listed]
    own = {json.loads((served.data / "cluster.json").read_text())["process"]}
    while more := {int(line[0]) for line in lines if int(line[1]) in own} - own:
        own |= more
    return [int(line[0]) for line in lines if int(line[0]) in own and f"ray::{kind}" in line[2]]


def test_what_one_replica_was_taught_all_use_and_what_was_removed_none(
    served: RunningServer, memory: int
) -> None:
    with ThreadPoolExecutor(4) as threads:
        for i in range(TIMES):
            text, target = f"{ENGLISH[i % 12]} number {i}", f"{GERMAN[i % 12]} Nummer {i}"
            taught = served.http.post(
                f"/v1/memories/{memory}/segments", json={"source": text, "target": target}
            )
            assert taught.status_code == 201
            answers = list(
                threads.map(lambda _, text=text: translated(served, text, memory, explain="tokens"), range(4))
            )
            for answer in answers:  # by both replicas
                assert _origins(answer) >= {text}
            if i % 10 == 0:
                segment = taught.json()["id"]
                assert served.http.delete(f"/v1/memories/{memory}/segments/{segment}").status_code in (
                    200,
                    204,
                )
                answers = threads.map(
                    lambda _, text=text: translated(served, text, memory, explain="tokens"), range(4)
                )
                assert all(text not in _origins(answer) for answer in answers)


def _origins(answer: httpx.Response) -> set[str]:
    """The sources of all examples that an explained translation names."""
    assert answer.status_code == 200, answer.text
    return {segment["source"] for segment in answer.json()["segments"]}


def test_imports_and_fits_are_jobs_of_the_cluster(served: RunningServer, memory: int) -> None:
    lines = "".join(f"{ENGLISH[i % 12]} import {i}\t{GERMAN[i % 12]} Import {i}\n" for i in range(300))
    job = served.http.post(f"/v1/memories/{memory}/import", files={"file": ("a.tsv", lines.encode())}).json()
    done = served.finished(job)
    assert (done["state"], done["result"]["added"]) == ("done", 300)  # type: ignore[index]
    job = served.http.post(f"/v1/memories/{memory}/fit", json={"steps": 10, "max_tokens": 2000}).json()
    assert served.finished(job)["state"] == "done"
    for _ in range(20):  # both replicas have it when they have translated once
        answer = translated(served, ENGLISH[0], memory)
    assert answer.json()["smoother"] == "memory"


def test_the_real_clients_are_served_what_was_taught(served: RunningServer, memory: int) -> None:
    import deepl
    import modernmt
    from libretranslatepy import LibreTranslateAPI

    source, target = f"{ENGLISH[0]} for the clients", f"{GERMAN[1]} für die Kunden"
    taught = served.http.post(f"/v1/memories/{memory}/segments", json={"source": source, "target": target})
    assert taught.status_code == 201
    libre = LibreTranslateAPI(served.url + "/")
    client = deepl.Translator("any", server_url=served.url)
    mmt = modernmt.ModernMT("any")
    mmt._ModernMT__base_url = served.url + "/mmt"  # type: ignore[attr-defined]
    for _ in range(4):  # by both replicas
        assert libre.translate(source, "en", "de") == target
        assert client.translate_text(source, source_lang="EN", target_lang="DE").text == target
        assert mmt.translate("en", "de", source).translation == target
    assert served.http.get("/").status_code == 200
    assert "kster" in served.http.get("/metrics").text


def test_without_the_token_nobody_joins_the_cluster(served: RunningServer, tmp_path: Path) -> None:
    address = json.loads((served.data / "cluster.json").read_text())["address"]
    join = f"import ray; ray.init('{address}', logging_level=40); print('joined')"
    other = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(tmp_path / "token")}
    (tmp_path / "token").write_text("0" * 64)
    right = {"RAY_AUTH_MODE": "token"}  # with the path of the fixture
    for environment, joins in (({"RAY_AUTH_MODE": "disabled"}, False), (other, False), (right, True)):
        done = subprocess.run(
            [sys.executable, "-c", join],
            capture_output=True,
            text=True,
            timeout=300,
            env={**os.environ, "RAY_NUM_REDIS_GET_RETRIES": "1", **environment},
        )
        assert ("joined" in done.stdout) == joins, done.stderr


def test_a_dead_shard_is_named_and_comes_back_with_everything(served: RunningServer, memory: int) -> None:
    before = served.http.get(f"/v1/memories/{memory}").json()["segments"]
    for process in processes(served, "ShardActor"):
        os.kill(process, signal.SIGKILL)
    seen, deadline = set[int](), time.monotonic() + 120
    while time.monotonic() < deadline:
        answer = translated(served, ENGLISH[0], memory)
        seen.add(answer.status_code)
        if answer.status_code == 503:
            assert "shard" in answer.json()["error"]
            partial = translated(served, ENGLISH[0], memory, partial=True)
            assert partial.status_code == 200
            seen |= {0} if partial.json()["partial"] else set()
        elif 503 in seen:
            break
        time.sleep(0.05)
    assert {0, 200, 503} <= seen
    assert served.http.get(f"/v1/memories/{memory}").json()["segments"] == before


def test_the_catalogue_may_die_while_people_translate(served: RunningServer, memory: int) -> None:
    assert text_of(translated(served, ENGLISH[2], memory))
    for process in processes(served, "CatalogueActor"):
        os.kill(process, signal.SIGKILL)
    for _ in range(20):
        assert text_of(translated(served, ENGLISH[2], memory))
    taught = served.http.post(f"/v1/memories/{memory}/segments", json={"source": "after", "target": "nach"})
    assert taught.status_code == 201


def test_a_replica_that_dies_is_replaced(served: RunningServer, memory: int) -> None:
    victim, *_ = processes(served, "ServeReplica")
    os.kill(victim, signal.SIGKILL)
    deadline, answers = time.monotonic() + 60, 0
    while answers < 10 and time.monotonic() < deadline:
        answers += translated(served, ENGLISH[3], memory).status_code == 200
    assert answers == 10


def test_a_rolling_restart_loses_no_request(served: RunningServer, memory: int) -> None:
    """While people translate and teach: each replica is another one afterwards."""
    before, ended = set(processes(served, "ServeReplica")), threading.Event()

    def translate_all_the_time(client: int) -> list[int]:
        codes = []
        while not ended.is_set():
            codes.append(translated(served, f"{ENGLISH[client]} again {len(codes)}", memory).status_code)
        return codes

    with ThreadPoolExecutor(3) as clients:
        codes = [clients.submit(translate_all_the_time, client) for client in range(3)]
        os.kill(served.process.pid, signal.SIGHUP)
        deadline = time.monotonic() + 300
        while before & set(now := processes(served, "ServeReplica")) or len(now) < 2:
            assert time.monotonic() < deadline, f"{before} are still there"
            time.sleep(0.5)
        time.sleep(5)
        ended.set()
        counts = [len(own.result()) for own in codes]
        assert all(set(own.result()) == {200} for own in codes)
    assert min(counts) > 0
    taught = served.http.post(
        f"/v1/memories/{memory}/segments", json={"source": "rolled", "target": "gerollt"}
    )
    assert taught.status_code == 201
    assert text_of(translated(served, "rolled", memory)) == "gerollt"


def test_status_says_what_runs_and_the_command_line_reads_the_directories(served: RunningServer) -> None:
    said = kster("cluster", "status", "--data", str(served.data))
    assert "2 running" in said
    assert said.count("shard ") == 2
    directories = [p.parent for p in (served.data / "shards").glob("*/*/memory.json")]
    total = 0
    for directory in directories:
        with Memory.open(directory) as memory:
            assert memory.verify() == []
            total += memory.segment_count()
    assert total > 400


def test_replicas_are_added_while_many_requests_wait(served: RunningServer, memory: int) -> None:
    ended = threading.Event()

    def translate_all_the_time(client: int) -> None:
        number = 0
        while not ended.is_set():
            number += 1
            assert text_of(translated(served, f"{ENGLISH[client % 12]} wait {number}", memory))

    with ThreadPoolExecutor(24) as clients:
        waiting = [clients.submit(translate_all_the_time, client) for client in range(24)]
        deadline = time.monotonic() + 240
        while len(processes(served, "ServeReplica")) < 3 and time.monotonic() < deadline:
            time.sleep(1)
        ended.set()
        for client in waiting:
            client.result()
    assert len(processes(served, "ServeReplica")) == 3
