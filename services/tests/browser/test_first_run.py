"""What a newcomer does: one press to a first curve; and every view of a cluster that trains, photographed.

The pictures lie in build/pictures afterwards; with MAHE_REWRITE=1 those of the README are renewed.
"""

import os
import shutil
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from services.console.tests.test_page import VIEWS
from services.tests.browser.chromium import open_page
from services.tests.system.cluster import Cluster

pytestmark = pytest.mark.browser
CURVE_MS = 120_000
PICTURES = Path("build/pictures")
OF_README = {"dashboard-dark.png": "docs/page.png", "cluster-light.png": "docs/page-cluster.png"}
PICTURE_BYTES_MIN = 10_000


def test_the_first_curve_comes_with_one_press(browser: Browser, cluster: Cluster) -> None:
    page, seen = open_page(browser, cluster.api.url)
    page.get_by_role("button", name="Try it now").click(timeout=CURVE_MS)
    rounds_closed(page, 3)
    expect(page.locator("#loss-chart figcaption")).to_contain_text("eval 0.", timeout=CURVE_MS)
    assert seen.errors == []
    assert seen.outside == []
    page.close()


def test_every_view_has_its_picture(browser: Browser, cluster: Cluster) -> None:
    shutil.rmtree(PICTURES, ignore_errors=True)
    PICTURES.mkdir(parents=True)
    page, seen = open_page(browser, cluster.api.url)
    expect(page.get_by_role("button", name="Try it now")).to_be_enabled(timeout=CURVE_MS)
    cluster.run(dataset="digits", rounds=400, k_steps=100, min_workers=2)
    rounds_closed(page, 30)
    for theme in ("dark", "light"):
        for name in VIEWS:
            page.evaluate("(view) => { location.hash = `#/${view}`; }", name)
            expect(page.locator(f"main.view-{name}")).to_be_attached()
            page.wait_for_timeout(400)
            page.screenshot(path=PICTURES / f"{name}-{theme}.png")
        page.get_by_role("button", name="Light theme").click()
    small = [path.name for path in PICTURES.iterdir() if path.stat().st_size < PICTURE_BYTES_MIN]
    assert (len(list(PICTURES.iterdir())), small) == (2 * len(VIEWS), [])
    assert seen.errors == []
    page.close()
    if os.environ.get("MAHE_REWRITE") == "1":
        for taken, kept in OF_README.items():
            shutil.copyfile(PICTURES / taken, kept)


def rounds_closed(page: Page, least: int) -> None:
    """Wait until so many rounds are closed, as the page tells it."""
    page.wait_for_function(
        "(least) => Number(document.querySelector('#run [role=progressbar]')?.ariaValueNow) >= least",
        arg=least,
        timeout=CURVE_MS,
    )
