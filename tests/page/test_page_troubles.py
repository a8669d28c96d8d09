"""What the page says when something is wrong: keys, limits, a server that is gone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import PATIENCE, Watch
from playwright.sync_api import Browser, Page, expect
from running import RunningServer, start

from tiny import ENGLISH, GERMAN


@pytest.fixture(scope="module")
def keyed(taught_marian: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server that wants keys and takes little."""
    from kster.server.auth.keys import Keys
    from kster.server.database import ServerDatabase

    directory = tmp_path_factory.mktemp("troubles")
    data = directory / "data"
    data.mkdir()
    database = ServerDatabase(data)
    keys = {scope: Keys(database).add(scope, scope)[1] for scope in ("read", "write")}
    database.close()
    config = directory / "server.yaml"
    config.write_text(
        f"models: [{taught_marian}]\nrequire_keys: true\nmax_characters: 120\nmax_upload_mb: 0.01\n"
    )
    running = start(data, "--config", str(config))
    running.keys = keys  # type: ignore[attr-defined]
    yield running
    assert running.stop() == 0


@pytest.fixture
def troubled(browser: Browser, keyed: RunningServer) -> Iterator[Page]:
    """The page of that server; whatever is refused, nothing may be thrown and nothing asked elsewhere."""
    watch = Watch(keyed.url)
    context = browser.new_context(base_url=keyed.url)
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    expect.set_options(timeout=PATIENCE)
    watch.over(page)
    page.goto("/")
    yield page
    context.close()
    assert watch.errors == []
    assert watch.elsewhere == []


def enter_key(page: Page, key: str) -> None:
    dialog = page.get_by_role("dialog", name="API key")
    dialog.get_by_label("Key", exact=True).fill(key)
    dialog.get_by_role("button", name="Use this key").click()


def test_a_key_is_asked_for_refused_if_wrong_and_used_if_right(troubled: Page, keyed: RunningServer) -> None:
    dialog = troubled.get_by_role("dialog", name="API key")
    expect(dialog).to_be_visible()
    enter_key(troubled, "kster_wrong")
    expect(dialog.get_by_role("alert")).to_contain_text("does not know this key")
    enter_key(troubled, keyed.keys["write"])  # type: ignore[attr-defined]
    expect(dialog).to_be_hidden()
    troubled.get_by_label("Text to translate").fill(ENGLISH[0])
    expect(troubled.locator("#adapted")).to_have_text(GERMAN[0])
    troubled.reload()  # it is kept for this tab
    expect(troubled.get_by_label("From", exact=True)).to_have_value("en")
    expect(dialog).to_be_hidden()
    troubled.get_by_role("button", name="Key", exact=True).click()
    dialog.get_by_role("button", name="Forget the key").click()
    expect(dialog).to_be_visible()


def test_a_key_that_may_only_read_is_told_so_before_it_tries(troubled: Page, keyed: RunningServer) -> None:
    enter_key(troubled, keyed.keys["read"])  # type: ignore[attr-defined]
    troubled.get_by_label("Text to translate").fill(ENGLISH[0])
    expect(troubled.locator("#adapted")).to_have_text(GERMAN[0])
    expect(troubled.get_by_role("button", name="Edit and teach")).to_be_disabled()
    expect(troubled.get_by_text("This key may only read.")).to_be_visible()
    troubled.get_by_role("link", name="Memories").click()
    expect(troubled.get_by_role("button", name="Create")).to_have_count(0)


def test_the_history_of_an_example_names_the_key_that_changed_it(
    troubled: Page, keyed: RunningServer
) -> None:
    enter_key(troubled, keyed.keys["write"])  # type: ignore[attr-defined]
    troubled.get_by_role("link", name="Memories").click()
    troubled.get_by_label("Name").fill("Signed")
    troubled.get_by_role("button", name="Create").click()
    troubled.get_by_text("Add an example").click()
    troubled.get_by_label("English", exact=True).fill("the sea")
    troubled.get_by_label("German", exact=True).fill("die See")
    troubled.get_by_role("button", name="Add", exact=True).click()
    troubled.get_by_role("link", name="Edit the sea").click()
    troubled.get_by_role("button", name="Reject the sea").click()
    history = troubled.get_by_role("region", name="History").get_by_role("listitem")
    expect(history.filter(has_text="Rejected: this example")).to_contain_text("· write")
    expect(history.filter(has_text="Added: this example")).to_contain_text("· write")


def test_a_text_that_is_too_long_says_what_the_limit_is(troubled: Page, keyed: RunningServer) -> None:
    enter_key(troubled, keyed.keys["read"])  # type: ignore[attr-defined]
    troubled.get_by_label("Text to translate").fill(ENGLISH[0] * 5)
    expect(troubled.get_by_role("alert").filter(has_text="at most 120")).to_be_visible()
    troubled.get_by_label("Text to translate").fill(ENGLISH[0])
    expect(troubled.locator("#adapted")).to_have_text(GERMAN[0])


def test_a_file_that_is_too_large_is_not_sent(troubled: Page, keyed: RunningServer) -> None:
    enter_key(troubled, keyed.keys["write"])  # type: ignore[attr-defined]
    expect(
        troubled.get_by_role("dialog", name="API key")
    ).to_be_hidden()  # what waited for it draws the view anew
    troubled.get_by_role("link", name="Memories").click()
    troubled.get_by_label("Name").fill("Small")
    troubled.get_by_role("button", name="Create").click()
    with troubled.expect_file_chooser() as chooser:
        troubled.get_by_role("button", name="Choose a file").click()
    large = {"name": "large.tsv", "mimeType": "text/plain", "buffer": b"x" * 20_000}
    chooser.value.set_files([large])
    expect(troubled.get_by_role("region", name="Import")).to_contain_text("at most 10 kB")


def test_a_server_that_is_gone_is_noticed_and_so_is_its_return(troubled: Page, keyed: RunningServer) -> None:
    enter_key(troubled, keyed.keys["read"])  # type: ignore[attr-defined]
    troubled.get_by_label("Text to translate").fill(ENGLISH[0])
    expect(troubled.locator("#adapted")).to_have_text(GERMAN[0])
    assert keyed.stop() == 0
    troubled.get_by_label("Text to translate").fill(ENGLISH[1])
    banner = troubled.get_by_role("alert").filter(has_text="What you wrote is still here")
    expect(banner).to_be_visible()
    config = keyed.data.parent / "server.yaml"
    again = start(keyed.data, "--config", str(config), port=int(keyed.url.rpartition(":")[2]))
    keyed.process, keyed.http = again.process, again.http
    expect(banner).to_be_hidden()
    expect(troubled.locator("#adapted")).to_have_text(GERMAN[1])
