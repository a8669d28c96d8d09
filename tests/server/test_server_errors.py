"""What a client learns of a bug, and what the HTML translator makes of odd markup."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from kster.documents.html import HtmlText
from kster.errors import KsterError
from kster.server.app import create_app
from kster.server.settings import ModelSetting, ServerSettings
from kster.text.marks import MarkedText
from kster.text.recognition import with_codes


@pytest.fixture(scope="module")
def broken(taught_marian: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """The server's application with a bug in it."""
    data = tmp_path_factory.mktemp("broken")
    app = create_app(ServerSettings(models=[ModelSetting(path=str(taught_marian))], data=data))

    @app.get("/bug")
    @app.get("/mmt/bug")
    def bug() -> None:
        raise RuntimeError("a secret of ours")

    @app.get("/mistake")
    def mistake() -> None:
        raise KsterError("a mistake of yours")

    with TestClient(app, base_url="http://localhost") as client:
        yield client


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
    ("html", "sent", "translated", "done"),
    [
        ("the <b>red</b> lid.", "the {0} red {1} lid.", "{0}rot{1} ist er.", "<b>rot</b> ist er."),
        ("open <b>it</b>.", "open {0} it {1}.", "{0} es {1} öffnen.", "<b>es</b> öffnen."),
        ("open <b>it</b> now", "open {0} it {1} now", "jetzt {0} öffnen {1} .", "jetzt <b>öffnen</b>."),
        ("<i>a <b>b</b></i> c", "{0} a {1} b {2} c", "C {0} A {1} B {2}", "C <i>A <b>B</b></i>"),
        ("use <code>ls -l</code> here", "use {0} here", "hier {0} nehmen", "hier <code>ls -l</code> nehmen"),
        ("a <b>b</b> c <i>d</i>", "a {0} b {1} c {2} d {3}", "{2}D{3}{0}B{1}", "<i>D</i> <b>B</b>"),
        ("say {0} to <b>him</b>", "say {0} to {1} him {2}", "{1} ihm {2} {0} sagen", "<b>ihm</b> {0} sagen"),
        ("(<b>a</b>) b", "({0} a {1}) b", "({0}A{1}) B", "(<b>A</b>) B"),
        ("a <b>b</b>", "a {0} b {1}", "A {1} B {0}", None),
        ("a <b>b</b>", "a {0} b {1}", "A {0} B", None),
        ("a <b>b</b>", "a {0} b {1}", "A {0} {1} B", None),
        ("a <b>b</b>", "a {0} b {1}", "A {0} B {1} {0}", None),
        ("a <b>b</b>", "a {0} b {1}", "A {0} B {1} {2}", None),
        ("a <b>b</b> <i>c</i>", "a {0} b {1} {2} c {3}", "A {0} B {2} C {1} {3}", None),
    ],
)
def test_a_sentence_with_tags_is_translated_as_one(
    html: str, sent: str, translated: str, done: str | None
) -> None:
    document = HtmlText(html)
    (unit,) = document.units
    marked = MarkedText(with_codes(unit.text))
    assert marked.text == sent
    read = marked.read(translated)
    assert (read and document.written([read.tokens])) == done
