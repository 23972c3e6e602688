"""The Cluster view in Chromium against a scripted master: workers, who holds the round up, join strings."""

import re
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from services.console.tests import scripted_cluster as cluster
from services.console.tests.conftest import RunningConsole, last_command, wait_until
from services.console.tests.pages import HOSTILE, prepare
from services.console.tests.scripted_master import ScriptedMaster, answers
from services.console.tests.test_page import WIDTHS
from services.tests.browser.chromium import open_page

pytestmark = pytest.mark.browser
WATCH_ROWS = """() => {
    const names = new Set();
    const rowOf = (node) => (node.closest ? node : node.parentElement)?.closest("tr");
    const note = ({ target }) => names.add(rowOf(target)?.querySelector(".name > span").textContent);
    const whole = { subtree: true, childList: true, characterData: true, attributes: true };
    new MutationObserver((records) => records.forEach(note)).observe(document.querySelector("#workers tbody"), whole);
    return names;
}"""


@pytest.fixture
def view(page: Page) -> Page:
    """The page, at the Cluster view."""
    page.evaluate("() => { location.hash = '#/cluster'; }")
    expect(page.locator("#workers")).to_be_visible()
    return page


def round_open(states: dict[str, str]) -> dict[str, Any]:
    """A run whose open round has one lease for each of these workers."""
    run = cluster.run(12)
    run["rounds_open"][0]["leases"] = [
        {"worker": worker, "shard": shard, "samples": 640, "k_steps": 50, "batch": 32, "state": state}
        for shard, (worker, state) in enumerate(states.items())
    ]
    return run


def test_each_worker_has_state_reason_and_what_helps(view: Page, master: ScriptedMaster) -> None:
    rows = view.locator("#workers tbody tr")
    expect(rows).to_have_count(4)
    expect(rows.locator("td.name > span")).to_have_text(["dorm-417", "lab-pc-01", "lab-pc-02", "office-mac"])
    expect(rows.nth(0)).to_contain_text("◐ paused")
    expect(rows.nth(0)).to_contain_text("paused: on battery")
    expect(rows.nth(0)).to_contain_text("nothing to do here")
    expect(rows.nth(1)).to_contain_text("● training 12/50")
    expect(rows.nth(1).locator(".advice")).to_have_count(0)
    expect(rows.nth(3)).to_contain_text(re.compile("▲ lost for 2[0-9] s"))
    expect(rows.nth(3)).to_contain_text("mahe worker")
    master.say("PROGRESS", "", {"workers": [{"id": "w1", "step": 44}]})
    expect(rows.nth(1)).to_contain_text("training 44/50")
    master.say("WORKER", "", cluster.worker(1, "lab-pc-01", quarantined=True, reason="in quarantine: bad deltas"))
    expect(rows.nth(1)).to_contain_text("▲ in quarantine")
    expect(rows.nth(1)).to_contain_text("memory, cooling")
    master.say("WORKER", "", cluster.worker(1, "lab-pc-01", quarantined=False, progress_age_ms=40_000))
    expect(rows.nth(1)).to_contain_text(re.compile("▲ no step for 4[0-9] s"))
    expect(rows.nth(1).get_by_role("img", name="step: failing")).to_be_visible()
    master.say("WORKER", "lab-pc-02 has left", {"id": "w2", "gone": True})
    expect(rows).to_have_count(3)


def test_a_worker_shows_its_figures_and_its_part_of_all(view: Page, master: ScriptedMaster) -> None:
    row = view.locator("#workers tbody tr").nth(1)
    master.say("WORKER", "", cluster.worker(1, "lab-pc-01", link_bytes_per_s=1_572_864, accepted_rounds=1))
    expect(row).to_contain_text("1.5 MiB/s")
    for text in ("Linux x86_64 · 8.0 GiB", "2 of 4", "900", "10 %", "50 steps × 32", "1 round", "7,200 samples · 10 %"):
        expect(row).to_contain_text(text)
    for lamp in ("link: good", "agent: good", "step: good"):
        expect(row.get_by_role("img", name=lamp)).to_be_visible()


def test_clipped_rounds_and_mismatches_are_shown_when_there_are_any(view: Page, master: ScriptedMaster) -> None:
    row = view.locator("#workers tbody tr").nth(1)
    expect(row.locator(".mark")).to_have_count(0)
    master.say("WORKER", "clipped", cluster.worker(1, "lab-pc-01", clipped_rounds=3, mismatches=2))
    expect(row.locator(".mark")).to_have_text([re.compile("△ 3 clipped"), re.compile("▲ 2 mismatches")])
    expect(row.get_by_role("img", name="was scaled down: 3")).to_have_attribute("title", re.compile("much larger"))
    expect(row.get_by_role("img", name="other numbers than the master: 2")).to_be_visible()
    expect(row).to_contain_text("Often clipped: take fewer local steps")


def test_removing_asks_first_and_says_what_it_did(view: Page, master: ScriptedMaster) -> None:
    master.replies["remove_all_workers"] = answers({"workers": ["w1", "w2", "w3", "w4"]})
    view.get_by_role("button", name="Remove worker lab-pc-02").click()
    expect(view.get_by_role("dialog")).to_contain_text("Remove lab-pc-02?")
    view.keyboard.press("Escape")
    assert not [command for command in master.commands if command["name"] == "remove_worker"]
    view.get_by_role("button", name="Remove worker lab-pc-02").click()
    view.get_by_role("dialog").get_by_role("button", name="Remove").click()
    assert last_command(master, "remove_worker")["worker"] == "w2"
    expect(view.locator("#workers")).to_contain_text("lab-pc-02 is removed and parked")
    view.get_by_role("button", name="Remove all…").click()
    expect(view.get_by_role("dialog")).to_contain_text("Remove all 4 workers?")
    view.get_by_role("dialog").get_by_role("button", name="Remove").click()
    last_command(master, "remove_all_workers")
    expect(view.locator("#workers")).to_be_focused()


def test_a_refused_removal_says_so(view: Page, master: ScriptedMaster) -> None:
    master.replies["remove_worker"] = lambda _: (False, "WORKER_UNKNOWN", "worker w2 is not enrolled", {})
    view.get_by_role("button", name="Remove worker lab-pc-02").click()
    view.get_by_role("dialog").get_by_role("button", name="Remove").click()
    expect(view.locator("#workers").get_by_role("alert")).to_contain_text("worker w2 is not enrolled")


def test_order_and_filter_stay_as_chosen(view: Page, master: ScriptedMaster) -> None:
    names = view.locator("#workers tbody td.name > span")
    expect(view.get_by_label("Filter")).to_have_count(0)
    view.get_by_label("Sorted by").select_option("speed")
    expect(names).to_have_text(["office-mac", "lab-pc-02", "dorm-417", "lab-pc-01"])
    view.get_by_label("Sorted by").select_option("state")
    expect(names).to_have_text(["office-mac", "dorm-417", "lab-pc-01", "lab-pc-02"])
    for number in range(5, 15):
        master.say("WORKER", "", cluster.worker(number, f"lab-pc-{number:02d}"))
    view.get_by_label("Filter").fill("LOST")
    expect(names).to_have_text(["office-mac"])
    expect(view.locator("#workers")).to_contain_text("1 of 14")
    view.get_by_role("link", name="Deploy").click()
    expect(view.locator("#deploy")).to_be_visible()
    view.get_by_role("link", name="Cluster").click()
    master.say("WORKER", "", cluster.worker(15, "lab-pc-15"))
    expect(view.locator("#workers")).to_contain_text("1 of 15")
    expect(view.get_by_label("Filter")).to_have_value("LOST")
    expect(view.get_by_label("Sorted by")).to_have_value("state")
    view.get_by_label("Filter").fill("nobody")
    expect(view.locator("#workers")).to_contain_text("No worker fits the filter.")


def test_an_empty_cluster_says_what_to_do(view: Page, master: ScriptedMaster) -> None:
    for number in (1, 2, 3, 4):
        master.say("WORKER", "", {"id": f"w{number}", "gone": True})
    expect(view.locator("#workers")).to_contain_text("Create join string")
    expect(view.locator("#workers")).to_contain_text("docs/USER_GUIDE.md")
    view.get_by_role("link", name="how, step by step.").click()
    expect(view.locator("#deploy-other")).to_be_visible()


def test_the_lane_names_who_holds_the_round_up_and_what_helps(view: Page, master: ScriptedMaster) -> None:
    lanes = view.locator("#lanes")
    master.say("RUN", "", round_open({"w1": "OUT", "w2": "ACCEPTED", "w3": "LOST"}))
    expect(lanes).to_contain_text("round 13")
    expect(lanes.locator("li")).to_have_count(3)
    expect(lanes.locator("li").nth(0)).to_contain_text("dorm-417")
    expect(lanes.locator("li").nth(0)).to_contain_text("round 13 · away")
    expect(lanes.locator("li").nth(1)).to_contain_text("computing, step 12 of 50 · about 1 s left")
    expect(lanes.locator("li").nth(2)).to_contain_text("done, waiting for the others")
    expect(lanes).to_contain_text("▲ The others wait for lab-pc-01. Its share follows its speed")
    expect(lanes.locator("li.slow")).to_contain_text("lab-pc-01")
    run = round_open({"w1": "UPLOADING", "w2": "ACCEPTED"})
    slow = cluster.worker(1, "lab-pc-01", agent="uploading", link_bytes_per_s=1_000)
    master.say("WORKER", "", slow)
    master.say("RUN", "", run)
    expect(lanes.locator("li").nth(0)).to_contain_text("round 13 · sending · about 9 s left")
    expect(lanes).to_contain_text("a cable instead of Wi-Fi")
    master.say("RUN", "", {**run, "spec": {**run["spec"], "balance": "equal"}})
    master.say("WORKER", "", cluster.worker(1, "lab-pc-01", agent="training", step=1))
    master.say("RUN", "", {**round_open({"w1": "OUT", "w2": "ACCEPTED"}), "spec": {**run["spec"], "balance": "equal"}})
    expect(lanes).to_contain_text("choose the balance “by speed”")
    master.say("RUN", "stopped", cluster.run(12, phase="STOPPED", reason="stopped by the operator"))
    expect(lanes).to_contain_text("While a run goes on")


def test_the_lane_remembers_what_each_did_lately(view: Page) -> None:
    shares = view.evaluate(
        """async () => {
            const { createLately, slowestOf } = await import("./static/js/core/lanes.js");
            const lately = createLately();
            const doing = (a, b) => [{ id: "a", doing: a, left_s: 0 }, { id: "b", doing: b, left_s: 0 }];
            lately.note(doing("compute", "compute"), 0);
            const early = lately.of("a");
            lately.note(doing("compute", "wait"), 10000);
            lately.note(doing("compute", "wait"), 20000);
            const slow = slowestOf(doing("compute", "compute"), lately.of);
            lately.note(doing("wait", "wait"), 200000);
            const sum = Object.values(lately.of("a")).reduce((x, y) => x + y);
            return { early, slow: slow?.id, b: lately.of("b"), sum };
        }"""
    )
    assert shares["early"] is None
    assert shares["slow"] == "a"
    assert shares["b"]["wait"] > 0.99, "what is long ago weighs nothing"
    assert shares["sum"] == pytest.approx(1.0)


def test_a_machine_is_added_with_a_line_for_each_shell(view: Page, master: ScriptedMaster) -> None:
    join = view.locator("#join")
    view.get_by_label("For whom or what").fill("Lab 3")
    view.get_by_label("Valid for").select_option("86400")
    view.get_by_label("How many PCs").fill("0")
    view.get_by_role("button", name="Create join string").click()
    expect(view.locator("#join-uses-fault")).to_contain_text("greater than or equal to 1")
    view.get_by_label("How many PCs").fill("3")
    view.get_by_role("button", name="Create join string").click()
    command = join.locator(".command")
    expect(command).to_have_text(f".venv/bin/mahe join '{cluster.JOIN_STRING}'")
    made = last_command(master, "create_join_string")
    assert (made["label"], made["expires_s"], made["uses"]) == ("Lab 3", 86_400, 3)
    expect(join).to_contain_text("Whoever has this line can add PCs")
    join.get_by_role("tab", name="Linux, macOS").focus()
    view.keyboard.press("ArrowRight")
    expect(join.get_by_role("tab", name="Windows", exact=True)).to_be_focused()
    expect(command).to_have_text(f".venv\\Scripts\\mahe join '{cluster.JOIN_STRING}'")
    view.keyboard.press("ArrowRight")
    expect(command).to_contain_text(f"MAHE_JOIN='{cluster.JOIN_STRING}'")
    expect(command).to_contain_text("docker compose -f deploy/compose.worker.yaml up --detach --wait")
    view.keyboard.press("End")
    expect(command).to_contain_text(f"$env:MAHE_JOIN='{cluster.JOIN_STRING}'; ")
    expect(view.get_by_label("For whom or what")).to_have_value("Lab 3")
    view.get_by_role("link", name="Deploy").click()
    expect(view.locator("#deploy-other")).to_contain_text(cluster.JOIN_STRING)


def test_the_line_is_copied(view: Page, console: RunningConsole) -> None:
    view.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=console.url.rstrip("/"))
    view.get_by_role("button", name="Create join string").click()
    view.locator("#join").get_by_role("button", name="Copy: Linux, macOS").click()
    expect(view.locator("#join")).to_contain_text("✓ Copied")
    copied = view.evaluate("() => navigator.clipboard.readText()")
    assert copied == f".venv/bin/mahe join '{cluster.JOIN_STRING}'"
    view.get_by_role("button", name="Revoke: page").click()
    view.get_by_role("dialog").get_by_role("button", name="Revoke").click()
    expect(view.locator("#join .command")).to_have_count(0)


def test_join_strings_are_listed_and_revoked(view: Page, master: ScriptedMaster) -> None:
    base = {"uses_left": 1, "expires_at_ms": 1_796_003_600_000, "state": "valid", "local": False}
    items = [
        {**base, "id": 1, "label": "local", "local": True, "uses_left": None, "expires_at_ms": None},
        {**base, "id": 2, "label": HOSTILE},
        {**base, "id": 3, "label": "old", "state": "expired"},
        {**base, "id": 4, "label": "full", "state": "used up", "uses_left": 0},
    ]
    master.replies["list_join_strings"] = answers({"items": items})
    master.replies["revoke_join_string"] = answers({"id": 2})
    master.say("WORKER", "one joined", cluster.worker(9, "lab-pc-09"))  # the list is read again
    rows = view.locator("#join .rows li")
    expect(rows).to_have_count(4)
    expect(rows.nth(0)).to_contain_text("1 use left")
    expect(rows.nth(0)).to_contain_text("<script>document.title=2</script>")
    expect(rows.nth(1)).to_contain_text("for workers on this PC · any number of uses · no expiry")
    expect(rows.nth(2)).to_contain_text("used up")
    expect(rows.nth(3)).to_contain_text("expired")
    rows.nth(0).get_by_role("button").click()
    expect(view.get_by_role("dialog")).to_contain_text("No further machine can join with it.")
    view.get_by_role("dialog").get_by_role("button", name="Revoke").click()
    assert last_command(master, "revoke_join_string")["id"] == 2
    rows.nth(3).get_by_role("button", name="Clear: old").click()
    wait_until(lambda: last_command(master, "revoke_join_string")["id"] == 3)


def test_hostile_names_are_text(view: Page, master: ScriptedMaster) -> None:
    master.say("WORKER", "", cluster.worker(1, HOSTILE, reason=HOSTILE, platform=HOSTILE, agent=HOSTILE))
    master.say("RUN", "", round_open({"w1": "OUT", "w2": "ACCEPTED"}))
    expect(view.locator("#workers")).to_contain_text('<img src=x onerror="document.title=1">')
    expect(view.locator("#lanes")).to_contain_text("<script>document.title=2</script>")
    view.locator("#workers tbody tr").first.get_by_role("button").click()
    expect(view.get_by_role("dialog")).to_contain_text("<script>document.title=2</script>")
    view.keyboard.press("Escape")
    assert view.title() == "MAHE"
    assert view.locator("main img, main script, dialog img").count() == 0


def test_of_a_hundred_workers_only_the_row_that_changes_is_made_anew(view: Page, master: ScriptedMaster) -> None:
    many = [cluster.worker(number, f"lab-pc-{number:03d}", agent="waiting") for number in range(1, 101)]
    for one in many:
        master.say("WORKER", "", one)
    leases = {str(one["id"]): "OUT" for one in many}
    master.say("RUN", "", round_open(leases))
    expect(view.locator("#workers tbody tr")).to_have_count(100)
    expect(view.locator("#lanes li")).to_have_count(12)
    view.get_by_role("button", name="All 100").click()
    expect(view.locator("#lanes li")).to_have_count(100)
    changed = view.evaluate_handle(WATCH_ROWS)
    for step in range(1, 6):
        master.say("PROGRESS", "", {"workers": [{"id": "w5", "agent": "training", "step": step}]})
        expect(view.locator("#workers tbody tr").nth(4)).to_contain_text(f"training {step}/50")
    assert changed.evaluate("(names) => [...names]") == ["lab-pc-005"], "rows are changed that nobody spoke of"


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("language", ["en", "zh-CN"])
def test_nothing_sticks_out(view: Page, width: int, language: str) -> None:
    view.set_viewport_size({"width": width, "height": 900})
    view.get_by_label("Language").or_(view.get_by_label("语言")).select_option(language)
    view.locator("#join [type=submit]").click()
    expect(view.locator("#join .command")).to_be_visible()
    view.wait_for_timeout(200)
    assert view.evaluate("() => document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0
    small = view.evaluate(
        """() => [...document.querySelectorAll("main button")].map((node) => node.getBoundingClientRect())
            .filter(({ width, height }) => width < 24 || height < 24).length"""
    )
    assert small == 0


def test_a_chinese_page_has_chinese_sentences(
    browser: Browser, master: ScriptedMaster, console: RunningConsole
) -> None:
    prepare(master)
    page, seen = open_page(browser, console.url + "#/cluster")
    page.get_by_label("Language").select_option("zh-CN")
    expect(page.locator("#workers")).to_contain_text("失去联系")
    expect(page.locator("#workers")).to_contain_text("这里不用做什么")
    page.locator("#join [type=submit]").click()
    expect(page.locator("#join")).to_contain_text("谁有这一行")
    left = page.evaluate(
        "() => document.querySelector('main').textContent.match(/\\b(workers|lanes|join|lamp)\\.\\w+/g)"
    )
    assert left is None, "keys without a sentence"
    assert seen.errors == []
    page.close()
