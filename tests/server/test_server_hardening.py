"""What must not bring a server down: strangers, full disks, damage, idle connections, hopeless files."""

from __future__ import annotations

import http.client
import lzma
import re
import resource
import socket
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families
from running import RunningServer, start
from test_server_security import keyed, make_key  # noqa: F401

from kster.server.database import ServerDatabase
from kster.server.work.jobs import Job, Jobs
from tiny import ENGLISH, GERMAN

TRANSLATE = {"text": ENGLISH[0], "source": "en", "target": "de"}


def new_memory(server: RunningServer, **more: Any) -> int:
    return server.http.post("/v1/memories", json={"name": "some", **more}).json()["id"]


def import_rows(server: RunningServer, memory: int, rows: str, name: str = "some.tsv") -> dict[str, Any]:
    file = {"file": (name, f"source\ttarget\n{rows}".encode())}
    return server.http.post(f"/v1/memories/{memory}/import", files=file).json()


# Before a body is read -------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/v1/memories/1/import", "/mmt/memories/1/content", "/translate_file"])
@pytest.mark.parametrize("key", [None, "kster_wrong"])
def test_an_upload_without_a_known_key_is_refused_before_it_is_read(
    keyed: RunningServer,  # noqa: F811
    path: str,
    key: str | None,
) -> None:
    address = keyed.url.removeprefix("http://")
    connection = http.client.HTTPConnection(address, timeout=20)
    connection.putrequest("POST", path)
    connection.putheader("Content-Type", "multipart/form-data; boundary=x")
    connection.putheader(
        "Content-Length", "40000"
    )  # under the limit of an upload, above that of other bodies
    if key is not None:
        connection.putheader("Authorization", f"Bearer {key}")
    connection.endheaders()  # and not a byte of it
    answer = connection.getresponse()
    expected = 413 if path == "/translate_file" and key is None else 401 if key is None else 403
    assert answer.status == expected
    if expected == 413:
        assert b"Authorization: Bearer" in answer.read()
    connection.close()


def test_a_read_key_cannot_upload_examples(keyed: RunningServer) -> None:  # noqa: F811
    token = keyed.keys["reader"]  # type: ignore[attr-defined]
    files = {"file": ("a.tsv", b"source\ttarget\na\tb")}
    answer = keyed.http.post("/v1/memories/1/import", files=files, headers={"X-API-Key": token})
    assert answer.status_code == 403


# Jobs ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("setting", "value"),
    [("learning_rate", 1e308), ("max_tokens", 1e30), ("k", 10**9), ("steps", 10**12), ("metric", 10**9)],
)
def test_absurd_settings_of_a_fit_are_refused_by_name(
    server: RunningServer, setting: str, value: float
) -> None:
    answer = server.http.post("/v1/memories/1/fit", json={setting: value})
    assert answer.status_code == 400
    assert setting in answer.json()["error"]


def test_a_job_that_died_with_its_server_twice_is_given_up(taught_marian: Path, tmp_path: Path) -> None:
    from kster.server.database import ServerDatabase, now

    data = tmp_path / "data"
    database = ServerDatabase(data)
    for id, attempts in (("once", 1), ("twice", 2)):
        database.change(
            "INSERT INTO jobs (id, kind, memory, state, request, created, attempts) "
            "VALUES (?, 'fit', 1, 'waiting', '{\"pair\": \"en-de\"}', ?, ?)",
            (id, now(), attempts),
        )
    database.close()
    server = start(data, "--model", str(taught_marian))
    try:
        assert server.finished({"id": "once"})["error"] == "the memory was deleted"  # tried, that is
        given_up = server.http.get("/v1/jobs/twice").json()
        assert given_up["state"] == "failed"
        assert "ended 2 times" in given_up["error"]
    finally:
        assert server.stop() == 0


def test_a_job_that_computes_for_long_holds_no_shutdown_up_and_is_done_by_the_next_server(
    tmp_path: Path,
) -> None:
    begun, over = threading.Event(), threading.Event()

    def compute(job: Job) -> dict[str, Any]:
        begun.set()
        over.wait(60)  # and reports nothing meanwhile
        return {}

    id = None
    for _ in range(3):  # more often than a job may die with its server
        begun.clear()
        jobs = Jobs(ServerDatabase(tmp_path))
        jobs.start({"fit": compute})
        id = id or jobs.submit("fit", 1, None, {}).id
        assert begun.wait(60)
        assert not jobs.stop(seconds=0.1)
    assert id is not None
    jobs = Jobs(ServerDatabase(tmp_path))
    jobs.start({"fit": lambda job: {"done": True}})
    while (last := jobs.get(id)) is not None and last.state != "done":
        time.sleep(0.01)
        assert last.state != "failed"
    assert jobs.stop()
    over.set()


def test_a_waiting_and_a_running_job_can_be_cancelled_and_leave_nothing(server: RunningServer) -> None:
    memory = new_memory(server)
    rows = "\n".join(f"{ENGLISH[n % 12]} number {n}\t{GERMAN[n % 12]} Nummer {n}" for n in range(60_000))
    running, waiting = import_rows(server, memory, rows), import_rows(server, memory, rows)
    while server.http.get(f"/v1/jobs/{running['id']}").json()["done"] == 0:
        time.sleep(0.01)
    for job in (waiting, running):
        assert server.http.delete(f"/v1/jobs/{job['id']}").status_code == 200
        assert server.finished(job)["state"] == "cancelled"
        assert server.http.delete(f"/v1/jobs/{job['id']}").status_code == 409
        assert not (server.data / "uploads" / job["id"]).exists()
    assert server.http.get(f"/v1/memories/{memory}").json()["segments"] == 0


def test_an_import_can_be_waited_for(server: RunningServer) -> None:
    memory = new_memory(server)
    files = {"file": ("one.tsv", f"source\ttarget\n{ENGLISH[0]} 1\t{GERMAN[0]} 1".encode())}
    answer = server.http.post(f"/v1/memories/{memory}/import?wait=true", files=files)
    assert answer.status_code == 200
    assert answer.json()["state"] == "done"
    assert answer.json()["result"]["added"] == 1


# A full disk -----------------------------------------------------------------------------------------


def test_a_full_disk_is_said_and_the_job_is_done_when_there_is_room(
    taught_marian: Path, tmp_path: Path
) -> None:
    server = start(tmp_path / "data", "--model", str(taught_marian))
    try:
        memory = new_memory(server)
        segments = f"/v1/memories/{memory}/segments"
        example = {"source": ENGLISH[0], "target": GERMAN[0]}
        assert server.http.post(segments, json=example).status_code == 201
        rows = "\n".join(f"{ENGLISH[n % 12]} number {n}\t{GERMAN[n % 12]} Nummer {n}" for n in range(20_000))
        job = import_rows(server, memory, rows)
        _, hard = resource.prlimit(
            server.process.pid, resource.RLIMIT_FSIZE, (20_000, resource.RLIM_INFINITY)
        )
        while server.http.get(f"/v1/jobs/{job['id']}").json()["phase"] != "no room":
            time.sleep(0.05)
        answer = server.http.post(segments, json={"source": ENGLISH[1], "target": GERMAN[1]})
        assert answer.status_code == 507, answer.text
        assert "disk is full" in answer.json()["error"]
        assert server.http.post("/v1/translate", json=TRANSLATE).status_code == 200
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, hard))
        done = server.finished(job)
        assert (done["state"], done["result"]["added"]) == ("done", 20_000)
        assert server.http.post(segments, json=example).status_code == 201
        assert "Traceback" not in server.log.read_text()
    finally:
        assert server.stop() == 0


# Damage ----------------------------------------------------------------------------------------------


def test_damaged_automatic_memories_are_left_out_with_a_warning_and_the_others_serve(
    taught_marian: Path, shared_memory: Path, tmp_path: Path
) -> None:
    arguments = ("--model", str(taught_marian), "--memory", str(shared_memory))
    server = start(tmp_path / "data", *arguments)
    *broken, whole = (new_memory(server, automatic=True) for _ in range(3))
    for memory in (*broken, whole):
        example = {"source": "the red bird runs", "target": "der rote Vogel läuft"}
        assert server.http.post(f"/v1/memories/{memory}/segments", json=example).status_code == 201
    assert server.stop() == 0
    for memory, file in zip(broken, ("memory.json", "memory.sqlite"), strict=True):
        (damaged,) = (tmp_path / "data" / "memories" / str(memory)).rglob(file)
        damaged.write_bytes(b"\0" * 100)

    server = start(tmp_path / "data", *arguments)
    try:
        answer = server.http.post("/v1/translate", json={**TRANSLATE, "text": "the red bird runs"}).json()
        assert answer["translations"][0]["text"] == "der rote Vogel läuft"
        warnings = answer["warnings"]
        for memory, warning in zip(broken, warnings, strict=True):
            assert f"memory {memory}" in warning
        assert str(tmp_path) not in "".join(warnings)
        libre = {"q": ENGLISH[0], "source": "en", "target": "de"}
        answer = server.http.post("/translate", json=libre).json()
        assert answer == {"translatedText": GERMAN[0], "warnings": warnings}
        file = {"file": ("a.txt", ENGLISH[0].encode())}
        assert server.http.post("/translate_file", data=libre, files=file).json()["warnings"] == warnings
        whole_alone = server.http.post("/translate", json={**libre, "memories": [whole]}).json()
        assert "warnings" not in whole_alone
        listed = {memory["id"]: memory for memory in server.http.get("/v1/memories").json()}
        assert listed[whole]["damaged"] is None
        for memory in broken:
            assert listed[memory]["damaged"]
            named = server.http.post("/v1/translate", json={**TRANSLATE, "memories": [memory]})
            assert named.status_code == 400  # what was asked for by name is not silently left out
        assert "left out" in server.log.read_text()
    finally:
        assert server.stop() == 0


# Connections -----------------------------------------------------------------------------------------


def test_idle_connections_neither_block_a_server_nor_stay(taught_marian: Path, tmp_path: Path) -> None:
    server = start(
        tmp_path / "data", "--model", str(taught_marian), KSTER_MAX_CONNECTIONS="20", KSTER_HEADER_SECONDS="2"
    )
    address = ("127.0.0.1", int(server.url.rpartition(":")[2]))
    idle = []
    try:
        server.http.close()
        for number in range(60):
            idle.append(socket.create_connection(address, timeout=30))
            if number % 2:
                idle[-1].sendall(b"POST /translate HTTP/1.1\r\nHost: 127")  # and never the rest
        refused = [one for one in idle[30:] if one.recv(20).startswith(b"HTTP/1.1 503")]
        assert len(refused) == 30
        assert all(one.recv(20) == b"" for one in idle[:15]), "closed after two seconds of silence"
        assert httpx.get(f"{server.url}/health").status_code == 200
        assert server.log.read_text().count("too many") <= 11  # and not a line for each
    finally:
        for one in idle:
            one.close()
        assert server.stop() == 0


def test_a_taken_port_is_one_line_and_status_2(taught_marian: Path, tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        command = [sys.executable, "-m", "kster", "serve", "--model", str(taught_marian)]
        result = subprocess.run(
            [*command, "--port", str(port), "--data", str(tmp_path / "data")],
            capture_output=True,
            text=True,
            check=False,
        )
    assert result.returncode == 2
    assert result.stdout == ""
    assert re.fullmatch(rf"kster: 127.0.0.1:{port} cannot be served \(Address already .*\n", result.stderr)


# Files -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "head", [b"en,de\rhouse,Haus", b"en," + b"x" * 131_073], ids=["bare CR", "long cell"]
)
def test_a_glossary_that_is_no_csv_is_refused_and_not_a_bug(server: RunningServer, head: bytes) -> None:
    memory = new_memory(server)
    files = {"csv": ("terms.csv", head + b"\nhouse,Haus\n")}
    answer = server.http.post(
        f"/mmt/memories/{memory}/glossary", files=files, data={"type": "unidirectional"}
    )
    assert answer.status_code in (200, 400), answer.text
    if answer.status_code == 200:
        assert server.finished(answer.json()["data"])["state"] in ("done", "failed")
    assert not list((server.data / "uploads").iterdir())


def test_a_hopeless_file_is_given_up_early(server: RunningServer) -> None:
    memory = new_memory(server)
    packed = lzma.compress(b"source\ttarget\n" + b"no tab in this line\n" * 3_000_000)
    began = time.process_time()
    answer = server.http.post(
        f"/v1/memories/{memory}/import?wait=true", files={"file": ("bad.tsv.xz", packed)}
    ).json()
    assert answer["state"] == "failed"
    assert "none is usable" in answer["error"]
    assert time.process_time() - began < 60  # a guard against reading three million lines twice


def test_rejections_are_counted_and_the_first_thousand_kept(server: RunningServer) -> None:
    memory = new_memory(server)
    rows = f"{ENGLISH[0]} 7\t{GERMAN[0]} 7\n" + "no tab in this line\n" * 3_000
    done = server.finished(import_rows(server, memory, rows))
    assert done["result"]["added"] == 1
    assert done["result"]["rejected"] == 3_000
    assert len(done["result"]["rejections"]) == 1_000


# What others on the machine may read -----------------------------------------------------------------


def test_a_data_directory_that_was_open_to_all_is_closed(taught_marian: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir(mode=0o755)
    make_key(data, "somebody", "read")
    data.chmod(0o755)
    (data / "server.sqlite").chmod(0o644)
    server = start(data, "--model", str(taught_marian))
    memory = new_memory(server)
    server.http.post(f"/v1/memories/{memory}/segments", json={"source": ENGLISH[0], "target": GERMAN[0]})
    assert server.stop() == 0
    for path in (data, *data.rglob("*")):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path


# The end ---------------------------------------------------------------------------------------------


def test_every_runtime_package_has_its_version_in_the_constraints() -> None:
    from importlib.metadata import PackageNotFoundError, requires

    root = Path(__file__).parents[2]
    lines = (root / "constraints.txt").read_text().splitlines()
    pinned = {_plain(line.partition("==")[0]) for line in lines if "==" in line}
    wanted, seen = [_plain("kster")], set()
    while wanted:
        name = wanted.pop()
        if name in seen:
            continue
        seen.add(name)
        try:
            needed = requires(name) or []
        except PackageNotFoundError:  # for another system or Python
            seen.discard(name)
            continue
        wanted += [_plain(re.split(r"[^\w.-]", one)[0]) for one in needed if "extra ==" not in one]
    assert sorted(seen - pinned - {"kster"}) == []
    lock = (root / "deploy" / "requirements.lock").read_text().splitlines()[1:]
    assert all(re.search(r" --hash=sha256:[0-9a-f]{64}$", line) for line in lock)
    locked = {_plain(line.partition("==")[0]): line.split()[0].partition("==")[2] for line in lock}
    assert sorted(seen - set(locked) - {"kster", "torch"}) == []
    versions = {_plain(line.partition("==")[0]): line.partition("==")[2] for line in lines if "==" in line}
    assert {name: version for name, version in locked.items() if versions[name] != version} == {}


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


# For those who look after it -------------------------------------------------------------------------


def test_a_server_says_that_it_lives_is_ready_and_what_it_has(server: RunningServer) -> None:
    assert server.http.get("/live").json() == {"status": "live"}
    assert server.http.get("/ready").json() == {"status": "ready", "pairs": ["en-de"]}
    sent = {"text": ENGLISH[0], "source": "en", "target": "de", "memories": [1]}
    before = metrics_of(server)
    assert server.http.post("/v1/translate", json=sent).status_code == 200
    after = metrics_of(server)
    for name in ("kster_search_seconds_count", "kster_search_seconds_sum"):
        assert after[name] > before[name]
    assert server.http.post("/v1/translate", json={**sent, "memories": []}).status_code == 200
    assert metrics_of(server)["kster_search_seconds_count"] == after["kster_search_seconds_count"]
    assert after["kster_requests_waiting"] == 0
    memory = '{memory="1",pair="en-de"}'
    assert after["kster_memory_segments_without_keys" + memory] == 0
    metrics = server.http.get("/metrics").text
    assert re.search(r'kster_build_info\{version="[\d.]+.*"\} 1.0', metrics)
    assert re.search(r"kster_requests_in_progress [1-9]", metrics)  # this one
    assert re.search(r'kster_memory_segments\{memory="1",pair="en-de"\} 2.0', metrics)
    assert re.search(r'kster_memory_entries\{memory="1",pair="en-de"\} \d\d', metrics)


def test_how_much_is_translated_for_a_key_is_told_to_admins_alone(keyed: RunningServer) -> None:  # noqa: F811
    tokens: dict[str, str] = keyed.keys  # type: ignore[attr-defined]
    before = metrics_of(keyed, tokens["boss"])
    sent = {"source": "en", "target": "de"}
    bert = {"X-API-Key": tokens["bert"]}
    body = {**sent, "q": ENGLISH[1], "api_key": tokens["eager"]}
    assert keyed.http.post("/v1/translate", json={**sent, "text": ENGLISH[0]}, headers=bert).is_success
    assert keyed.http.post("/translate", json=body).is_success
    files = {"file": ("a.txt", ENGLISH[0].encode())}
    assert keyed.http.post("/translate_file", data=sent, files=files, headers=bert).is_success
    after, own = metrics_of(keyed, tokens["boss"]), metrics_of(keyed, tokens["bert"])
    counted = {
        name: after[name] - before.get(name, 0)
        for name in after
        if name.startswith(("kster_key_characters_total", "kster_characters_total"))
    }
    of_bert, of_eager = 2 * len(ENGLISH[0]), len(ENGLISH[1])
    assert {name: count for name, count in counted.items() if count} == {
        "kster_characters_total": of_bert + of_eager,
        'kster_key_characters_total{key="bert"}': of_bert,
        'kster_key_characters_total{key="eager"}': of_eager,
    }
    assert not any("key" in name.split("{")[-1] or "kster_key" in name for name in own)
    assert own["kster_characters_total"] == after["kster_characters_total"]


def metrics_of(server: RunningServer, token: str | None = None) -> dict[str, float]:
    """Each value by its name and labels, in the order of their names."""
    headers = {"X-API-Key": token} if token else {}
    found = {}
    for family in text_string_to_metric_families(server.http.get("/metrics", headers=headers).text):
        for sample in family.samples:
            labels = ",".join(f'{name}="{value}"' for name, value in sorted(sample.labels.items()))
            found[sample.name + (f"{{{labels}}}" if labels else "")] = sample.value
    return found
