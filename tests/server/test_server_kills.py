"""A server that is killed at random moments: what it acknowledged is there, and what it had begun is done.

Segments and their statuses, imports, fits, memories and keys are written all the while; every kill is
followed by a look at the files as they lie, and by the next server.
"""

from __future__ import annotations

import multiprocessing
import random
import threading
import time
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import httpx
import pytest
from running import free_port

from kster.memory import Memory, Segment
from kster.server.auth.keys import Keys
from kster.server.database import ServerDatabase
from tiny import ENGLISH, GERMAN

KILLS = 4  # beside those of tests/memory/test_memory_crash.py
MANY_KILLS, IN_ONE_PIECE = 200, 50  # a piece takes a few minutes
PATIENCE = 600  # seconds: only what is broken waits so long, even on a machine that has much else to do
FIT_AT = 8  # requests after a start
SEGMENTS = "/v1/memories/{}/segments"


def serve_and_write_keys(data: str, model: str, port: int, seed: int, said: Connection) -> None:
    """A server that also makes keys, as `kster keys add` does beside it."""
    from kster.server.run import serve
    from kster.server.settings import ModelSetting, ServerSettings

    def make_keys() -> None:
        keys = Keys(ServerDatabase(Path(data)))
        for number in range(1_000_000):
            _, token = keys.add(f"key {seed}-{number}", "read")
            said.send(token)
            time.sleep(0.02)

    settings = ServerSettings(
        port=port, data=Path(data), models=[ModelSetting(path=model)], require_keys=False, log_level="error"
    )
    threading.Thread(target=make_keys, daemon=True).start()
    serve(settings)


@dataclass
class Known:
    """What a client was told. begun: what the request that was never answered would have changed."""

    token: str
    memory: int = 0
    there: dict[str, int] = field(default_factory=dict)  # source → segment id, of those acknowledged
    superseded: dict[str, int] = field(default_factory=dict)  # source → the older of its two segments
    silent: dict[str, int] = field(default_factory=dict)  # source → segment id, of drafts and rejected ones
    imports: dict[str, set[str]] = field(default_factory=dict)  # job → sources
    unanswered: set[str] = field(default_factory=set)
    maybe: set[str] = field(default_factory=set)  # of earlier requests that were never answered
    answered: dict[str, int] = field(default_factory=dict)  # kind of request → how often


CHANGES = {"add": 6, "edit": 2, "remove": 2, "draft": 2, "approve": 2, "reject": 2, "newer": 3, "restore": 2}
OTHERS = {"import": 2, "memory": 1}


def change_segment(
    client: httpx.Client, known: Known, kind: str, name: str, target: str, chance: random.Random
) -> tuple[str, httpx.Response]:
    """Ask for a change of one segment and note what was acknowledged; returns what kind it came to."""
    alone = known.there.keys() - known.superseded.keys()
    of = {"add": [], "draft": [], "approve": known.silent, "restore": known.superseded}.get(kind, alone)
    old = chance.choice(sorted(of)) if of else ""
    kind = kind if old or kind == "draft" else "add"
    known.unanswered = {name, old}
    url = SEGMENTS.format(known.memory)
    if kind in ("add", "draft"):
        status = "draft" if kind == "draft" else "approved"
        answer = client.post(url, json={"source": name, "target": target, "status": status})
        (known.silent if kind == "draft" else known.there)[name] = answer.json()["id"]
    elif kind == "newer":
        answer = client.post(url, json={"source": old, "target": f"{target} {name}"})
        known.superseded[old], known.there[old] = known.there[old], answer.json()["id"]
    elif kind == "restore":
        answer = client.post(f"{url}/{known.superseded[old]}/restore")
        known.superseded[old], known.there[old] = known.there[old], known.superseded[old]
    elif kind == "approve":
        answer = client.put(f"{url}/{known.silent[old]}/status", json={"status": "approved"})
        known.there[old] = known.silent.pop(old)
    elif kind == "reject":
        answer = client.put(f"{url}/{known.there[old]}/status", json={"status": "rejected"})
        known.silent[old] = known.there.pop(old)
    elif kind == "edit":
        answer = client.put(f"{url}/{known.there[old]}", json={"source": name, "target": target})
        del known.there[old]
        known.there[name] = answer.json()["id"]
    else:
        answer = client.delete(f"{url}/{known.there[old]}")
        del known.there[old]
    return kind, answer


def write_until_killed(url: str, known: Known, seed: int) -> None:
    rng = random.Random(seed)
    headers = {"Authorization": f"Bearer {known.token}"}
    kinds = CHANGES | OTHERS
    with httpx.Client(base_url=url, headers=headers, timeout=PATIENCE) as client:
        for number in range(1_000_000):
            kind = rng.choices([*kinds], [*kinds.values()])[0]
            kind = "fit" if number == FIT_AT else kind  # one takes as long as much of all else
            name = f"{ENGLISH[number % 12]} {seed} {number}"
            target = GERMAN[number % 12]
            known.unanswered = {name}
            try:
                if kind == "import":
                    sources = {f"{name} imported {i}" for i in range(20)}
                    known.unanswered |= sources
                    rows = "\n".join(f"{source}\t{target}" for source in sorted(sources))
                    files = {"file": ("many.tsv", f"source\ttarget\n{rows}".encode())}
                    answer = client.post(f"/v1/memories/{known.memory}/import", files=files)
                    known.imports[answer.json()["id"]] = sources
                elif kind == "fit":
                    answer = client.post(f"/v1/memories/{known.memory}/fit", json={"steps": 2, "k": 2})
                elif kind == "memory":
                    other = client.post("/v1/memories", json={"name": name}).json()["id"]
                    answer = client.delete(f"/v1/memories/{other}")
                else:
                    kind, answer = change_segment(client, known, kind, name, target, rng)
            except httpx.TransportError:
                return
            assert answer.status_code < 300, answer.text
            known.unanswered = set()
            known.answered[kind] = known.answered.get(kind, 0) + 1


def wait_for(client: httpx.Client, child: Any) -> None:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and child.is_alive():
        try:
            client.get("/health")
            return
        except httpx.TransportError:
            time.sleep(0.02)
    raise RuntimeError(
        f"the server did not start: {'it answers nothing' if child.is_alive() else child.exitcode}"
    )


def finish_jobs(client: httpx.Client, known: Known) -> None:
    """Wait until the new server has done what the killed one had promised."""
    url = f"/v1/memories/{known.memory}/jobs"
    while any(job["state"] in ("waiting", "running") for job in client.get(url).json()):
        time.sleep(0.02)
    broken = [job for job in client.get(url).json() if "internal error" in (job["error"] or "")]
    assert not broken
    for id in known.imports:
        job = client.get(f"/v1/jobs/{id}").json()
        assert job["state"] == "done", job["error"]
    imported = {source for sources in known.imports.values() for source in sources}
    listed = client.get(SEGMENTS.format(known.memory), params={"limit": 1000, "newest": True}).json()[
        "segments"
    ]
    for segment in listed:
        if segment["source"] in imported:
            known.there[segment["source"]] = segment["id"]
    assert imported <= known.there.keys()
    known.imports.clear()


def look_at_files(data: Path, known: Known, tokens: list[str], when: str) -> None:
    """What lies on the disk after a kill, before any server has seen to it."""
    database = ServerDatabase(data)
    assert all(Keys(database).find(token) for token in tokens), when
    database.close()
    parts = list((data / "memories" / str(known.memory)).glob("*/memory.json"))
    found: set[str] = set()
    kept: list[Segment] = []
    for part in parts:
        with Memory.open(part.parent) as memory:
            assert memory.verify() == [], when
            exported = [pair.source for pair in memory.export()]
            assert len(exported) == len(set(exported)), when
            found |= set(exported)
            kept += memory.segments(state="kept")
            for source in known.superseded.keys() - known.unanswered:
                events = [(e.action, e.segment, e.other) for e in memory.history(known.there[source])]
                assert ("superseded", known.superseded[source], known.there[source]) in events, when
    waiting = {source for sources in known.imports.values() for source in sources}
    assert known.there.keys() - known.unanswered <= found, when
    assert found <= known.there.keys() | known.unanswered | known.maybe | waiting, when
    for sources in known.imports.values():
        assert not sources & found or sources - known.unanswered <= found, f"{when}: half an import"
    live = {segment.source: segment.id for segment in kept if segment.is_live}
    known.there, was = {source: live[source] for source in known.there if source in live}, known.there
    silent = {segment.source: segment.id for segment in kept if segment.status != "approved"}
    known.silent, was_silent = silent, known.silent
    older = {
        segment.source: segment.id
        for segment in kept
        if segment.source in live and segment.superseded_by == live[segment.source]
    }
    for before, now in ((was, live), (was_silent, silent), (known.superseded, older)):
        for source in before.keys() - known.unanswered:
            assert now.get(source) == before[source], f"{when}: {source}"
    known.superseded = older
    known.maybe |= known.unanswered


@pytest.mark.parametrize(
    "seeds",
    [
        range(KILLS),
        *(
            pytest.param(range(first, first + IN_ONE_PIECE), marks=pytest.mark.slow)
            for first in range(KILLS, KILLS + MANY_KILLS, IN_ONE_PIECE)
        ),
    ],
)
def test_what_a_server_acknowledged_survives_kill_9(
    taught_marian: Path, tmp_path: Path, seeds: range
) -> None:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["kster.memory.memory", "kster.server.run", "kster.model.checkpoint"])
    data = tmp_path / "data"
    database = ServerDatabase(data)
    _, token = Keys(database).add("writer", "write")
    database.close()
    known, tokens, rng = Known(token), list[str](), random.Random(seeds.start)
    for seed in seeds:
        port = free_port()
        url = f"http://127.0.0.1:{port}"
        heard, said = context.Pipe(duplex=False)
        child = context.Process(
            target=serve_and_write_keys,
            args=(str(data), str(taught_marian), port, seed, said),
            daemon=True,  # a campaign that fails does not wait for it
        )
        child.start()
        said.close()
        with httpx.Client(
            base_url=url, headers={"Authorization": f"Bearer {token}"}, timeout=PATIENCE
        ) as client:
            wait_for(client, child)
            if not known.memory:
                known.memory = client.post("/v1/memories", json={"name": "kept"}).json()["id"]
            finish_jobs(client, known)
        writer = threading.Thread(target=write_until_killed, args=(url, known, seed))
        writer.start()
        time.sleep(rng.uniform(0, 0.8))
        child.kill()
        child.join()
        writer.join()
        while True:
            try:
                tokens.append(heard.recv())
            except EOFError:
                break
        look_at_files(data, known, tokens, f"kill {seed}")
    print(f"answered: {known.answered}; {len(tokens)} keys, {len(known.there)} segments")
    assert known.answered.get("add"), "no change was ever acknowledged: the test did not test"
    assert tokens
