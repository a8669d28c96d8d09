"""Takes the screenshots of docs/screenshots from a running `make serve`; changes nothing there.

python tests/page/screenshots.py [http://127.0.0.1:8017]
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from pathlib import Path

from browser import launch
from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

FOLDER = Path(__file__).parents[2] / "docs/screenshots"
TEXT = "Open the lid of the water tank. Empty the drip tray."
LONG = " ".join(
    [TEXT, "Do not touch the grinder while it is running.", "Clean the steam wand after use."] * 9
)
DESK = {"viewport": {"width": 1280, "height": 720}}
TALL = {"viewport": {"width": 1280, "height": 860}}
PHONE = {
    "viewport": {"width": 390, "height": 780},
    "has_touch": True,
    "is_mobile": True,
    "device_scale_factor": 2,
}


def translated(page: Page) -> None:
    page.get_by_label("Text to translate").fill(TEXT)
    page.wait_for_selector("#adapted .word")


def long(page: Page) -> None:
    page.get_by_label("Text to translate").fill(LONG)
    page.wait_for_selector("#adapted .word")
    page.evaluate("scrollTo(0, 160)")


def word(page: Page) -> None:
    translated(page)
    page.locator("#adapted .word", has_text="Wassertanks").click()
    page.wait_for_selector("#inspector:not([hidden])")


def teaching(page: Page) -> None:
    translated(page)
    page.get_by_role("button", name="Edit and teach").click()


def memories(page: Page) -> None:
    translated(page)
    page.goto("/#/memories")
    page.wait_for_selector(".memory-list")


def memory(page: Page) -> None:
    memories(page)
    page.locator("#drawer").get_by_role("link", name="ombravella", exact=True).click()
    page.wait_for_selector(".segment")


def fit(page: Page) -> None:
    memory(page)
    page.locator(".curve").wait_for()
    page.evaluate("document.querySelector('[aria-label=Fit]').scrollIntoView({block: 'center'})")


def gone(page: Page) -> None:
    translated(page)
    page.context.set_offline(True)
    page.get_by_label("Text to translate").fill(f"{TEXT} Fill it.")
    page.wait_for_selector("#banner:not([hidden])")
    page.wait_for_selector(".failure")


def docs(page: Page) -> None:
    page.goto("/docs")
    page.locator("summary", has_text="/v1/translate").first.click()


SHOTS: dict[str, tuple[dict[str, object], Callable[[Page], None]]] = {
    "light": (DESK, translated),
    "dark": (DESK | {"color_scheme": "dark"}, translated),
    "long": (DESK, long),
    "word": (TALL, word),
    "word-dark": (TALL | {"color_scheme": "dark"}, word),
    "teaching": (DESK, teaching),
    "memories": (DESK, memories),
    "memory": (DESK, memory),
    "fit": (DESK, fit),
    "gone": (DESK, gone),
    "docs": (DESK, docs),
    "phone": (PHONE, translated),
    "phone-word": (PHONE, word),
}


def main(url: str) -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = launch(playwright)
        for name, (settings, prepare) in SHOTS.items():
            take(browser, url, name, settings, prepare)
        browser.close()


def take(
    browser: Browser, url: str, name: str, settings: dict[str, object], prepare: Callable[[Page], None]
) -> None:
    context = browser.new_context(base_url=url, reduced_motion="reduce", **settings)  # type: ignore[arg-type]
    page = context.new_page()
    page.goto("/")
    page.wait_for_selector(".samples button")
    prepare(page)
    page.wait_for_timeout(300)
    image = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    image.quantize(200, dither=Image.Dither.NONE).save(FOLDER / f"{name}.png", optimize=True)
    context.close()


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8017")
