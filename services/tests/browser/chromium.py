"""A page in Chromium for a test: it may reach nothing but the console, and no error of the page goes unseen.

Under the page's policy a test must pass functions to `evaluate` and `wait_for_function`, never strings to be evaluated.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from playwright.sync_api import Browser, Page, sync_playwright

ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
TIMEOUT_MS = 15_000


@dataclass
class Seen:
    """What a page did that a test must know: errors of its scripts, and requests to elsewhere."""

    errors: list[str] = field(default_factory=list)
    outside: list[str] = field(default_factory=list)


def executable() -> str:
    """Chromium on this PC: MAHE_CHROMIUM, else the first of NAMES."""
    found = os.environ.get("MAHE_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    assert found, "no Chromium here: apt-get install chromium, or name one with MAHE_CHROMIUM"
    return found


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser without anything of the user's."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable(), args=ARGUMENTS)
        try:
            yield browser
        finally:
            browser.close()


def open_page(browser: Browser, url: str, *, width: int = 1440, height: int = 900) -> tuple[Page, Seen]:
    """A new page at `url`, and what is seen of it from now on."""
    page = browser.new_page(viewport={"width": width, "height": height}, reduced_motion="reduce")
    page.set_default_timeout(TIMEOUT_MS)
    seen = Seen()
    page.on("pageerror", lambda error: seen.errors.append(str(error)))
    page.on("request", lambda request: None if inside(request.url, url) else seen.outside.append(request.url))
    page.goto(url)
    return page, seen


def inside(requested: str, url: str) -> bool:
    """Whether a request stays with the console at `url`, whichever view of it that is."""
    home = url.partition("#")[0]
    return requested.startswith((home, f"blob:{home}", "data:"))
