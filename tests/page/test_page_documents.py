"""Documents on the page: dropped or chosen, translated, downloaded; and the keys that the page knows."""

from __future__ import annotations

from pathlib import Path

from browser import Open
from playwright.sync_api import Page, Route, expect

from tiny import ENGLISH, GERMAN


def test_a_dropped_document_is_translated_with_the_chosen_memory_and_downloaded(page: Page) -> None:
    expect(page.locator("#in-use")).to_contain_text("House style")
    dropped = page.evaluate_handle(
        "(text) => { const given = new DataTransfer(); given.items.add(new File([text], 'manual.md'));"
        " return given; }",
        f"# {ENGLISH[0]}\n\n- {ENGLISH[1]}\n",
    )
    with page.expect_request("**/v2/document") as asked:
        page.locator("#source").dispatch_event("drop", {"dataTransfer": dropped})
    assert 'name="kster_memories"' not in (asked.value.post_data or "")  # the automatic ones serve
    place = page.locator("#document")
    expect(place).to_contain_text("manual_de.md is ready.")
    with page.expect_download() as download:
        place.get_by_role("link", name="Download").click()
    assert download.value.suggested_filename == "manual_de.md"
    assert Path(download.value.path()).read_text(encoding="utf-8") == f"# {GERMAN[0]}\n\n- {GERMAN[1]}\n"
    place.get_by_role("button", name="Close").click()
    expect(place).to_be_hidden()


def test_a_long_document_says_how_far_it_is(page: Page) -> None:
    asked: list[Route] = []

    def at_first(route: Route) -> None:
        asked.append(route)
        if len(asked) == 1:
            route.fulfill(json={"document_id": "x", "status": "translating", "kster_progress": 0.4})

    page.route("**/v2/document/*", at_first)
    expect(page.get_by_label("Into", exact=True)).to_have_value("de")
    manual = {"name": "manual.txt", "mimeType": "text/plain", "buffer": ENGLISH[0].encode()}
    page.locator("#document-file").set_input_files([manual])
    expect(page.get_by_role("progressbar", name="Document")).to_have_attribute("value", "0.4")
    expect(page.locator("#document")).to_contain_text("(40 %)")
    while len(asked) < 2:
        page.wait_for_timeout(20)
    asked[1].continue_()
    expect(page.locator("#document")).to_contain_text("manual_de.txt is ready.")


def test_a_document_that_cannot_be_translated_says_why(open_page: Open) -> None:
    page = open_page("/")
    page.get_by_label("Memory", exact=True).select_option("none")
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Translate a document").click()
    chooser.value.set_files([{"name": "sound.wav", "mimeType": "audio/wav", "buffer": b"RIFF"}])
    expect(page.locator("#document")).to_contain_text("Invalid file type")
    expect(page.locator("#document")).to_contain_text(".docx")


def test_keys_are_listed_and_the_text_goes_over_to_its_correction(page: Page) -> None:
    page.get_by_role("button", name="Keyboard").click()
    listed = page.get_by_role("dialog", name="Keyboard")
    expect(listed).to_contain_text("correct the translation")
    page.keyboard.press("Escape")
    expect(listed).to_be_hidden()
    text = page.get_by_label("Text to translate")
    text.fill(ENGLISH[0])
    expect(page.locator("#adapted")).to_have_text(GERMAN[0])
    text.press("Control+Enter")
    expect(page.get_by_label("The translation as it should be")).to_be_focused()
