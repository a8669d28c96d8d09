"""Strangers, nonsense and impossible requests, on a loopback server without keys."""

from __future__ import annotations

import json
import os
import socket
import threading
import time

import pytest
from running import RunningServer


def test_pages_of_other_sites_cannot_use_a_loopback_server(server: RunningServer) -> None:
    form = {"q": "a", "s": "b", "source": "en", "target": "de"}
    assert (
        server.http.post("/suggest", data=form, headers={"Origin": "https://evil.example"}).status_code == 403
    )
    assert server.http.post("/suggest", data=form, headers={"Origin": "null"}).status_code == 403
    assert server.http.get("/v1/memories", headers={"Host": "evil.example"}).status_code == 403
    own = server.http.post("/detect", data={"q": "the"}, headers={"Origin": server.url})
    assert own.status_code == 200
    assert "access-control-allow-origin" not in own.headers


@pytest.mark.parametrize(
    ("header", "value", "status"), [("Host", "[", 403), ("Origin", "http://[", 403), ("Origin", "[", 403)]
)
def test_a_broken_address_in_a_header_is_a_strangers(
    server: RunningServer, header: str, value: str, status: int
) -> None:
    answer = server.http.post("/detect", data={"q": "the"}, headers={header: value})
    assert answer.status_code == status, answer.text


NONE = 10**30  # an id that SQLite cannot even look for


@pytest.mark.parametrize(
    "path",
    [
        f"/v1/memories/{NONE}",
        f"/v1/memories/{NONE}/segments",
        f"/mmt/import-jobs/segment-{NONE}-1",
        f"/mmt/translate?q=a&source=en&target=de&hints={NONE}",
    ],
)
def test_a_memory_with_an_impossible_id_is_not_there(server: RunningServer, path: str) -> None:
    answer = server.http.get(path)
    assert answer.status_code == 404, answer.text


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/translate", r'{"q": "a", "source": "\ud800", "target": "de"}'),
        ("/translate", '{"q": "a", "source": "en", "target": "de", "alternatives": Infinity}'),
        ("/suggest", r'{"q": "\ud800", "s": "b", "source": "en", "target": "de"}'),
        ("/v1/translate", r'{"text": "a", "source": "\ud800", "target": "de"}'),
        ("/v1/memories", r'{"name": "\ud800"}'),
        ("/v1/memories", r'{"name": "a", "description": "\udfff"}'),
        ("/v1/memories", json.dumps({"name": "a", "description": "a" * 10_001})),
        ("/v1/memories/1/segments", r'{"source": "\ud800", "target": "b"}'),
        ("/v1/memories/1/segments", r'{"source": "a", "target": "b", "unit": "\ud800"}'),
        ("/v1/memories/1/fit", r'{"kernel": "\ud800"}'),
        ("/mmt/memories", r'{"name": "a", "external_id": "\ud800"}'),
    ],
)
def test_what_json_can_say_and_nobody_can_use_is_a_mistake_of_the_client(
    server: RunningServer, path: str, body: str
) -> None:
    answer = server.http.post(path, content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]


def test_every_answer_has_a_request_id_that_is_in_the_log(server: RunningServer) -> None:
    id = server.http.get("/health").headers["x-request-id"]
    deadline = time.monotonic() + 10
    found: list[dict[str, object]] = []
    while not found and time.monotonic() < deadline:  # the line is written when the answer is on its way
        lines = [json.loads(line) for line in server.log.read_text().splitlines() if line.endswith("}")]
        found = [line for line in lines if line.get("request_id") == id]
    (line,) = found
    assert (line["path"], line["status"], line["level"]) == ("/health", 200, "info")


def test_a_path_or_url_for_a_file_is_only_text(server: RunningServer) -> None:
    for value in ("/etc/passwd", "file:///etc/passwd", "http://127.0.0.1:1/"):
        answer = server.http.post("/translate_file", data={"file": value, "source": "en", "target": "de"})
        assert answer.status_code == 400
        assert "missing file" in answer.json()["error"]


def test_nonsense_on_the_wire_does_not_stop_the_server(server: RunningServer) -> None:
    host, port = server.url.removeprefix("http://").split(":")

    def send(nonsense: bytes) -> None:
        with socket.create_connection((host, int(port)), timeout=10) as wire:
            wire.sendall(nonsense)
            wire.shutdown(socket.SHUT_WR)
            wire.recv(1000)

    attacks = [
        b"\x00" * 1000 + b"\r\n\r\n",
        b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n",
        b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99\r\n\r\n{",
        b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Content-Length: 40000\r\n\r\n" + b"[" * 40000,
        b"GET /" + os.urandom(200).hex().encode() + b" HTTP/9.9\r\n\r\n",
    ]
    threads = [threading.Thread(target=send, args=(attack,)) for attack in attacks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert server.http.get("/health").status_code == 200
