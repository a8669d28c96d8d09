"""A request that takes too long is stopped and answered, and none keeps a server from ending."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
from running import RunningServer, start

from tiny import ENGLISH

LINES = [f"{ENGLISH[n % 12]} {n}" for n in range(20_000)]  # minutes of work


def waiting_texts(server: RunningServer) -> float:
    metrics = server.http.get("/metrics").text.splitlines()
    return next(float(line.split()[-1]) for line in metrics if line.startswith("kster_waiting_texts "))


def test_a_request_over_its_time_is_answered_with_504_and_its_work_is_dropped(
    taught_marian: Path, tmp_path: Path
) -> None:
    limits = {"KSTER_TIMEOUT_SECONDS": "0.5", "KSTER_MAX_TEXTS": "5000", "KSTER_MAX_CHARACTERS": "1000000"}
    server = start(tmp_path / "data", "--model", str(taught_marian), **limits)
    try:
        many = {"text": LINES[:5_000], "source": "en", "target": "de"}
        answer = server.http.post("/v1/translate", json=many)
        assert answer.status_code == 504
        assert answer.json()["error"].startswith("translating 5,000 texts en → de took longer than 0.5 s")
        for _ in range(100):  # the answer may be there a moment before the queue is empty
            if waiting_texts(server) == 0:
                break
            time.sleep(0.05)
        else:
            raise AssertionError(f"{waiting_texts(server)} texts still wait")
        file = {"file": ("much.html", b"<p>a b</p>" * 400_000)}
        refused = server.http.post("/translate_file", data={"source": "en", "target": "de"}, files=file)
        assert refused.status_code == 400
        assert "much.html: it takes too long to read and write" in refused.json()["error"]
        few = {"text": ENGLISH[0], "source": "en", "target": "de"}
        while server.http.post("/v1/translate", json=few).status_code != 200:
            time.sleep(0.05)  # the batch that was under way is finished first
    finally:
        assert server.stop() == 0


def test_a_server_ends_when_told_to_even_in_the_middle_of_a_long_request(
    taught_marian: Path, tmp_path: Path
) -> None:
    server = start(tmp_path / "data", "--model", str(taught_marian), KSTER_SHUTDOWN_SECONDS="1")

    def translate() -> httpx.Response:
        with httpx.Client(base_url=server.url, timeout=120) as client:
            file = {"file": ("long.txt", "\n\n".join(LINES).encode())}
            return client.post("/translate_file", data={"source": "en", "target": "de"}, files=file)

    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(translate)
        while waiting_texts(server) == 0:
            assert not asked.done(), asked.result().text
            time.sleep(0.01)
        assert server.stop() == 0
        answer = asked.result()
    assert answer.status_code == 503
    assert "being stopped" in answer.json()["error"]
    assert "Traceback" not in server.log.read_text()
