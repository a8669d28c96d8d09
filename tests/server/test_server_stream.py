"""/v1/translate as a stream: a long text part by part, however much there is to explain."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from running import RunningServer

from tiny import ENGLISH, GERMAN

TEXT = "\n".join([". ".join(line.capitalize() for line in ENGLISH) + "."] * 15)
ASKED = {"source": "en", "target": "de", "explain": True, "stream": True}


def lines_of(server: RunningServer, **asked: Any) -> Iterator[Any]:
    with server.http.stream("POST", "/v1/translate", json={**ASKED, **asked}) as answer:
        assert answer.headers["content-type"] == "application/x-ndjson"
        for line in answer.iter_lines():
            assert len(line) < 500_000
            yield json.loads(line)


def test_a_long_text_comes_part_by_part_with_its_explanations(server: RunningServer) -> None:
    head, *parts, last = lines_of(server, text=TEXT)
    assert head["pair"] == "en-de"
    assert len(parts) > 10
    assert "".join(part["before"] + part["source"] for part in parts) + last["after"] == TEXT
    named = 0
    for part in parts:
        assert [row["number"] for row in part["segments"]] == list(
            range(named, named + len(part["segments"]))
        )
        named += len(part["segments"])
        assert any(word["segments"] for word in part["words"])
        assert all(each["number"] < named for word in part["words"] for each in word["segments"])
    assert named > 0
    whole = server.http.post("/v1/translate", json={**ASKED, "text": TEXT, "explain": False, "stream": False})
    streamed = "".join(part["before"] + part["text"] for part in parts) + last["after"]
    assert streamed == whole.json()["translations"][0]["text"]


def test_several_texts_say_which_they_are(server: RunningServer) -> None:
    _, *lines = lines_of(server, text=ENGLISH[:2], explain=False)
    translated = [(line["index"], line["text"]) for line in lines if "text" in line]
    assert translated == [(0, GERMAN[0]), (1, GERMAN[1])]
    assert [line["index"] for line in lines if "after" in line] == [0, 1]


def test_a_long_text_explained_word_by_word_takes_little_more_than_its_words(server: RunningServer) -> None:
    asked = {**ASKED, "text": TEXT, "stream": False}
    assert len(server.http.post("/v1/translate", json=asked).content) < 60 * len(TEXT)


def test_a_long_text_is_not_explained_token_by_token(server: RunningServer) -> None:
    for stream in (True, False):
        asked = {**ASKED, "text": TEXT, "explain": "tokens", "stream": stream}
        refused = server.http.post("/v1/translate", json=asked)
        assert refused.status_code == 400
        assert "token by token" in refused.json()["error"]


def test_whoever_goes_away_takes_the_rest_of_the_text_along(server: RunningServer) -> None:
    lines = lines_of(server, text="\n".join([TEXT] * 6))
    assert next(lines)["pair"] == "en-de"
    assert next(lines)["index"] == 0
    lines.close()
    until = time.monotonic() + 60
    while server.http.get("/v1/stats").json()["waiting_texts"] and time.monotonic() < until:
        time.sleep(0.05)
    before = translated(server)
    time.sleep(0.5)
    assert translated(server) == before  # nothing more was begun


@pytest.mark.parametrize("path", ["/v1/translate", "/translate_file"])
def test_nobody_translates_for_a_client_that_has_gone(server: RunningServer, path: str) -> None:
    many = " ".join(f"{TEXT} {number}." for number in range(20))[:49_000]
    sent: dict[str, Any] = (
        {"json": {"text": many, "source": "en", "target": "de"}}
        if path == "/v1/translate"
        else {"data": {"source": "en", "target": "de"}, "files": {"file": ("a.txt", many.encode())}}
    )
    others, until = gone(server, path), time.monotonic() + 60
    with pytest.raises(httpx.ReadTimeout):
        server.http.post(path, **sent, timeout=0.3)
    while gone(server, path) == others and time.monotonic() < until:
        time.sleep(0.05)
    before = translated(server)
    while server.http.get("/v1/stats").json()["waiting_texts"] and time.monotonic() < until:
        time.sleep(0.05)
    assert time.monotonic() < until
    time.sleep(0.5)
    assert translated(server) == before  # no further part of it was begun
    short = {"text": ENGLISH[0], "source": "en", "target": "de"}
    assert server.http.post("/v1/translate", json=short).json()["translations"][0]["text"] == GERMAN[0]


def gone(server: RunningServer, path: str) -> float:
    """Of how many requests the client did not wait for the answer."""
    counted = f'kster_requests_total{{route="{path}",status="499"}} '
    lines = server.http.get("/metrics").text.splitlines()
    return sum(float(line.removeprefix(counted)) for line in lines if line.startswith(counted))


def translated(server: RunningServer) -> str:
    """How many characters, as the metrics say it."""
    lines = server.http.get("/metrics").text.splitlines()
    return next(line for line in lines if line.startswith("kster_characters_total"))
