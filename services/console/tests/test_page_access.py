"""The page for everybody: axe finds nothing on any view, and the beginner's way goes by keyboard alone."""

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from services.console.tests import scripted_cluster as cluster
from services.console.tests.conftest import RunningConsole, last_command
from services.console.tests.pages import prepare
from services.console.tests.scripted_master import ScriptedMaster
from services.console.tests.test_page import VIEWS

pytestmark = pytest.mark.browser
AXE = Path("build/page/node_modules/axe-core/axe.min.js")  # make setup installs it
RUN_AXE = """async () => {
    const { violations, passes } = await axe.run();
    if (passes.length < 10) return [`only ${passes.length} rules found anything to look at`];
    return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html, failureSummary }) =>
        `${html.slice(0, 160)} ${failureSummary}`).slice(0, 3).join(" | ")}`);
}"""


@pytest.mark.parametrize("language", ["en", "zh-CN"])
@pytest.mark.parametrize("theme", ["dark", "light"])
def test_axe_finds_nothing(
    browser: Browser, master: ScriptedMaster, console: RunningConsole, language: str, theme: str
) -> None:
    prepare(master)
    context = browser.new_context(reduced_motion="reduce", viewport={"width": 1280, "height": 900})
    context.add_init_script(path=AXE)  # the page's policy refuses a script that is put into it
    page = chosen(context.new_page(), console.url, theme=theme, language=language)
    found: dict[str, Any] = {}
    for name in VIEWS:
        page.evaluate("(view) => { location.hash = `#/${view}`; }", name)
        expect(page.locator(f"main.view-{name}")).to_be_attached()
        page.wait_for_timeout(150)
        if violations := page.evaluate(RUN_AXE):
            found[name] = violations
    context.close()
    assert found == {}


def chosen(page: Page, url: str, *, theme: str, language: str) -> Page:
    """The page as somebody has set it before."""
    page.add_init_script(
        f"localStorage.setItem('mahe.page', JSON.stringify({{theme: '{theme}', language: '{language}'}}))"
    )
    page.goto(url)
    expect(page.locator("#run")).to_contain_text("12 / 30")
    return page


def test_a_first_run_is_started_and_stopped_by_keyboard_alone(page: Page, master: ScriptedMaster) -> None:
    master.say("RUN", "stopped", cluster.run(12, phase="STOPPED", reason="stopped by the operator"))
    expect(page.locator("#begin")).to_be_visible()
    tab_to(page, "Try it now")
    page.keyboard.press("Enter")
    assert last_command(master, "create_run")["spec"]["dataset"] == "digits"
    master.say("RUN", "running", cluster.run(13))
    expect(page.locator("#run")).to_contain_text("13 / 30")
    tab_to(page, "Stop")
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_be_visible()
    tab_to(page, "Stop")
    page.keyboard.press("Enter")
    assert last_command(master, "stop_run")["run"] == "run-7"


def test_the_skip_link_comes_first_and_leads_to_the_view(page: Page) -> None:
    page.keyboard.press("Tab")
    expect(page.locator(".skip")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#main")).to_be_focused()


def tab_to(page: Page, name: str) -> None:
    """Press Tab until the button of that name has the focus, which must be seen."""
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("() => document.activeElement.textContent.trim()") == name:
            outline = page.evaluate("() => getComputedStyle(document.activeElement).outlineStyle")
            assert outline != "none", f"nobody sees that {name} has the focus"
            return
    raise AssertionError(f"Tab does not come to {name}")
