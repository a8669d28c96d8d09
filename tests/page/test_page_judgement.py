"""How sure a translation is, what else it could have been, and the terms it must keep."""

from __future__ import annotations

from browser import Open
from playwright.sync_api import expect
from running import RunningServer

from tiny import ENGLISH, GERMAN


def test_doubtful_words_are_marked_and_an_alternative_can_be_taken(open_page: Open) -> None:
    page = open_page()
    page.fill("#source-text", "xeno pfft hrmpf")
    expect(page.locator("#confidence")).to_contain_text("Confidence")
    expect(page.locator("#confidence")).to_contain_text("to look at")
    assert page.locator("#adapted .word.doubtful").count() > 0
    page.click("#alternatives summary")
    first = page.locator("#alternative-list button").first
    wanted = first.inner_text()
    first.click()
    expect(page.locator("#teach-text")).to_have_value(wanted)
    page.click("#teach-cancel")
    expect(page.locator("#adapted")).to_be_visible()
    page.fill("#source-text", "")
    expect(page.locator("#confidence")).to_be_hidden()
    expect(page.locator("#alternatives")).to_be_hidden()


def test_a_marked_word_becomes_a_term_that_is_kept_until_it_is_removed(
    open_page: Open, server: RunningServer
) -> None:
    text = ENGLISH[5]  # … while the machine is hot
    page = open_page()
    page.fill("#source-text", text)
    expect(page.locator("#adapted")).to_have_text(GERMAN[5])
    at = text.index("machine")
    page.evaluate(
        "([from, to]) => document.getElementById('source-text').setSelectionRange(from, to)",
        [at, at + len("machine")],
    )
    page.click("#add-term")
    expect(page.locator("#term-source")).to_have_value("machine")
    page.fill("#term-target", "Wassermaschine")
    page.click("#drawer button.strong")
    row = page.locator("#drawer tr", has_text="Wassermaschine")
    expect(row).to_be_visible()
    expect(page.locator("#adapted")).to_contain_text("Wassermaschine")
    (base,) = server.http.get("/v1/terms").json()
    assert (base["pair"], base["terms"], base["automatic"]) == ("en-de", 1, True)
    row.get_by_role("button", name="Remove").click()
    expect(row).to_have_count(0)
    expect(page.locator("#adapted")).to_have_text(GERMAN[5])
    server.http.delete(f"/v1/terms/{base['id']}")
