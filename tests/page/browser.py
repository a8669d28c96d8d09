"""A real browser, and pages that remember what went wrong in them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, Playwright

Open = Callable[..., Page]
"""Opens the page in a window of its own: the fixture `open_page`."""

NAMES = ("chromium", "chromium-browser", "google-chrome")
PATIENCE = 30_000  # milliseconds: only a page that is broken waits so long


def launch(playwright: Playwright) -> Browser:
    return playwright.chromium.launch(executable_path=executable())


def executable() -> str:
    for name in (os.environ.get("KSTER_CHROMIUM"), *NAMES):
        if name and (path := shutil.which(name)):
            return path
    message = "no Chromium: install the package chromium, or name a browser in KSTER_CHROMIUM"
    if os.environ.get("CI") == "true":
        pytest.fail(message)
    pytest.skip(message)


@dataclass
class Watch:
    """What a page logged, threw and asked for."""

    origin: str
    errors: list[str] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)
    elsewhere: list[str] = field(default_factory=list)

    def over(self, page: Page) -> None:
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("request", self._request)

    def _console(self, message: object) -> None:
        text, kind = message.text, message.type  # type: ignore[attr-defined]
        if text.startswith("Failed to load resource"):
            self.refusals.append(text)  # the browser notes every answer of 400 and more
        elif kind in ("error", "warning"):
            self.errors.append(text)

    def _request(self, request: object) -> None:
        url = urlsplit(request.url)  # type: ignore[attr-defined]
        if url.scheme not in ("data", "blob") and f"{url.scheme}://{url.netloc}" != self.origin:
            self.elsewhere.append(request.url)  # type: ignore[attr-defined]
