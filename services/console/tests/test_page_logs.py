"""The view of the log: what is shown, held and copied; and the support bundle."""

import json
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from services.console.tests.conftest import RunningConsole
from services.console.tests.pages import HOSTILE
from services.console.tests.scripted_master import ScriptedMaster

pytestmark = pytest.mark.browser
CLIPBOARD = "() => navigator.clipboard.readText()"
TO_END = "(node) => node.scrollHeight - node.scrollTop - node.clientHeight"


@pytest.fixture
def logs(page: Page, console: RunningConsole) -> Page:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(console.url + "#/logs")
    return page


def test_the_log_holds_still_while_it_is_scrolled_up(logs: Page, master: ScriptedMaster) -> None:
    for number in range(120):
        master.say("INFO", f"line {number}")
    items = logs.locator("#log li")
    expect(items).to_have_count(120)
    lines = logs.locator("#log .log-lines")
    assert lines.evaluate(TO_END) < 5
    lines.evaluate("(node) => { node.scrollTop = 40; }")
    logs.wait_for_timeout(100)
    master.say("INFO", "one more")
    expect(logs.get_by_role("button", name="1 new line")).to_be_visible()
    master.say("INFO", "and one")
    button = logs.get_by_role("button", name="2 new lines")
    expect(button).to_be_visible()
    assert lines.evaluate("(node) => node.scrollTop") == 40
    button.click()
    expect(button).to_be_hidden()
    assert lines.evaluate(TO_END) < 5
    master.say("INFO", "followed")
    expect(items.last).to_contain_text("[INFO] followed")
    assert lines.evaluate(TO_END) < 5


def test_scrolling_back_to_the_end_by_hand_follows_again(logs: Page, master: ScriptedMaster) -> None:
    for number in range(120):
        master.say("INFO", f"line {number}")
    lines = logs.locator("#log .log-lines")
    expect(logs.locator("#log li")).to_have_count(120)
    lines.evaluate("(node) => { node.scrollTop = 0; }")
    logs.wait_for_timeout(100)
    master.say("INFO", "new")
    expect(logs.get_by_role("button", name="1 new line")).to_be_visible()
    expect(logs.locator("#log li").last).to_contain_text("new")
    lines.evaluate("(node) => { node.scrollTop = node.scrollHeight; }")
    expect(logs.get_by_role("button", name="1 new line")).to_be_hidden()
    master.say("INFO", "newer")
    expect(logs.locator("#log li").last).to_contain_text("newer")
    assert lines.evaluate(TO_END) < 5


def test_ten_thousand_lines_are_searched_and_only_some_are_drawn(logs: Page, master: ScriptedMaster) -> None:
    for start in range(0, 10_000, 500):  # a page that falls 1,000 behind is told to take the state again, without them
        for number in range(start, start + 500):
            master.say("WARN" if number % 1000 == 0 else "INFO", f"line {number} of many")
        expect(logs.locator("#log .meta")).to_have_text(f"{start + 500:,} lines")
    drawn = logs.locator("#log li")
    assert 500 <= drawn.count() <= 601
    expect(drawn.last).to_contain_text("line 9999 of many")
    lines = logs.locator("#log .log-lines")
    lines.evaluate("(node) => { node.scrollTop = 0; }")
    logs.wait_for_timeout(100)
    first = drawn.nth(1).text_content()
    place = drawn.nth(1).bounding_box()
    logs.get_by_role("button", name="2,000 earlier lines").click()
    expect(drawn).to_have_count(2_501)
    held = drawn.filter(has_text=str(first)).first.bounding_box()
    assert place and held and abs(place["y"] - held["y"]) < 3, "what was read stays where it was"
    logs.get_by_role("button", name="WARN 10").click()
    expect(drawn).to_have_count(10)
    expect(drawn.first).to_contain_text("line 0 of many")
    logs.get_by_role("button", name="All", exact=True).click()
    logs.get_by_label("Find").fill("LINE 77")
    expect(drawn).to_have_count(111)
    logs.get_by_label("Find").fill("no such thing")
    expect(logs.locator("#log")).to_contain_text("None of the 10,000 lines fits.")


def test_kinds_have_counts_and_what_is_chosen_stays_when_lines_come(logs: Page, master: ScriptedMaster) -> None:
    for kind, text in (("ROUND", "round=13"), ("WARN", "slow disk"), ("ERROR", "no disk"), ("ROUND", "round=14")):
        master.say(kind, text)
    logs.get_by_role("button", name="WARN 1").click()
    logs.get_by_role("button", name="ERROR 1").click()
    expect(logs.locator("#log li .message")).to_have_text(["[WARN] slow disk", "[ERROR] no disk"])
    expect(logs.get_by_role("button", name="ROUND 2 rounds that closed")).to_have_attribute("aria-pressed", "false")
    master.say("ROUND", "round=15")
    master.say("ERROR", "again")
    expect(logs.get_by_role("button", name="ROUND 3")).to_be_visible()
    expect(logs.locator("#log li .message")).to_have_text(["[WARN] slow disk", "[ERROR] no disk", "[ERROR] again"])
    logs.get_by_role("link", name="Runs").first.click()
    logs.get_by_role("link", name="Logs").first.click()
    expect(logs.locator("#log li")).to_have_count(3)
    logs.get_by_role("button", name="Copy 3 lines").click()
    expect(logs.locator(".log-tools [role=status]")).to_have_text("Copied")
    copied = logs.evaluate(CLIPBOARD).splitlines()
    assert [line.partition(" ")[2] for line in copied] == ["[WARN] slow disk", "[ERROR] no disk", "[ERROR] again"]
    assert copied[0].startswith("2026-11-29T") or copied[0].startswith("2026-11-30T")
    logs.get_by_role("button", name="All", exact=True).click()
    expect(logs.locator("#log li")).to_have_count(6)


def test_one_line_is_copied_by_keyboard_and_the_log_holds_meanwhile(logs: Page, master: ScriptedMaster) -> None:
    for number in range(60):
        master.say("INFO", f"line {number}")
    expect(logs.locator("#log li")).to_have_count(60)
    logs.locator("#log .log-lines").focus()
    logs.keyboard.press("ArrowUp")
    logs.keyboard.press("ArrowUp")
    expect(logs.get_by_role("button", name="Copy: [INFO] line 58")).to_be_focused()
    master.say("INFO", "line 60")
    expect(logs.get_by_role("button", name="1 new line")).to_be_visible()
    expect(logs.get_by_role("button", name="Copy: [INFO] line 58")).to_be_focused()
    logs.keyboard.press("Enter")
    expect(logs.locator("#status")).to_have_text("Copied")
    assert logs.evaluate(CLIPBOARD).endswith("[INFO] line 58")


def test_a_line_with_a_code_is_said_in_the_language_of_the_page(logs: Page, master: ScriptedMaster) -> None:
    logs.route("**/i18n/en.json", lambda route: route.fulfill(json={**table("en"), "init.KERNEL": "Kernel: {isa}"}))
    master.say("INIT", "kernel avx2, as the master said it", {"code": "KERNEL", "isa": "avx2"})
    expect(logs.locator("#log li")).to_have_count(1)
    logs.reload()
    expect(logs.locator("#log li .message")).to_have_text("[INIT] Kernel: avx2")
    master.say("INIT", "kernel scalar, as the master said it", {"code": "KERNEL", "isa": "scalar"})
    expect(logs.locator("#log li .message").last).to_have_text("[INIT] Kernel: scalar")
    logs.get_by_label("Find").fill("kernel: sc")
    expect(logs.locator("#log li")).to_have_count(1)


def table(language: str) -> dict[str, str]:
    path = Path(__file__).parents[1] / "static" / "i18n" / f"{language}.json"
    found: dict[str, str] = json.loads(path.read_text("utf-8"))
    return found


def test_hostile_lines_are_text(logs: Page, master: ScriptedMaster) -> None:
    """R28: a link of a terminal is none here, and the end of a block ends nothing."""
    master.say("WARN", HOSTILE)
    expect(logs.locator("#log")).to_contain_text("<script>document.title=2</script>")
    assert logs.title() == "MAHE"
    assert logs.locator("main img, main script, #log a, a[href*=evil]").count() == 0


def test_the_support_bundle_is_saved(
    logs: Page, master: ScriptedMaster, console: RunningConsole, tmp_path: Path
) -> None:
    master.say("WARN", f"somebody wrote {console.token}")
    expect(logs.locator("#log li")).to_have_count(1)
    with logs.expect_download() as download:
        logs.get_by_role("button", name="Download the support bundle").click()
    assert download.value.suggested_filename.startswith("mahe-support-2")
    download.value.save_as(tmp_path / "bundle.json")
    bundle = json.loads((tmp_path / "bundle.json").read_text("utf-8"))
    assert bundle["events"][0]["text"] == "somebody wrote (hidden)"
    expect(logs.locator("#support")).to_contain_text("Look at it before you pass it on.")


@pytest.mark.parametrize("width", [320, 800, 1440, 2560])
def test_nothing_sticks_out(logs: Page, master: ScriptedMaster, width: int) -> None:
    for kind in ("ROUND", "WARN", "ERROR", "RUN", "WORKER", "AUTH", "MASTER", "INIT"):
        master.say(kind, "a/very/long/path/without/a/place/to/break" * 8)
    expect(logs.locator("#log li")).to_have_count(8)
    logs.set_viewport_size({"width": width, "height": 900})
    logs.wait_for_timeout(100)
    assert logs.evaluate("() => document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0
