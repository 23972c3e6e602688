"""The page over a real cluster: a run trains, its numbers move, a reload shows all again, stop works."""

from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, expect

from services.tests.browser.chromium import open_page
from services.tests.system.cluster import Cluster

pytestmark = pytest.mark.browser
LONG_MS = 30_000


def test_train_watch_reload_and_stop(browser: Browser, cluster: Cluster, tmp_path: Path) -> None:
    page, seen = open_page(browser, f"{cluster.api.url}#/training")
    expect(page.locator("#header")).to_contain_text("live")
    expect(page.locator("#run")).to_contain_text("Nothing is training.")
    workers_are(page, 2)
    start(page, rounds="400", patience="0")  # else it may end by itself before Stop is pressed
    expect(page.locator("#run")).to_contain_text("running", timeout=LONG_MS)
    show(page, "dashboard")
    at_least(page, 3)
    expect(page.locator("#loss-chart figcaption")).to_contain_text("eval", timeout=LONG_MS)
    show(page, "logs")
    expect(page.locator("#log")).to_contain_text("[ROUND] ")
    show(page, "training")
    page.reload()
    at_least(page, 5)
    page.get_by_role("button", name="Pause").click()
    expect(page.locator("#run")).to_contain_text("paused", timeout=LONG_MS)
    state = cluster.until(lambda state: state["run"]["rounds_open"] == [], "the round in flight to close")
    at_least(page, state["run"]["version"])
    download(page, tmp_path / "checkpoint.npz")
    page.get_by_role("button", name="Resume").click()
    expect(page.locator("#run")).to_contain_text("running", timeout=LONG_MS)
    page.locator("#run").get_by_role("button", name="Stop").click()
    page.get_by_role("dialog").get_by_role("button", name="Stop").click()
    expect(page.locator("#run")).to_contain_text("stopped", timeout=LONG_MS)
    assert seen.errors == []
    assert seen.outside == []
    page.close()


def test_a_run_that_waits_says_for_what(browser: Browser, cluster: Cluster) -> None:
    page, _ = open_page(browser, f"{cluster.api.url}#/training")
    workers_are(page, 2)
    start(page, rounds="2", min_workers="3")
    expect(page.locator("#run")).to_contain_text("waiting", timeout=LONG_MS)
    expect(page.locator("#run .reason")).to_contain_text("2 of 3 workers", timeout=LONG_MS)
    cluster.start_worker("worker-3")
    expect(page.locator("#run")).to_contain_text("finished", timeout=LONG_MS)
    page.close()


def show(page: Page, view: str) -> None:
    """Go to a view."""
    page.evaluate("(name) => { location.hash = `#/${name}`; }", view)


def workers_are(page: Page, count: int) -> None:
    """Wait for workers, then come back."""
    show(page, "cluster")
    expect(page.locator("#workers tbody tr")).to_have_count(count, timeout=LONG_MS)
    show(page, "training")


def start(page: Page, *, rounds: str, min_workers: str = "2", patience: str = "") -> None:
    """Start the recommended run of the digits."""
    page.get_by_role("radio", name="Handwritten digits").check()
    page.get_by_label("Rounds", exact=True).fill(rounds)
    page.get_by_label("Min workers").fill(min_workers)
    if patience:
        page.locator("#start summary").first.click()
        page.get_by_label("Patience", exact=True).fill(patience)
    page.locator("#start").get_by_role("button", name="Start", exact=True).click()
    expect(page.locator("#start")).to_contain_text("Started: ")


def at_least(page: Page, rounds: int) -> None:
    """Wait until so many rounds are closed, as the page tells it."""
    page.wait_for_function(
        "(least) => Number(document.querySelector('#run [role=progressbar]')?.ariaValueNow) >= least",
        arg=rounds,
        timeout=LONG_MS,
    )


def download(page: Page, target: Path) -> None:
    """The newest checkpoint, once the list has settled; it opens with plain NumPy."""
    page.wait_for_function(
        """() => document.querySelector('#checkpoints li')?.textContent.startsWith(
            `round ${document.querySelector('#run [role=progressbar]')?.ariaValueNow} `)""",
        timeout=LONG_MS,
    )
    with page.expect_download() as coming:
        page.locator("#checkpoints").get_by_role("button").first.click()
    coming.value.save_as(target)
    with np.load(target, allow_pickle=False) as archive:
        assert archive["parameters"].dtype == np.float32
