"""The page gives the text that Python gives, placeholders and tags included."""

from __future__ import annotations

from pathlib import Path

import pytest
from browser import Open
from playwright.sync_api import expect
from running import RunningServer
from test_server_doors import HTML, TEXTS
from translated import translate_file


@pytest.mark.parametrize("text", TEXTS)
def test_the_page_translates_as_every_other_door_does(
    open_page: Open, server: RunningServer, text: str
) -> None:
    asked = {"q": text, "source": "en", "target": "de"}
    expected = server.http.post("/translate", json=asked).json()["translatedText"]
    page = open_page()
    page.fill("#source-text", text)
    expect(page.locator("#adapted")).to_have_text(expected)


def test_the_page_translates_html_documents_as_every_other_door_does(
    open_page: Open, server: RunningServer
) -> None:
    page = open_page()
    expect(page.get_by_label("Into", exact=True)).to_have_value("de")
    for i, html in enumerate(HTML):
        document = {"name": f"page{i}.html", "mimeType": "text/html", "buffer": html.encode()}
        page.locator("#document-file").set_input_files([document])
        expect(page.locator("#document")).to_contain_text(f"page{i}_de.html is ready.")
        with page.expect_download() as download:
            page.locator("#document").get_by_role("link", name="Download").click()
        made = Path(download.value.path()).read_bytes()
        assert made == translate_file(server, "a.html", html.encode())
