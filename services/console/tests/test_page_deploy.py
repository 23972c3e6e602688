"""The Deploy view in Chromium: what to do by hand, with the lines to copy, for each system."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from services.console.tests import scripted_cluster as cluster
from services.console.tests.conftest import running_console
from services.console.tests.scripted_master import ScriptedMaster
from services.console.tests.test_page import WIDTHS
from services.tests.browser.chromium import open_page

pytestmark = pytest.mark.browser


@pytest.fixture
def view(page: Page) -> Page:
    """The page, at the Deploy view."""
    page.evaluate("() => { location.hash = '#/deploy'; }")
    expect(page.locator("#deploy-other")).to_be_visible()
    return page


def test_each_system_has_its_lines_step_by_step(view: Page) -> None:
    other = view.locator("#deploy-other")
    expect(other.locator("li > h3")).to_have_text(["Get MAHE", "Install", "Can it reach this PC?", "Join", "Later"])
    expect(other.locator(".command").nth(0)).to_contain_text("make setup")
    expect(other.locator(".command").nth(1)).to_have_text("nc -vz 192.168.1.20 47820")
    expect(other.locator(".command").nth(2)).to_have_text(".venv/bin/mahe join 'mahe1.…'")
    other.get_by_role("tab", name="Windows").click()
    expect(other.locator(".command").nth(0)).to_contain_text(".venv\\Scripts\\Activate.ps1")
    expect(other.locator(".command").nth(1)).to_have_text("Test-NetConnection 192.168.1.20 -Port 47820")
    view.keyboard.press("ArrowRight")
    expect(other.get_by_role("tab", name="Docker")).to_be_focused()
    expect(other).to_contain_text("docker compose -f deploy/compose.worker.yaml up --detach --wait")
    expect(other).to_contain_text("$env:MAHE_JOIN='mahe1.…'")
    other.get_by_role("button", name="Make a join string").click()
    expect(view.get_by_label("For whom or what")).to_be_focused()


def test_this_pc_is_told_its_address_and_its_firewall(view: Page) -> None:
    here = view.locator("#deploy-here")
    expect(here).to_contain_text("Others reach this master at 192.168.1.20:47820.")
    expect(here.locator(".command")).to_have_text("sudo ufw allow 47820/tcp")
    here.get_by_role("tab", name="Windows").click()
    expect(here.locator(".command")).to_contain_text("-LocalPort 47820 -Action Allow")
    here.get_by_role("tab", name="macOS").click()
    expect(here).to_contain_text("Press Allow when macOS asks")
    expect(view.locator("#deploy")).to_contain_text("over SSH, comes with a later version")
    expect(view.locator("#deploy-guide")).to_contain_text("docs/USER_GUIDE.md")


def test_the_api_and_the_metrics_are_a_link_away(view: Page) -> None:
    programs = view.locator("#deploy-programs")
    for path, seen in {"/metrics": "# TYPE mahe_", "/docs": "createRun"}.items():
        programs.get_by_role("link", name=path, exact=True).click()
        expect(view.locator("body")).to_contain_text(seen)
        view.go_back()
    view.locator("#language").select_option("zh-CN")
    expect(programs).to_contain_text("Prometheus 采集的指标")


@pytest.mark.parametrize(
    ("endpoints", "reach", "said"),
    [
        (["tcp://127.0.0.1:47999"], "nc -vz 192.168.1.20 47820", "△ This master tells no address"),
        (["tcp://1.2.3.4;reboot:1", "tcp://$(reboot):1", "tcp://[fd00::2]:47821"], "nc -vz fd00::2 47821", "[fd00::2]"),
    ],
)
def test_only_what_is_an_address_gets_into_a_line(
    browser: Browser,
    master: ScriptedMaster,
    tmp_path: Path,
    control_dir: Path,
    endpoints: list[str],
    reach: str,
    said: str,
) -> None:
    state = cluster.state()
    master.change_state({**state, "master": {**state["master"], "endpoints": endpoints}})
    with running_console(tmp_path / "console", control_dir) as console:
        page, _ = open_page(browser, console.url + "#/deploy")
        expect(page.locator("#deploy-here")).to_contain_text(said)
        expect(page.locator("#deploy-other .command").nth(1)).to_have_text(reach)
        expect(page.locator("main")).not_to_contain_text("reboot")
        page.close()


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("language", ["en", "zh-CN"])
def test_nothing_sticks_out(view: Page, width: int, language: str) -> None:
    view.set_viewport_size({"width": width, "height": 900})
    view.get_by_label("Language").or_(view.get_by_label("语言")).select_option(language)
    for tab in view.locator("#deploy-other").get_by_role("tab").all():
        tab.click()
        view.wait_for_timeout(50)
        assert view.evaluate("() => document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0
    left = view.evaluate(
        "() => document.querySelector('main').textContent.match(/\\b(deploy|guide|join)\\.[a-z]\\w+/g)"
    )
    assert left is None, "keys without a sentence"
