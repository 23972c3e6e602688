"""The places of what comes later, Try and Assistant: what will be there, and what there is today."""

import pytest
from playwright.sync_api import Page, expect

from services.console.tests import scripted_cluster as cluster
from services.console.tests.conftest import RunningConsole
from services.console.tests.scripted_master import ScriptedMaster

pytestmark = pytest.mark.browser


def test_try_says_what_will_be_there_and_gives_checkpoints_and_how_to_load_one(
    page: Page, console: RunningConsole
) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(console.url + "#/try")
    expect(page.locator("#try")).to_contain_text("draw a digit")
    expect(page.locator("#try")).to_contain_text("docs/USER_GUIDE.md")
    expect(page.locator("#checkpoints")).to_contain_text("Checkpoints of digits at night")
    with page.expect_download() as download:
        page.get_by_role("button", name="Download the best").click()
    assert download.value.suggested_filename == "ckpt-12.npz"
    page.get_by_role("button", name="Copy the lines").click()
    expect(page.locator("#load [role=status]")).to_have_text("Copied")
    copied = page.evaluate("() => navigator.clipboard.readText()")
    assert len(copied.splitlines()) == 3
    compile(copied, "copied", "exec")
    assert 'numpy.load("ckpt-12.npz", allow_pickle=False)' in copied


def test_try_without_a_run_says_how_one_comes(page: Page, console: RunningConsole, master: ScriptedMaster) -> None:
    master.change_state(cluster.state(closed=0, run=None))
    master.term = 2
    page.goto(console.url + "#/try")
    expect(page.locator("#checkpoints")).to_contain_text("No checkpoint yet")
    expect(page.locator("#checkpoints").get_by_role("link", name="Start a run")).to_have_attribute("href", "#/training")


def test_the_assistant_needs_no_key_and_sends_nothing(page: Page, console: RunningConsole) -> None:
    """R29 and R30 wait for the assistant: no key is taken yet, and nothing is sent. Whoever builds it tests them."""
    page.goto(console.url + "#/assistant")
    expect(page.locator("#assistant")).to_contain_text("Today nothing is sent anywhere")
    expect(page.locator("#assistant")).to_contain_text("docs/MESSAGES.md")
    page.locator("#assistant").get_by_role("link", name="Support bundle").click()
    expect(page.locator("#support")).to_be_visible()
    page.locator("#language").select_option("zh-CN")
    page.goto(console.url + "#/assistant")
    expect(page.locator("#assistant")).to_contain_text("现在不会向任何地方发送任何东西")
    expect(page.locator("#assistant")).to_contain_text("docs/MESSAGES.zh-CN.md")
