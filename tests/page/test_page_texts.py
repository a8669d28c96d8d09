"""Long texts, which appear part by part, and texts in the other language."""

from __future__ import annotations

from browser import Open
from playwright.sync_api import Page, Route, expect
from running import RunningServer

from tiny import ENGLISH, GERMAN

LONG = "\n\n".join(ENGLISH * 3)  # more than is translated at once
TRANSLATED = "\n\n".join(GERMAN * 3)


def write(page: Page, text: str) -> None:
    page.get_by_label("Text to translate").fill(text)


class Held:
    """Requests for translations, which go on when they are let."""

    def __init__(self, page: Page, free: int) -> None:
        self.page, self.free = page, free
        self.asked: list[dict[str, object]] = []
        self.waiting: list[Route] = []
        page.route("**/v1/translate", self._take)

    def _take(self, route: Route) -> None:
        self.asked.append(route.request.post_data_json)
        self.waiting.append(route)
        self.let(0)

    def let(self, more: int) -> None:
        self.free += more
        while self.waiting and self.free:
            self.free -= 1
            self.waiting.pop(0).continue_()


def test_a_long_text_appears_part_by_part_and_its_words_are_explained_when_asked(page: Page) -> None:
    held = Held(page, free=1)
    write(page, LONG)
    adapted, progress = page.locator("#adapted"), page.locator("#progress")
    expect(adapted).to_contain_text(GERMAN[0])
    expect(progress).to_contain_text("% translated")
    assert 0 < len(adapted.text_content() or "") < len(TRANSLATED)
    held.let(100)
    expect(progress).to_be_hidden()
    assert adapted.text_content() == TRANSLATED
    assert page.locator("#base").text_content() == TRANSLATED
    assert "\n\n".join(str(asked["text"]) for asked in held.asked) == LONG
    assert not any(asked["explain"] for asked in held.asked)

    parts = len(held.asked)
    page.locator("#adapted .word", has_text="Haus").first.click()
    expect(page.locator("#inspector").get_by_role("link").first).to_contain_text(GERMAN[0])
    assert [asked["explain"] for asked in held.asked[parts:]] == ["tokens"]
    assert held.asked[parts]["text"] == held.asked[0]["text"]
    assert adapted.text_content() == TRANSLATED


def test_a_long_text_can_be_stopped_and_nothing_that_was_done_is_lost(page: Page) -> None:
    held = Held(page, free=2)
    write(page, LONG)
    adapted, progress = page.locator("#adapted"), page.locator("#progress")
    expect(page.locator("#adapted .part:not(:empty)")).to_have_count(2)
    while not held.waiting:
        page.wait_for_timeout(20)
    progress.get_by_role("button", name="Stop").click()
    held.let(100)  # the third is on its way already
    expect(page.locator("#adapted .part:not(:empty)")).to_have_count(3)
    expect(progress).to_contain_text("Stopped.")
    expect(page.get_by_role("button", name="Copy")).to_be_visible()
    expect(page.get_by_role("button", name="Edit and teach")).to_be_hidden()  # it is not whole
    assert len(held.asked) == 3

    progress.get_by_role("button", name="Go on").click()
    expect(progress).to_be_hidden()
    assert adapted.text_content() == TRANSLATED
    texts = [asked["text"] for asked in held.asked]
    assert len(texts) > 3
    assert "\n\n".join(map(str, texts)) == LONG  # none was asked for twice

    write(page, LONG.removesuffix(ENGLISH[-1]) + ENGLISH[0])  # only its last part is new
    expect(adapted).to_have_text(TRANSLATED.removesuffix(GERMAN[-1]) + GERMAN[0])
    assert len(held.asked) == len(texts) + 1


def test_a_long_text_that_fails_half_way_keeps_what_was_done_and_goes_on(open_page: Open) -> None:
    page = open_page("/")
    asked: list[Route] = []

    def fail_second(route: Route) -> None:
        asked.append(route)
        if len(asked) == 2:
            route.fulfill(status=504, json={"error": "the translation took too long"})
        else:
            route.continue_()

    page.route("**/v1/translate", fail_second)
    write(page, LONG)
    progress = page.locator("#progress")
    expect(progress).to_contain_text("The translation took too long.")
    expect(page.locator("#adapted")).to_contain_text(GERMAN[0])
    progress.get_by_role("button", name="Go on").click()
    expect(page.locator("#adapted")).to_have_text(TRANSLATED)


def test_a_sentence_is_not_cut_at_an_abbreviation_and_no_character_is_lost(page: Page) -> None:
    cut = "import('/page/js/parts.js').then(({ partsOf }) => partsOf(%s))"
    text = (
        "  Dr. Smith met Prof. Jones at approx. 5 p.m. near St. Paul's. Was it late? It was late enough. "
        * 20
    )
    parts = page.evaluate(cut % repr(text))
    assert len(parts) > 4
    assert "".join(part["before"] + part["text"] for part in parts) == text.rstrip()
    assert all(part["text"].endswith(("?", "enough.")) for part in parts)


def test_text_and_direction_survive_a_reload_together(page: Page) -> None:
    page.get_by_label("From", exact=True).select_option("de")
    write(page, GERMAN[0])
    page.context.new_page().goto("/")  # another tab, with another direction
    other = page.context.pages[-1]
    other.get_by_label("From", exact=True).select_option("en")
    expect(other.get_by_label("Text to translate")).to_have_value("")
    page.reload()
    expect(page.get_by_label("From", exact=True)).to_have_value("de")
    expect(page.get_by_label("Text to translate")).to_have_value(GERMAN[0])
    expect(page.locator("#adapted .word")).not_to_have_count(0)


def test_a_text_in_the_other_language_is_noticed_and_the_direction_offered(page: Page) -> None:
    offer = page.locator("#other-language")
    write(page, GERMAN[0])
    expect(offer).to_contain_text("This looks like German.")
    offer.get_by_role("button", name="Translate from German").click()
    expect(page.get_by_label("From", exact=True)).to_have_value("de")
    expect(page.get_by_label("Into", exact=True)).to_have_value("en")
    expect(page.get_by_label("Text to translate")).to_have_value(GERMAN[0])
    expect(offer).to_be_hidden()

    write(page, ENGLISH[0])
    offer.get_by_role("button", name="It is German").click()
    with page.expect_response("**/detect"):
        write(page, f"{ENGLISH[0]} and the sea")
    page.wait_for_timeout(50)
    expect(offer).to_be_hidden()


def test_a_correction_in_the_wrong_language_is_questioned_before_it_is_taught(
    page: Page, server: RunningServer
) -> None:
    memory = server.http.post("/v1/memories", json={"name": "Doubtful"}).json()["id"]
    page.reload()
    page.get_by_label("Memory", exact=True).select_option(str(memory))
    write(page, ENGLISH[0])
    page.get_by_role("button", name="Edit and teach").click()
    correction = page.get_by_label("The translation as it should be")
    correction.fill(ENGLISH[1])
    correction.press("Control+Enter")
    question = page.locator("#teach-question")
    expect(question).to_contain_text("This looks like English, not German.")
    question.get_by_role("button", name="Change it").click()
    expect(question).to_be_hidden()
    expect(correction).to_be_focused()
    assert server.http.get(f"/v1/memories/{memory}").json()["segments"] == 0
    correction.press("Control+Enter")
    question.get_by_role("button", name="Teach it anyway").click()
    expect(page.locator("#notices")).to_contain_text("Doubtful has learned it.")
    assert server.http.get(f"/v1/memories/{memory}").json()["segments"] == 1
    server.http.delete(f"/v1/memories/{memory}")
