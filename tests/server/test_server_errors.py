"""What a client learns of a bug, and what the HTML translator makes of odd markup."""

from __future__ import annotations

import logging

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from kster.errors import KsterError
from kster.server import errors
from kster.server.gate import Gate
from kster.server.html_text import HtmlText
from kster.server.settings import ServerSettings


@pytest.fixture
def broken() -> TestClient:
    """An application with a bug, behind the server's own gate."""
    app = FastAPI()
    errors.install(app)
    app.add_middleware(Gate, settings=ServerSettings())

    @app.get("/bug")
    @app.get("/mmt/bug")
    def bug() -> None:
        raise RuntimeError("a secret of ours")

    @app.get("/mistake")
    def mistake() -> None:
        raise KsterError("a mistake of yours")

    return TestClient(app, base_url="http://localhost")


def test_a_bug_is_told_to_the_log_and_not_to_the_client(
    broken: TestClient, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR, "kster.server"):
        answer = broken.get("/bug")
    id = answer.headers["x-request-id"]
    assert (answer.status_code, answer.json()) == (500, {"error": "internal error", "request_id": id})
    (record,) = caplog.records
    assert record.request_id == id  # type: ignore[attr-defined]
    assert "a secret of ours" in str(record.exc_info)
    assert broken.get("/mmt/bug").json()["error"] == {
        "type": "InternalException",
        "message": "internal error",
    }


def test_a_mistake_is_told_to_the_client(broken: TestClient) -> None:
    assert broken.get("/mistake").status_code == 400
    assert broken.get("/mistake").json() == {"error": "a mistake of yours"}


@pytest.mark.parametrize(
    ("html", "pieces", "done"),
    [
        ("Just text & more", ["Just text & more"], "JUST TEXT &amp; MORE"),
        ("<p> a <b>b</b>c<!-- no --> d</p>", ["a", "b", "c", "d"], "<p> A <b>B</b>C<!-- no --> D</p>"),
        ('<i title="t">x</i>', ["t", "x"], '<i title="T">X</i>'),
        ("<p>one<p>two", ["one", "two"], "<p>ONE</p><p>TWO</p>"),
        ("<pre>a</pre><kbd>b</kbd> c", ["c"], "<pre>a</pre><kbd>b</kbd> C"),
        ("12 <br> 3", [], "12 <br> 3"),
        ("<p>one\n   two\tthree</p>", ["one two three"], "<p>ONE TWO THREE</p>"),
        ('<p><i class="x notranslate">a</i> b</p>', ["b"], '<p><i class="x notranslate">a</i> B</p>'),
        ("a &lt;b&gt;", ["a <b>"], "A &lt;B&gt;"),
        ("", [], ""),
    ],
)
def test_markup_stays_and_text_is_replaced(html: str, pieces: list[str], done: str) -> None:
    document = HtmlText(html)
    assert document.pieces == pieces
    assert document.with_translations([piece.upper() for piece in pieces]) == done


def test_deeply_nested_markup_is_no_danger() -> None:
    deep = "<div>" * 200 + "word" + "</div>" * 200
    document = HtmlText(deep)
    assert document.pieces == ["word"]
    assert document.with_translations(["Wort"]) == deep.replace("word", "Wort")
