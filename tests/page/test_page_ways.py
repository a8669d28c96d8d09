"""Ways of using the page: by keyboard alone, on a phone, in the dark."""

from __future__ import annotations

import json

from browser import Open
from playwright.sync_api import Page, expect
from running import RunningServer

from tiny import ENGLISH, GERMAN

PHONE = {
    "viewport": {"width": 375, "height": 740},
    "has_touch": True,
    "is_mobile": True,
    "device_scale_factor": 2,
}
# The page's own colours as the browser computed them, with the ratio of luminances that WCAG asks for.
CONTRAST = """(selectors) => selectors.map((selector) => {
    const parse = (colour) => {
        const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
        canvas.fillStyle = colour;
        canvas.fillRect(0, 0, 1, 1);
        return [...canvas.getImageData(0, 0, 1, 1).data];
    };
    const light = (colour) => {
        const [r, g, b] = colour.slice(0, 3).map((c) => c / 255)
            .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const shown = document.querySelector(selector);
    let behind = shown;
    while (parse(getComputedStyle(behind).backgroundColor)[3] === 0) behind = behind.parentElement;
    const [text, ground] = [getComputedStyle(shown).color, getComputedStyle(behind).backgroundColor];
    const [low, high] = [light(parse(text)), light(parse(ground))].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
})"""
READ = [
    "body",
    ".motto",
    ".choice label",
    "#adapted .word",
    "#base",
    ".origin",
    ".legend",
    ".sample",
    "#edit",
    "#open-memories",
    "#source-count",
    ".colophon a",
    "#inspector .verdict",
    "#inspector dt",
    "#inspector .facts",
    "#inspector .weight",
    "#inspector summary",
    "#in-use",
]


def test_the_keyboard_alone_translates_inspects_corrects_and_teaches(
    page: Page, server: RunningServer
) -> None:
    press = page.keyboard.press
    expect(page.get_by_label("From", exact=True)).to_have_value("en")
    press("Tab")
    expect(page.get_by_role("link", name="To the text")).to_be_focused()
    press("Enter")
    expect(page.get_by_label("Text to translate")).to_be_focused()
    page.keyboard.type(ENGLISH[0])
    expect(page.locator("#adapted")).to_have_text(GERMAN[0])

    for _ in ("Translate a document", "Clear", "the first word"):
        press("Tab")
    words = page.locator("#adapted .word")
    card = page.locator("#inspector")
    expect(words.nth(0)).to_be_focused()
    expect(page.get_by_role("tooltip")).to_contain_text("Enter shows more.")
    press("ArrowRight")
    expect(words.nth(1)).to_be_focused()
    expect(card).to_be_hidden()
    press("End")
    expect(words.last).to_be_focused()
    press("Enter")
    expect(card.get_by_role("heading", level=2)).to_have_text("Fluss")
    expect(card.get_by_role("link").first).to_be_focused()
    press("Escape")
    expect(card).to_be_hidden()
    expect(words.last).to_be_focused()

    press("Enter")
    press("Enter")
    drawer = page.get_by_role("dialog", name="House style")
    expect(drawer.get_by_label("German")).to_be_visible()
    expect(drawer.get_by_role("heading", name="House style")).to_be_focused()
    press("Escape")
    expect(drawer).to_be_hidden()
    expect(words.last).to_be_focused()

    press("Tab")
    expect(page.get_by_role("link", name="100 % match")).to_be_focused()
    press("Tab")
    expect(page.locator("#alternatives summary")).to_be_focused()
    press("Tab")
    expect(page.get_by_role("button", name="Edit and teach")).to_be_focused()
    press("Enter")
    expect(page.get_by_label("The translation as it should be")).to_be_focused()
    press("Control+a")
    page.keyboard.type("das rote Haus am Fluss")
    press("Control+Enter")
    expect(page.locator("#adapted")).to_have_text("das rote Haus am Fluss")

    found = server.http.get("/v1/memories/1/segments", params={"query": "das rote Haus am Fluss"}).json()
    for segment in found["segments"]:
        server.http.delete(f"/v1/memories/1/segments/{segment['id']}")


def test_the_focus_can_be_seen(page: Page) -> None:
    page.keyboard.press("Tab")
    for _ in range(4):
        page.keyboard.press("Tab")
        width = page.evaluate("getComputedStyle(document.activeElement).outlineWidth")
        assert float(width.removesuffix("px")) >= 2


def test_landmarks_and_names_are_there(page: Page) -> None:
    for role in ("banner", "main", "contentinfo", "navigation"):
        expect(page.get_by_role(role).first).to_be_visible()
    expect(page.get_by_role("heading", level=1)).to_have_text("Translate")
    assert page.evaluate("document.documentElement.lang") == "en"
    expect(page.locator("#source-text")).to_have_attribute("lang", "en")
    expect(page.locator("#adapted")).to_have_attribute("lang", "de")
    unnamed = page.evaluate(
        """[...document.querySelectorAll("input, select, textarea")]
            .filter((field) => !field.labels?.length && !field.ariaLabel).map((field) => field.outerHTML)"""
    )
    assert unnamed == []


def test_a_phone_has_everything_within_its_width_and_a_words_card_below_the_buttons(open_page: Open) -> None:
    page = open_page("/", **PHONE)
    page.get_by_label("Text to translate").fill(ENGLISH[0])
    expect(page.locator("#adapted")).to_have_text(GERMAN[0])
    fits = "document.documentElement.scrollWidth <= innerWidth"
    assert page.evaluate(fits)
    adapted, base = (page.locator(name).bounding_box() for name in (".sheet.adapted", ".sheet.base"))
    assert adapted["y"] + adapted["height"] <= base["y"]
    page.locator("#adapted .word", has_text="Haus").tap()
    card = page.locator("#inspector")
    expect(card.get_by_role("heading", name="Taught by")).to_be_visible()
    box, above = card.bounding_box(), page.locator("#adapted-actions").bounding_box()
    assert box["y"] >= above["y"] + above["height"]  # in the page, not over it
    assert page.evaluate(fits)
    card.get_by_role("button", name="Close").tap()
    expect(card).to_be_hidden()
    page.get_by_role("link", name="Memories").tap()
    drawer = page.get_by_role("dialog", name="Memories")
    assert drawer.bounding_box()["width"] == 375
    drawer.get_by_role("link", name="House style").tap()
    expect(page.get_by_role("region", name="Examples").get_by_role("listitem")).not_to_have_count(0)
    assert page.evaluate(fits)
    assert page.evaluate("(d => d.scrollWidth <= d.clientWidth)(document.getElementById('drawer'))")


def test_light_and_dark_follow_the_system_until_chosen_and_can_be_read(open_page: Open) -> None:
    for scheme in ("light", "dark"):
        page = open_page("/", color_scheme=scheme)
        toggle = page.get_by_role("button", name="Dark")
        expect(toggle).to_have_attribute("aria-pressed", str(scheme == "dark").lower())
        page.get_by_label("Text to translate").fill(ENGLISH[0])
        expect(page.locator("#adapted")).to_have_text(GERMAN[0])
        page.locator("#adapted .word").first.click()
        page.locator("#inspector summary").click()
        ratios = dict(zip(READ, page.evaluate(CONTRAST, READ), strict=True))
        assert {name: round(ratio, 2) for name, ratio in ratios.items() if ratio < 4.5} == {}
        page.mouse.move(5, 5)
        ground = "getComputedStyle(document.body).backgroundColor"
        before = page.evaluate(ground)
        toggle.click()
        assert page.evaluate(ground) != before
        chosen = page.evaluate(ground)
        page.reload()
        assert page.evaluate(ground) == chosen


def test_the_documentation_of_the_api_comes_from_this_server_alone(open_page: Open) -> None:
    page = open_page("/docs")
    operation = page.locator("details", has=page.locator(".path", has_text="/v1/translate")).first
    operation.locator("summary").click()
    expect(operation.get_by_role("cell", name="explain")).to_be_visible()
    asked = {"text": ENGLISH[0], "source": "en", "target": "de"}
    operation.get_by_label("Body").fill(json.dumps(asked))
    operation.get_by_role("button", name="Try POST").click()
    expect(operation.get_by_role("region", name="Answer")).to_contain_text(GERMAN[0])
    expect(page.get_by_role("navigation", name="Contents").get_by_role("link")).not_to_have_count(0)
