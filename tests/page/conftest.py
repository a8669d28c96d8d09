"""A server, a browser, and pages opened in it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "server"))

from browser import PATIENCE, Open, Watch, launch
from playwright.sync_api import Browser, Page, expect, sync_playwright
from running import RunningServer, start

from tiny import ENGLISH, GERMAN, make_marian


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Of one module: while Playwright is at work, nothing else in this process can use asyncio."""
    with sync_playwright() as running:
        launched = launch(running)
        yield launched
        launched.close()


@pytest.fixture(scope="session")
def backwards(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model from German to English that knows nothing."""
    directory = make_marian(tmp_path_factory.mktemp("backwards"), seed=1)
    config = directory / "tokenizer_config.json"
    content = json.loads(config.read_text())
    config.write_text(json.dumps({**content, "source_lang": "de", "target_lang": "en"}))
    return directory


@pytest.fixture(scope="session")
def server(
    taught_marian: Path, backwards: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningServer]:
    """A server for oneself, with two language pairs and one memory that serves automatically."""
    data = tmp_path_factory.mktemp("page") / "data"
    running = start(data, "--model", str(taught_marian), "--model", str(backwards))
    made = running.http.post("/v1/memories", json={"name": "House style", "automatic": True}).json()
    for source, target in list(zip(ENGLISH, GERMAN, strict=True))[:3]:
        example = {"source": source, "target": target, "pair": "en-de"}
        running.http.post(f"/v1/memories/{made['id']}/segments", json=example)
    yield running
    assert running.stop() == 0
    assert "Traceback" not in running.log.read_text()


@pytest.fixture
def memory(server: RunningServer) -> Iterator[int]:
    """An empty memory, which is deleted afterwards."""
    made = server.http.post("/v1/memories", json={"name": "Fresh"}).json()
    yield made["id"]
    server.http.delete(f"/v1/memories/{made['id']}")


@pytest.fixture
def watch(server: RunningServer) -> Watch:
    return Watch(server.url)


@pytest.fixture
def open_page(browser: Browser, server: RunningServer, watch: Watch) -> Iterator[Open]:
    """Opens the page in a window of its own; keywords are those of a browser context."""
    contexts = []

    def opened(address: str = "/", **settings: object) -> Page:
        context = browser.new_context(base_url=server.url, reduced_motion="reduce", **settings)  # type: ignore[arg-type]
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        expect.set_options(timeout=PATIENCE)
        watch.over(page)
        page.goto(address)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert watch.errors == []
    assert watch.elsewhere == []


@pytest.fixture
def page(open_page: Open, watch: Watch) -> Iterator[Page]:
    """The page as it opens on a desk; nothing may be refused to it."""
    yield open_page("/")
    assert watch.refusals == []
