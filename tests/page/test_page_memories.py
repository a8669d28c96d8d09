"""Memories on the page: making, filling, fitting and looking through them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from browser import Open
from playwright.sync_api import Locator, Page, expect
from running import RunningServer

from tiny import ENGLISH, GERMAN


def drawer(page: Page, name: str) -> Locator:
    return page.get_by_role("dialog", name=name)


def tsv(rows: list[tuple[str, str]]) -> bytes:
    return "\n".join(["source\ttarget", *(f"{s}\t{t}" for s, t in rows)]).encode()


def choose_file(page: Page, name: str, content: bytes) -> None:
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Choose a file").click()
    chooser.value.set_files([{"name": name, "mimeType": "application/octet-stream", "buffer": content}])


def test_the_drawer_lists_memories_with_their_sizes_and_fits(page: Page) -> None:
    page.get_by_role("link", name="Memories").click()
    row = drawer(page, "Memories").get_by_role("listitem").filter(has_text="House style")
    expect(row).to_contain_text("en → de")
    expect(row).to_contain_text("not fitted")
    expect(row.get_by_role("cell", name="3", exact=True)).to_be_visible()
    page.keyboard.press("Escape")
    expect(drawer(page, "Memories")).to_be_hidden()
    expect(page.get_by_role("link", name="Memories")).to_be_focused()


def test_a_memory_is_made_filled_switched_on_and_off_renamed_and_deleted(
    page: Page, server: RunningServer
) -> None:
    page.get_by_role("link", name="Memories").click()
    page.get_by_label("Name").fill("Made here")
    page.get_by_role("button", name="Create").click()
    made = drawer(page, "Made here")
    made.get_by_text("Add an example").click()
    made.get_by_label("English", exact=True).fill("the sea")
    made.get_by_label("German", exact=True).fill("die See")
    made.get_by_role("button", name="Add", exact=True).click()
    expect(made.get_by_role("region", name="Examples").get_by_role("listitem")).to_contain_text("die See")
    expect(made.get_by_role("region", name="Sizes")).to_contain_text("1 example")

    made.get_by_text("Name, use, export, deletion").click()
    automatic = made.get_by_label("Serves translations that name no memory")
    expect(automatic).not_to_be_checked()  # a memory is used where it was chosen
    automatic.check()
    expect(page.locator("#notices")).to_contain_text("automatically")
    automatic.uncheck()
    expect(page.locator("#notices")).to_contain_text("on request only")
    made.get_by_label("Name", exact=True).fill("Renamed")
    made.get_by_role("button", name="Rename").click()
    made = drawer(page, "Renamed")
    made.get_by_text("Name, use, export, deletion").click()
    (now,) = [m for m in server.http.get("/v1/memories").json() if m["name"] == "Renamed"]
    assert (now["automatic"], now["segments"]) == (False, 1)
    with page.expect_download() as download:
        made.get_by_role("button", name="Export en-de as TMX").click()
    assert "die See" in Path(download.value.path()).read_text(encoding="utf-8")

    made.get_by_role("button", name="Delete this memory").click()
    expect(made).to_contain_text("for good?")
    made.get_by_role("button", name="Delete", exact=True).click()
    left = drawer(page, "Memories").get_by_role("listitem")
    expect(left.filter(has_text="House style")).to_be_visible()
    expect(left.filter(has_text="Renamed")).to_have_count(0)
    assert "Renamed" not in [m["name"] for m in server.http.get("/v1/memories").json()]


def test_a_file_is_uploaded_with_progress_and_a_report_of_what_was_rejected(
    open_page: Open, memory: int, server: RunningServer
) -> None:
    page = open_page(f"/#/memory/{memory}")
    content = tsv([*zip(ENGLISH, GERMAN, strict=True), (ENGLISH[0], GERMAN[0]), ("only one side", "")])
    page.evaluate(
        """window.bars = 0;
        new MutationObserver(() => { bars += document.querySelectorAll("progress").length; })
            .observe(document.body, {childList: true, subtree: true});"""
    )
    choose_file(page, "mine.tsv", content)
    region = page.get_by_role("region", name="Import")
    expect(region).to_contain_text("mine.tsv: 12 added, 1 there already, 1 rejected")
    rejected = page.get_by_role("region", name="Rejected units")
    expect(rejected.get_by_role("cell").first).to_have_text("15")
    assert page.evaluate("bars") > 0
    expect(page.get_by_role("region", name="Sizes")).to_contain_text("12 examples")
    expect(page.get_by_role("region", name="Examples").get_by_role("listitem")).to_have_count(12)
    assert server.http.get(f"/v1/memories/{memory}").json()["segments"] == 12


def test_a_dropped_file_is_taken_and_changes_the_translation_at_once(open_page: Open, memory: int) -> None:
    page = open_page("/")
    page.get_by_label("Memory", exact=True).select_option(str(memory))
    page.get_by_label("Text to translate").fill("the old sea")
    expect(page.locator("#adapted-origin")).to_contain_text("Fresh has no examples for this pair yet")
    page.goto(f"/#/memory/{memory}")
    content = tsv([("the old sea", "die alte See")]).decode()
    transfer = page.evaluate_handle(
        "(content) => { const given = new DataTransfer(); given.items.add(new File([content], 'a.tsv'));"
        " return given; }",
        content,
    )
    page.locator(".drop").dispatch_event("drop", {"dataTransfer": transfer})
    expect(page.get_by_role("region", name="Import")).to_contain_text("1 added")
    expect(page.locator("#adapted")).to_have_text("die alte See")


def test_a_broken_file_says_why_and_changes_nothing(
    open_page: Open, memory: int, server: RunningServer
) -> None:
    page = open_page(f"/#/memory/{memory}")
    choose_file(page, "broken.tmx", b'<?xml version="1.0"?><tmx version="1.4"><body><tu>')
    region = page.get_by_role("region", name="Import")
    expect(region).to_contain_text("broken.tmx")
    expect(region).to_contain_text("nothing was imported")
    choose_file(page, "notes.doc", b"x")
    expect(region).to_contain_text(".tmx")
    assert server.http.get(f"/v1/memories/{memory}").json()["segments"] == 0


def test_examples_are_searched_deleted_and_put_back(
    open_page: Open, memory: int, server: RunningServer
) -> None:
    rows = list(zip(ENGLISH, GERMAN, strict=True)) * 2
    numbered = [(f"{s} {n}", f"{t} {n}") for n, (s, t) in enumerate(rows)]
    upload = {"file": ("more.tsv", tsv(numbered))}
    answer = server.http.post(f"/v1/memories/{memory}/import", files=upload, data={"pair": "en-de"})
    server.finished(answer.json())
    page = open_page(f"/#/memory/{memory}")
    region = page.get_by_role("region", name="Examples")
    expect(region.get_by_role("listitem")).to_have_count(20)
    region.get_by_role("button", name="Show more").click()
    expect(region.get_by_role("listitem")).to_have_count(24)
    region.get_by_label("Search examples").fill("KAFFEE")
    expect(region.get_by_role("listitem")).to_have_count(2)
    region.get_by_role("button", name="Delete").first.click()
    expect(region.get_by_role("listitem")).to_have_count(1)
    page.get_by_role("button", name="Undo").click()
    expect(region.get_by_role("listitem")).to_have_count(2)
    region.get_by_role("link", name="Edit").first.click()
    expect(page.get_by_label("German")).to_have_value("wir trinken jeden Morgen um sieben Kaffee 19")
    page.get_by_role("link", name="Back").click()
    expect(page.get_by_role("region", name="Sizes")).to_contain_text("24 examples")


def test_a_fit_draws_its_curve_while_it_runs_and_ends_with_a_report(
    open_page: Open, memory: int, server: RunningServer
) -> None:
    rows = [(f"{s} {n}", f"{t} {n}") for n in range(4) for s, t in zip(ENGLISH, GERMAN, strict=True)]
    upload = {"file": ("more.tsv", tsv(rows))}
    answer = server.http.post(f"/v1/memories/{memory}/import", files=upload, data={"pair": "en-de"})
    server.finished(answer.json())
    page = open_page(f"/#/memory/{memory}")
    page.evaluate(
        """window.curves = new Set();
        new MutationObserver(() => {
            const line = document.querySelector(".curve .dev");
            if (line) curves.add(line.getAttribute("points"));
        }).observe(document.body, {childList: true, subtree: true});"""
    )
    region = page.get_by_role("region", name="Fit")
    region.get_by_text("Settings").click()
    region.get_by_label("Steps at most").fill("80")
    region.get_by_role("button", name="Start the fit").click()
    expect(region.get_by_role("row", name="KSTER")).to_be_visible(timeout=120_000)
    expect(region.get_by_role("img")).to_have_attribute("aria-label", re.compile(r"after \d+ steps"))
    assert page.evaluate("curves.size") >= 2  # it grew while one looked
    expect(page.get_by_role("region", name="Sizes").get_by_text("fitted", exact=True)).to_be_visible()
    result = server.http.get(f"/v1/memories/{memory}/jobs").json()[0]["result"]
    expect(region.get_by_role("row", name="KSTER")).to_contain_text(f"{result['dev']['kster']:.3f}")
    expect(region.get_by_role("row", name="Base model")).to_contain_text(f"{result['dev']['base']:.3f}")
    expect(page.locator("#notices")).to_contain_text("Fresh is fitted")

    page.goto("/#/memories")
    expect(page.get_by_role("listitem").filter(has_text="Fresh")).to_contain_text("loss")
    page.set_viewport_size({"width": 360, "height": 700})
    too_wide = "[...document.querySelectorAll('.panel')].filter((p) => p.scrollWidth > p.clientWidth).length"
    assert page.evaluate(too_wide) == 0
    page.goto(f"/#/memory/{memory}")  # the report is still there
    expect(region.get_by_role("row", name="KSTER")).to_contain_text(f"{result['dev']['kster']:.3f}")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_running_fit_has_a_readable_button_that_cancels_it(
    open_page: Open, memory: int, server: RunningServer, scheme: str
) -> None:
    rows = [(f"{s} {n}", f"{t} {n}") for n in range(4) for s, t in zip(ENGLISH, GERMAN, strict=True)]
    upload = {"file": ("more.tsv", tsv(rows))}
    answer = server.http.post(f"/v1/memories/{memory}/import", files=upload, data={"pair": "en-de"})
    server.finished(answer.json())
    page = open_page(f"/#/memory/{memory}", color_scheme=scheme)
    region = page.get_by_role("region", name="Fit")
    region.get_by_text("Settings").click()
    region.get_by_label("Steps at most").fill("10000")
    region.get_by_role("button", name="Start the fit").click()
    cancel = region.get_by_role("button", name="Cancel the fit")
    expect(cancel).to_have_text("Cancel the fit")
    shown = cancel.evaluate(
        "button => [getComputedStyle(button).color, getComputedStyle(button).backgroundColor]"
    )
    assert shown[0] != shown[1]
    cancel.click()
    expect(region).to_contain_text("The fit was cancelled", timeout=60_000)
    assert server.http.get(f"/v1/memories/{memory}/jobs").json()[0]["state"] == "cancelled"


def test_a_fit_of_an_empty_memory_says_what_is_missing(open_page: Open, memory: int) -> None:
    page = open_page(f"/#/memory/{memory}")
    region = page.get_by_role("region", name="Fit")
    region.get_by_role("button", name="Start the fit").click()
    expect(region.get_by_role("alert")).to_contain_text("no examples")


def test_a_link_to_what_is_not_there_says_so(open_page: Open) -> None:
    page = open_page("/#/memory/999")
    expect(page.get_by_role("dialog").get_by_role("alert")).to_contain_text("No memory 999")


def test_a_memory_that_somebody_deleted_is_reported_in_the_servers_words(
    open_page: Open, server: RunningServer
) -> None:
    made = server.http.post("/v1/memories", json={"name": "Short-lived"}).json()["id"]
    page = open_page("/")
    page.get_by_label("Memory", exact=True).select_option(str(made))
    server.http.delete(f"/v1/memories/{made}")
    page.get_by_label("Text to translate").fill(ENGLISH[0])
    expect(page.get_by_role("alert").filter(has_text=f"No memory {made}.")).to_be_visible()
    page.get_by_label("Memory", exact=True).select_option("auto")
    expect(page.locator("#adapted")).to_have_text(GERMAN[0])


def test_an_import_is_cancelled_and_adds_nothing(open_page: Open, memory: int, server: RunningServer) -> None:
    rows = [(f"{s} {n}", f"{t} {n}") for n in range(5_000) for s, t in zip(ENGLISH, GERMAN, strict=True)]
    upload = {"file": ("many.tsv", tsv(rows))}
    page = open_page(f"/#/memory/{memory}")  # a browser that starts takes as long as the import
    region = page.get_by_role("region", name="Import")
    expect(region).to_be_visible()
    job = server.http.post(f"/v1/memories/{memory}/import", files=upload, data={"pair": "en-de"}).json()
    page.reload()
    region.get_by_role("button", name="Cancel the import").click()
    expect(region).to_contain_text("many.tsv was cancelled; nothing was added.")
    expect(region.get_by_role("button", name="Cancel the import")).to_have_count(0)
    assert server.http.get(f"/v1/jobs/{job['id']}").json()["state"] == "cancelled"
    assert server.http.get(f"/v1/memories/{memory}").json()["segments"] == 0
