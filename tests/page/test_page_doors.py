"""The page gives the text that Python gives, placeholders and tags included."""

from __future__ import annotations

import pytest
from browser import Open
from playwright.sync_api import expect
from running import RunningServer
from test_server_doors import TEXTS


@pytest.mark.parametrize("text", TEXTS)
def test_the_page_translates_as_every_other_door_does(
    open_page: Open, server: RunningServer, text: str
) -> None:
    asked = {"q": text, "source": "en", "target": "de"}
    expected = server.http.post("/translate", json=asked).json()["translatedText"]
    page = open_page()
    page.fill("#source-text", text)
    expect(page.locator("#adapted")).to_have_text(expected)
