"""What was acknowledged survives the end of the server, however it ends; concurrent clients lose nothing."""

from __future__ import annotations

import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
from running import RunningServer, start

from tiny import ENGLISH, GERMAN

IMPORTED = 5_000  # pairs of a file: enough to be under way for a while


def teach_until_refused(server: RunningServer, memory: int, name: str, acknowledged: list[str]) -> None:
    with httpx.Client(base_url=server.url, timeout=60) as client:
        for number in range(10_000):
            source = f"{ENGLISH[number % 12]} {name} {number}"
            try:
                answer = client.post(
                    f"/v1/memories/{memory}/segments", json={"source": source, "target": GERMAN[number % 12]}
                )
            except httpx.TransportError:
                return
            assert answer.status_code == 201, answer.text
            acknowledged.append(source)


@pytest.mark.parametrize("how", [signal.SIGTERM, pytest.param(signal.SIGKILL, marks=pytest.mark.slow)])
def test_acknowledged_examples_and_jobs_survive_the_end_of_the_server(
    taught_marian: Path, tmp_path: Path, how: signal.Signals
) -> None:
    server = start(tmp_path / "data", "--model", str(taught_marian))
    memory = server.http.post("/v1/memories", json={"name": "kept"}).json()["id"]
    acknowledged: list[str] = []
    teachers = [
        threading.Thread(target=teach_until_refused, args=(server, memory, name, acknowledged))
        for name in ("a", "b", "c")
    ]
    for teacher in teachers:
        teacher.start()
    while len(acknowledged) < 20:
        threading.Event().wait(0.01)
    rows = "\n".join(f"{ENGLISH[n % 12]} number {n}\t{GERMAN[n % 12]} Nummer {n}" for n in range(IMPORTED))
    job = server.http.post(
        f"/v1/memories/{memory}/import", files={"file": ("many.tsv", f"source\ttarget\n{rows}".encode())}
    ).json()
    before = len(acknowledged)
    status = server.stop(how)
    for teacher in teachers:
        teacher.join()
    if how == signal.SIGTERM:
        assert status == 0
        assert "Traceback" not in server.log.read_text()
    assert len(acknowledged) >= before

    again = start(tmp_path / "data", "--model", str(taught_marian))
    try:
        finished = again.finished(job)  # the import that was under way is done by the next server
        assert finished["state"] == "done", finished
        assert finished["result"]["added"] == IMPORTED
        url = f"/v1/memories/{memory}/segments"
        found: set[str] = set()
        while page := again.http.get(url, params={"limit": 1000, "offset": len(found)}).json()["segments"]:
            found |= {segment["source"] for segment in page}
        assert set(acknowledged) <= found
        assert len(found) <= IMPORTED + len(acknowledged) + len(teachers)  # one each may have gone unanswered
        assert not list((tmp_path / "data" / "uploads").iterdir())
    finally:
        assert again.stop() == 0


@pytest.mark.slow
def test_requests_in_progress_are_answered_before_the_server_ends(
    taught_marian: Path, tmp_path: Path
) -> None:
    server = start(tmp_path / "data", "--model", str(taught_marian))
    sent = {"q": [f"{text} {n}" for n in range(20) for text in ENGLISH], "source": "en", "target": "de"}
    arrived = threading.Event()

    def ask() -> httpx.Response:
        with httpx.Client(base_url=server.url, timeout=60) as client:
            client.get("/health")  # connected
            arrived.set()
            return client.post("/translate", json=sent)

    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(ask)
        arrived.wait()
        while "kster_waiting_texts 0.0" in server.http.get("/metrics").text:
            assert not answer.done(), "translated before it was noticed"
        assert server.stop() == 0
        assert answer.result().status_code == 200
        assert len(answer.result().json()["translatedText"]) == len(sent["q"])


def test_many_clients_translate_and_teach_at_once_and_each_gets_its_own_answer(server: RunningServer) -> None:
    memory = server.http.post("/v1/memories", json={"name": "busy"}).json()["id"]

    def work(number: int) -> None:
        i = number % 12
        with httpx.Client(base_url=server.url, timeout=60) as client:
            if number % 3 == 0:
                example = {"source": f"{ENGLISH[i]} {number}", "target": f"{GERMAN[i]} {number}"}
                assert client.post(f"/v1/memories/{memory}/segments", json=example).status_code == 201
                request = {"text": example["source"], "source": "en", "target": "de", "memories": [memory]}
                answer = client.post("/v1/translate", json=request).json()
                assert answer["translations"][0]["source"] == example["source"]
                found = client.get(f"/v1/memories/{memory}/segments", params={"query": example["source"]})
                assert found.json()["total"] >= 1
            else:
                sent = {"q": ENGLISH[i], "source": "en", "target": "de"}
                assert client.post("/translate", json=sent).json() == {"translatedText": GERMAN[i]}

    with ThreadPoolExecutor(12) as pool:
        list(pool.map(work, range(72)))
    assert server.http.get(f"/v1/memories/{memory}").json()["segments"] == 24
    batches = [
        line for line in server.http.get("/metrics").text.splitlines() if line.startswith("kster_batch_texts")
    ]
    single = next(float(line.split()[-1]) for line in batches if 'le="1.0"' in line)
    total = next(float(line.split()[-1]) for line in batches if line.startswith("kster_batch_texts_count"))
    assert single < total, "no two requests were ever joined"
    server.http.delete(f"/v1/memories/{memory}")
