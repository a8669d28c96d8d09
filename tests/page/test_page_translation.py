"""Translating on the page: as you type, word by word, and teaching it."""

from __future__ import annotations

import pytest
from browser import Open
from playwright.sync_api import Page, Route, expect
from running import RunningServer

from tiny import ENGLISH, GERMAN

NEW = ("the green bird reads a book", "der grüne Vogel liest ein Buch")


def write(page: Page, text: str) -> None:
    page.get_by_label("Text to translate").fill(text)


def test_a_text_is_translated_while_it_is_written_and_shown_beside_the_base_model(page: Page) -> None:
    page.get_by_label("Text to translate").press_sequentially(ENGLISH[0], delay=5)
    expect(page.locator("#adapted")).to_have_text(GERMAN[0])
    expect(page.locator("#base")).to_have_text(GERMAN[0])
    expect(page.locator("#adapted-origin")).to_contain_text("House style")
    expect(page.locator("#spoken")).to_contain_text(GERMAN[0])


def test_the_best_match_is_shown_with_what_differs_and_leads_to_its_segment(page: Page) -> None:
    match = page.get_by_role("group", name="Best match in the memory")
    write(page, ENGLISH[0].replace("red", "old"))
    expect(match).to_contain_text("85 % match")
    expect(match).to_contain_text(GERMAN[0])
    expect(match.locator("del")).to_have_text("red")
    expect(match.locator("ins")).to_have_text("old")
    write(page, "nothing like that")
    expect(match).to_be_hidden()
    write(page, ENGLISH[0])
    expect(match).to_contain_text("100 % match")
    expect(page.locator("#adapted")).to_have_text(GERMAN[0])
    match.get_by_role("link").click()
    expect(page.locator("#segment-source")).to_have_value(ENGLISH[0])


def test_an_answer_that_comes_too_late_is_not_shown(page: Page) -> None:
    held = []

    def hold(route: object) -> None:
        """Keeps the first request until the text has changed, then lets it pass."""
        if not held:
            held.append(route)
        else:
            route.continue_()  # type: ignore[attr-defined]

    page.route("**/v1/translate", hold)
    write(page, ENGLISH[0])
    while not held:
        page.wait_for_timeout(20)
    page.evaluate(
        """window.seen = [];
        const adapted = document.getElementById("adapted");
        new MutationObserver(() => seen.push(adapted.textContent)).observe(adapted, {childList: true});"""
    )
    write(page, ENGLISH[1])
    held[0].continue_()
    expect(page.locator("#adapted")).to_have_text(GERMAN[1])
    assert page.evaluate("seen") == [GERMAN[1]]


def test_a_text_written_before_the_page_is_ready_is_asked_for_once(page: Page) -> None:
    asked: list[str] = []
    held: list[Route] = []
    expect(page.get_by_label("From", exact=True)).to_have_value("en")
    page.on("request", lambda request: asked.append(request.url))
    page.route("**/v1/memories", lambda route: held.append(route))
    page.reload()
    while not held:
        page.wait_for_timeout(20)
    write(page, ENGLISH[0])
    held[0].continue_()
    expect(page.locator("#adapted")).to_have_text(GERMAN[0])
    page.wait_for_timeout(600)
    assert sum(url.endswith("/v1/translate") for url in asked) == 1


def test_an_empty_text_shows_no_translation(page: Page) -> None:
    write(page, ENGLISH[0])
    expect(page.locator("#adapted")).to_have_text(GERMAN[0])
    page.get_by_role("button", name="Clear").click()
    expect(page.locator("#adapted .word")).to_have_count(0)
    expect(page.get_by_role("button", name="Edit and teach")).to_be_hidden()


def test_line_breaks_stay(page: Page) -> None:
    write(page, f"{ENGLISH[0]}\n\n{ENGLISH[1]}")
    expect(page.locator("#adapted .word")).not_to_have_count(0)
    assert page.locator("#adapted").text_content() == f"{GERMAN[0]}\n\n{GERMAN[1]}"


def test_a_sentence_of_the_memory_can_be_tried_with_one_click(page: Page) -> None:
    page.get_by_role("button", name=ENGLISH[1]).click()
    expect(page.get_by_label("Text to translate")).to_have_value(ENGLISH[1])
    expect(page.locator("#adapted")).to_have_text(GERMAN[1])


@pytest.fixture
def memory(server: RunningServer) -> int:
    """An empty memory, which is deleted afterwards."""
    made = server.http.post("/v1/memories", json={"name": "Taught here"}).json()
    yield made["id"]
    server.http.delete(f"/v1/memories/{made['id']}")


def test_what_is_taught_shows_at_once_with_its_example_behind_every_word(
    memory: int, page: Page, server: RunningServer
) -> None:
    page.get_by_label("Memory", exact=True).select_option(str(memory))
    write(page, NEW[0])
    expect(page.locator("#adapted .word")).not_to_have_count(0)
    assert page.locator("#adapted").text_content() != NEW[1]
    page.get_by_role("button", name="Edit and teach").click()
    page.get_by_label("The translation as it should be").fill(NEW[1])
    expect(page.get_by_label("Teach it to")).to_have_value(str(memory))
    page.get_by_role("button", name="Teach", exact=True).click()
    expect(page.locator("#adapted")).to_have_text(NEW[1])
    expect(page.locator("#notices")).to_contain_text("Taught here has learned it")
    expect(page.locator("#adapted .word.changed")).not_to_have_count(0)
    expect(page.locator("#base .changed")).not_to_have_count(0)
    assert page.locator("#base").text_content() != NEW[1]

    page.locator("#adapted .word", has_text="Vogel").click()
    card = page.get_by_role("dialog", name="Where this word comes from")
    expect(card.get_by_role("heading", name="Taught by")).to_be_visible()
    expect(card.get_by_role("link").first).to_contain_text(NEW[1])
    expect(card.get_by_role("link").first).to_contain_text(NEW[0])
    expect(card.get_by_role("link").first).to_contain_text("Taught here")
    card.get_by_role("link").first.click()
    drawer = page.get_by_role("dialog", name="Taught here")
    expect(drawer.get_by_label("English")).to_have_value(NEW[0])
    drawer.get_by_label("German").fill("der grüne Vogel liest das Meer")
    drawer.get_by_role("button", name="Save").click()
    expect(page.locator("#notices")).to_contain_text("Saved")
    expect(page.locator("#adapted")).to_have_text("der grüne Vogel liest das Meer")

    drawer.get_by_role("button", name="Delete").click()
    expect(page.locator("#notices")).to_contain_text("deleted")
    page.keyboard.press("Escape")
    expect(page.locator("#adapted .word.changed")).to_have_count(0)
    assert server.http.get(f"/v1/memories/{memory}").json()["segments"] == 0


def test_of_a_text_with_several_lines_those_that_were_corrected_are_taught(
    memory: int, page: Page, server: RunningServer
) -> None:
    page.get_by_label("Memory", exact=True).select_option(str(memory))
    write(page, f"{ENGLISH[0]}\n\n{NEW[0]}")
    expect(page.locator("#adapted .word")).not_to_have_count(0)
    page.get_by_role("button", name="Edit and teach").click()
    page.get_by_label("The translation as it should be").fill(f"{GERMAN[0]}\n\n{NEW[1]}")
    page.get_by_role("button", name="Teach", exact=True).click()
    expect(page.locator("#notices")).to_contain_text("Taught here has learned it")
    expect(page.locator("#adapted")).to_have_text(f"{GERMAN[0]}\n\n{NEW[1]}")
    assert page.locator("#adapted").text_content() == f"{GERMAN[0]}\n\n{NEW[1]}"
    learned = server.http.get(f"/v1/memories/{memory}/segments").json()["segments"]
    assert [(segment["source"], segment["target"]) for segment in learned] == [NEW]


def test_teaching_without_a_memory_makes_one(open_page: Open, server: RunningServer) -> None:
    page = open_page("/")
    page.get_by_label("From", exact=True).select_option("de")
    expect(page.get_by_label("Into", exact=True)).to_have_value("en")
    page.get_by_label("Memory", exact=True).select_option("none")
    write(page, "das Kind")
    page.get_by_role("button", name="Edit and teach").click()
    page.get_by_label("The translation as it should be").fill("the child")
    page.get_by_label("Teach it to").select_option("new")
    page.keyboard.press("Tab")
    page.get_by_label("The translation as it should be").press("Control+Enter")
    expect(page.locator("#adapted")).to_have_text("the child")
    (made,) = [m for m in server.http.get("/v1/memories").json() if m["name"] == "My examples"]
    assert [pair["pair"] for pair in made["pairs"]] == ["de-en"]
    expect(page.get_by_label("Memory", exact=True)).to_have_value(str(made["id"]))
    server.http.delete(f"/v1/memories/{made['id']}")


def test_editing_can_be_given_up(page: Page) -> None:
    write(page, ENGLISH[0])
    page.get_by_role("button", name="Edit and teach").click()
    page.get_by_label("The translation as it should be").fill("something else")
    page.keyboard.press("Escape")
    expect(page.locator("#adapted")).to_have_text(GERMAN[0])
    expect(page.get_by_role("button", name="Edit and teach")).to_be_focused()


def test_languages_are_swapped_with_the_text(page: Page) -> None:
    write(page, ENGLISH[0])
    expect(page.locator("#adapted")).to_have_text(GERMAN[0])
    page.get_by_role("button", name="Swap languages").click()
    expect(page.get_by_label("From", exact=True)).to_have_value("de")
    expect(page.get_by_label("Text to translate")).to_have_value(GERMAN[0])
    expect(page.locator("#adapted-origin")).to_contain_text("no memory has examples for this pair")


def test_no_memory_means_the_base_model(page: Page) -> None:
    page.get_by_label("Memory", exact=True).select_option("none")
    write(page, ENGLISH[0])
    expect(page.locator("#adapted")).to_have_text(GERMAN[0])
    expect(page.locator("#adapted-origin")).to_contain_text("no memory chosen")
    expect(page.locator("#in-use")).to_have_text("No memory in use: the base model alone translates.")
    page.locator("#adapted .word").first.click()
    expect(page.locator("#inspector")).to_contain_text("The base model alone decided this.")


def test_pointing_at_a_word_gives_a_hint_and_a_click_its_card_which_covers_no_button(page: Page) -> None:
    write(page, ENGLISH[0])
    word = page.locator("#adapted .word", has_text="Haus")
    card = page.locator("#inspector")
    word.hover()
    expect(page.get_by_role("tooltip")).to_contain_text("Click shows more.")
    expect(card).to_be_hidden()
    word.click()
    expect(page.get_by_role("tooltip")).to_be_hidden()
    expect(card.get_by_role("heading", name="Taught by")).to_be_visible()
    expect(card.get_by_role("link").first).to_contain_text(GERMAN[0])
    expect(card.get_by_text("Mixing weight λ")).to_be_hidden()  # what taught it comes first
    card.get_by_text("Details").click()
    for fact in ("Mixing weight λ", "Bandwidth σ", "distance"):
        expect(card.get_by_text(fact).first).to_be_visible()
    page.mouse.move(5, 5)
    expect(card).to_be_visible()
    page.get_by_role("button", name="Edit and teach").click()  # Playwright clicks only what nothing covers
    expect(page.get_by_label("The translation as it should be")).to_be_focused()
    expect(card).to_be_hidden()


def test_the_page_says_which_memories_are_in_use_and_lets_another_be_chosen(
    memory: int, page: Page, server: RunningServer
) -> None:
    in_use = page.locator("#in-use")
    expect(in_use).to_have_text("In use: House style (3 examples)")
    server.http.post(
        f"/v1/memories/{memory}/segments", json={"source": NEW[0], "target": NEW[1], "pair": "en-de"}
    )
    page.get_by_role("link", name="Memories").click()
    rows = page.get_by_role("dialog", name="Memories").get_by_role("listitem")
    expect(rows.filter(has_text="House style").get_by_text("in use")).to_be_visible()
    rows.filter(has_text="Taught here").get_by_role("button", name="Translate with it").click()
    expect(in_use).to_have_text("In use: Taught here (1 example)")
    expect(page.get_by_label("Memory", exact=True)).to_have_value(str(memory))
    page.get_by_label("From", exact=True).select_option("de")
    expect(in_use).to_have_text("Taught here has no examples for de → en yet.")
