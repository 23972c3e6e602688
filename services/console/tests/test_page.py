"""The page in Chromium against a scripted master: what it shows, what it asks first, what it never does."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from services.console.tests import scripted_cluster as cluster
from services.console.tests.conftest import RunningConsole, running_console, wait_until
from services.console.tests.scripted_master import ScriptedMaster, answers
from services.tests.browser.chromium import chromium, open_page

pytestmark = pytest.mark.browser
TABLES_DIFFER = """async () => {
    const { TABLES } = await import("./static/js/core/text.js");
    const [en, zh] = [TABLES.en, TABLES["zh-CN"]];
    const named = (text) => (text.match(/\\{\\w+\\}/g) || []).toSorted().join();
    return Object.keys({ ...en, ...zh }).filter((key) => !en[key] || !zh[key] || named(en[key]) !== named(zh[key]));
}"""
WIDTHS = [320, 360, 800, 1440, 2560]
HOSTILE = '<img src=x onerror="document.title=1">\u202e & "quoted" <script>document.title=2</script>'


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as running:
        yield running


@pytest.fixture
def page(browser: Browser, master: ScriptedMaster, console: RunningConsole) -> Iterator[Page]:
    prepare(master)
    page, seen = open_page(browser, console.url)
    expect(page.locator("#header")).to_contain_text("●live")
    yield page
    assert seen.errors == []
    assert seen.outside == []
    page.close()


def prepare(master: ScriptedMaster) -> None:
    item = {"round": 12, "bytes": 300_000, "sha256": master.keep_file(b"z" * 300_000), "best": True}
    joins = {"id": 1, "label": "page", "uses_left": 20, "expires_at_ms": 1_796_003_600_000, "state": "valid"}
    replies: dict[str, dict[str, Any]] = {
        "list_datasets": {"items": cluster.DATASETS},
        "list_checkpoints": {"items": [item]},
        "list_join_strings": {"items": [joins]},
        "create_join_string": {**joins, "join_string": cluster.JOIN_STRING},
        "create_run": {"run": "digits-8"},
        "stop_run": {"run": "run-7"},
        "remove_worker": {"worker": "w2"},
    }
    for name, result in replies.items():
        master.replies[name] = answers(result)


def last_command(master: ScriptedMaster, name: str) -> dict[str, Any]:
    wait_until(lambda: any(command["name"] == name for command in master.commands))
    return next(command for command in reversed(master.commands) if command["name"] == name)


def test_it_shows_the_run_and_its_numbers_move(page: Page, master: ScriptedMaster) -> None:
    run = page.locator("#run")
    expect(run).to_contain_text("running")
    expect(run).to_contain_text("round 13 of 30: 2 of 4 deltas are in")
    expect(run).to_contain_text("21.4")
    for number in (13, 14):
        master.say("ROUND", f"round={number} workers=4", cluster.history_row(number))
        master.say("RUN", "", cluster.run(number))
    expect(run).to_contain_text("14 / 30")
    expect(run.get_by_role("progressbar")).to_have_attribute("aria-valuenow", "14")
    expect(page.locator("#loss circle")).to_have_count(14)
    expect(page.locator("#log")).to_contain_text("[ROUND] round=14 workers=4")
    expect(page.locator("#loss figcaption")).to_contain_text("at round 14")


def test_the_chart_is_read_with_mouse_and_keys(page: Page) -> None:
    chart = page.locator("#loss .chart")
    chart.hover(position={"x": 60, "y": 60})
    expect(page.locator("#loss .meta")).to_contain_text("round 1: eval 1.")
    chart.focus()
    page.keyboard.press("End")
    expect(page.locator("#loss .meta")).to_contain_text("round 12: eval 0.")
    page.keyboard.press("ArrowLeft")
    expect(page.locator("#loss .meta")).to_contain_text("round 11: eval 0.")


def test_it_shows_workers_with_state_and_reason(page: Page, master: ScriptedMaster) -> None:
    rows = page.locator("#workers tbody tr")
    expect(rows).to_have_count(4)
    names = rows.locator("td.name > span")
    expect(names).to_have_text(["dorm-417", "lab-pc-01", "lab-pc-02", "office-mac"])
    expect(rows.nth(0)).to_contain_text("◐ paused")
    expect(rows.nth(0)).to_contain_text("paused: on battery")
    expect(rows.nth(1)).to_contain_text("● training 12/50")
    expect(rows.nth(3)).to_contain_text("▲ LOST")
    master.say("PROGRESS", "", {"workers": [{"id": "w1", "step": 44}]})
    expect(rows.nth(1)).to_contain_text("training 44/50")
    master.say("WORKER", "lab-pc-02 has left", {"id": "w2", "gone": True})
    expect(rows).to_have_count(3)


def test_stop_and_remove_ask_first(page: Page, master: ScriptedMaster) -> None:
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_role("dialog")).to_contain_text("Stop this run?")
    page.keyboard.press("Escape")
    assert not [command for command in master.commands if command["name"] == "stop_run"]
    page.get_by_role("button", name="Stop").click()
    page.get_by_role("dialog").get_by_role("button", name="Stop").click()
    assert last_command(master, "stop_run")["run"] == "run-7"
    page.get_by_role("button", name="Remove worker lab-pc-02").click()
    page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    assert last_command(master, "remove_worker")["worker"] == "w2"


def test_a_run_is_started_with_recommended_values_and_faults_beside_their_field(
    page: Page, master: ScriptedMaster
) -> None:
    start = page.locator("#start")
    expect(start.get_by_role("button", name="Start")).to_be_disabled()
    expect(start).to_contain_text("A run goes on")
    master.say("RUN", "stopped", cluster.run(12, phase="STOPPED", reason="stopped by the operator"))
    page.get_by_label("Data set").select_option("rings4")
    expect(page.get_by_label("Hidden layers")).to_have_value("32, 32")
    expect(start).to_contain_text("2 dimensions · 4 classes · 1,600 to train, 400 held out")
    page.get_by_label("Local steps").fill("0")
    page.get_by_label("Rounds", exact=True).fill("many")
    start.get_by_role("button", name="Start").click()
    expect(page.locator("#start-rounds-fault")).to_have_text("a number, please")
    page.get_by_label("Rounds", exact=True).fill("5")
    start.get_by_role("button", name="Start").click()
    expect(page.locator("#start-k-steps-fault")).to_contain_text("greater than or equal to 1")
    expect(page.get_by_label("Local steps")).to_be_focused()
    page.get_by_label("Local steps").fill("25")
    start.get_by_role("button", name="Start").click()
    expect(start).to_contain_text("Started: digits-8")
    spec = last_command(master, "create_run")["spec"]
    assert (spec["dataset"], spec["rounds"], spec["k_steps"], spec["batch"]) == ("rings4", 5, 25, 16)
    assert spec["model"] == {"family": "mlp", "hidden": [32, 32]}
    assert spec["inner"] == {"name": "adamw", "lr": 0.01}
    assert (spec["encoding"], spec["outer"]) == ("int8", {"name": "fedavg", "lr": 1})


def test_a_preset_fills_the_form_and_explains_itself(page: Page, master: ScriptedMaster) -> None:
    start = page.locator("#start")
    master.say("RUN", "stopped", cluster.run(12, phase="STOPPED", reason="stopped by the operator"))
    preset = page.get_by_label("How to train")
    expect(preset).to_have_value("standard")
    expect(start).to_contain_text("right for most runs")
    expect(page.get_by_label("Rounds", exact=True)).to_have_value("30")
    preset.select_option("thorough")
    expect(page.get_by_label("Rounds", exact=True)).to_have_value("60")
    expect(start).to_contain_text("the learning rate rises, then falls")
    page.get_by_label("Data set").select_option("rings4")
    expect(preset).to_have_value("thorough")
    start.get_by_role("button", name="Start").click()
    expect(start).to_contain_text("Started: digits-8")
    spec = last_command(master, "create_run")["spec"]
    assert (spec["dataset"], spec["rounds"], spec["k_steps"], spec["batch"]) == ("rings4", 60, 100, 16)
    assert spec["inner"] == {"name": "adamw", "lr": 0.01, "schedule": "cosine", "warmup": 0.05}
    assert spec["outer"] == {"name": "nesterov", "lr": 0.7, "mu": 0.6}


def test_the_estimate_follows_the_form_and_the_workers(page: Page, master: ScriptedMaster) -> None:
    estimate = page.locator("#start .estimate")
    # 30 rounds of 50 steps of 32 samples on two workers of 900 and 1,800 samples/s.
    expect(estimate).to_contain_text("About 36 s (PCs: 2) · 66.8 passes over the data · 35.2 KiB a round")
    expect(estimate).to_contain_text("One PC alone finishes in 53 s: you need no second one.")
    expect(estimate.locator("li").first).to_contain_text("△ So many passes tend to be learnt by heart")
    page.get_by_label("Rounds", exact=True).fill("300")
    expect(estimate).to_contain_text("About 6:02 min")
    expect(estimate).to_contain_text("2 PCs are 1.5 times as fast as the fastest alone.")
    page.get_by_label("Rounds", exact=True).fill("many")
    expect(estimate).to_be_hidden()
    expect(page.locator("#start-rounds-fault")).to_be_hidden()
    page.get_by_label("Rounds", exact=True).fill("300")
    expect(estimate).to_be_visible()
    master.say("WORKER", "lab-pc-01 has left", {"id": "w1", "gone": True})
    expect(estimate).to_contain_text("One PC is here")
    assert [command for command in master.commands if command["name"] == "create_run"] == []


def test_momentum_in_a_short_run_is_warned_of_while_choosing(page: Page) -> None:
    warning = page.locator("#start .notice.warn")
    expect(page.get_by_label("How to train")).to_have_value("standard")
    expect(warning).to_be_hidden()
    page.get_by_label("How to train").select_option("long")
    expect(warning).to_be_hidden()
    page.get_by_label("Rounds", exact=True).fill("40")
    expect(warning).to_have_text(
        "△ Momentum 0.9 needs about 100 rounds; this run has 40. Better: nesterov 0.7/0.6, or fedavg."
    )
    page.get_by_label("Rounds", exact=True).fill("20")
    expect(warning).to_contain_text("Better: fedavg.")
    page.get_by_label("Rounds", exact=True).fill("100")
    expect(warning).to_be_hidden()


def test_the_advanced_part_is_opened_and_used_by_keyboard(page: Page, master: ScriptedMaster) -> None:
    master.say("RUN", "stopped", cluster.run(12, phase="STOPPED", reason="stopped by the operator"))
    expect(page.get_by_label("How to train")).to_have_value("standard")
    for name in ("Encoding", "Outer optimizer", "Inner optimizer", "Aggregator", "Balance"):
        expect(page.get_by_label(name)).to_be_hidden()
    page.get_by_label("Min workers").focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_label("Encoding")).to_be_visible()
    page.keyboard.press("Tab")
    page.keyboard.type("int4")
    for choice in ("nesterov 0.7/0.6", "adamw"):
        page.keyboard.press("Tab")
        page.keyboard.type(choice)
    expect(page.get_by_label("Learning rate")).to_have_value("0.001")
    for _ in range(3):
        page.keyboard.press("Tab")
    page.keyboard.type("median")
    expect(page.get_by_label("Balance")).to_have_value("equal")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("#start")).to_contain_text("Started: digits-8")
    spec = last_command(master, "create_run")["spec"]
    assert (spec["encoding"], spec["aggregator"], spec["balance"]) == ("int4", "median", "equal")
    assert spec["inner"] == {"name": "adamw", "lr": 0.001}
    assert spec["outer"] == {"name": "nesterov", "lr": 0.7, "mu": 0.6}


def test_a_fault_in_the_closed_part_opens_it(page: Page, master: ScriptedMaster) -> None:
    master.say("RUN", "stopped", cluster.run(12, phase="STOPPED", reason="stopped by the operator"))
    expect(page.get_by_label("How to train")).to_have_value("standard")
    page.get_by_label("Aggregator").evaluate("(node) => { node.value = 'median'; }")  # its shares are not equal now
    page.locator("#start").get_by_role("button", name="Start").click()
    expect(page.locator("#start-balance-fault")).to_contain_text("weighs all alike: use equal")
    expect(page.get_by_label("Balance")).to_be_focused()


def test_a_fault_that_the_master_finds_is_beside_its_field(page: Page, master: ScriptedMaster) -> None:
    master.say("RUN", "stopped", cluster.run(12, phase="STOPPED", reason="stopped by the operator"))
    expect(page.get_by_label("How to train")).to_have_value("standard")
    faults = [{"field": path, "code": "BAD_SPEC", "message": f"no {path}"} for path in ("inner.lr", "model.hidden.1")]
    master.replies["create_run"] = lambda _: (False, "BAD_SPEC", "no", {"errors": faults})
    page.locator("#start").get_by_role("button", name="Start").click()
    expect(page.locator("#start-lr-fault")).to_have_text("no inner.lr")
    expect(page.locator("#start-hidden-fault")).to_have_text("no model.hidden.1")
    expect(page.get_by_label("Learning rate")).to_be_focused()


def test_what_is_asked_again_for_want_of_an_answer_is_done_once(
    page: Page, master: ScriptedMaster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("services.console.link.COMMAND_S", 0.5)
    create = page.get_by_role("button", name="Create join string")
    master.lose_replies = 1_000
    create.click()
    expect(page.locator("#join .notice")).to_contain_text("The master does not answer. no answer to create_join_string")
    master.lose_replies = 0
    create.click()
    expect(page.locator("#join .command")).to_have_text(f"mahe join {cluster.JOIN_STRING}")
    assert [one["name"] for one in master.commands].count("create_join_string") == 1
    create.click()  # this is a new one
    wait_until(lambda: [one["name"] for one in master.commands].count("create_join_string") == 2)


def test_clipped_rounds_and_mismatches_are_shown_when_there_are_any(page: Page, master: ScriptedMaster) -> None:
    row = page.locator("#workers tbody tr").nth(1)
    expect(row).to_contain_text("lab-pc-01")
    expect(row.locator(".mark").first).to_be_hidden()
    master.say("WORKER", "clipped", cluster.worker(1, "lab-pc-01", clipped_rounds=3, mismatches=2))
    expect(row.locator(".mark")).to_have_text(["△ 3 clipped", "▲ 2 mismatches"])
    expect(row.get_by_role("img", name="was scaled down: 3")).to_have_attribute("title", re.compile("much larger"))
    expect(row.get_by_role("img", name="other numbers than the master: 2")).to_be_visible()


def test_a_chinese_browser_gets_a_chinese_page(
    browser: Browser, master: ScriptedMaster, console: RunningConsole
) -> None:
    prepare(master)
    page = browser.new_page(locale="zh-CN")
    page.goto(console.url)
    expect(page.locator("html")).to_have_attribute("lang", "zh-CN")
    expect(page.get_by_label("怎样训练")).to_have_value("standard")
    expect(page.locator("#start")).to_contain_text("按数据集推荐的值训练")
    expect(page.locator("#start .estimate")).to_contain_text("大约 36 s（电脑：2 台）")
    assert page.evaluate(TABLES_DIFFER) == []
    master.replies["create_join_string"] = lambda _: (False, "ENDPOINT", "no such host", {})
    page.get_by_role("button", name="生成加入串").click()
    expect(page.locator("#join .notice")).to_have_text("主控无法把自己的地址写进加入串。 no such host")
    page.close()


def test_a_machine_is_added(page: Page, master: ScriptedMaster) -> None:
    page.get_by_role("button", name="Create join string").click()
    expect(page.locator("#join .command")).to_have_text(f"mahe join {cluster.JOIN_STRING}")
    assert last_command(master, "create_join_string")["expires_s"] == 3600
    expect(page.locator("#join .rows")).to_contain_text("20 uses left")


def test_a_checkpoint_is_downloaded(page: Page, tmp_path: Path) -> None:
    with page.expect_download() as download:
        page.get_by_role("button", name="Download the checkpoint of round 12").click()
    assert download.value.suggested_filename == "ckpt-12.npz"
    download.value.save_as(tmp_path / "file")
    assert (tmp_path / "file").stat().st_size == 300_000


def test_the_log_holds_still_while_it_is_scrolled_up(page: Page, master: ScriptedMaster) -> None:
    for number in range(80):
        master.say("INFO", f"line {number}")
    expect(page.locator("#log li")).to_have_count(80)
    lines = page.locator("#log .log-lines")
    lines.evaluate("(node) => { node.scrollTop = 0; }")
    page.wait_for_timeout(100)
    master.say("INFO", "one more")
    button = page.get_by_role("button", name="1 new lines")
    expect(button).to_be_visible()
    assert lines.evaluate("(node) => node.scrollTop") == 0
    button.click()
    expect(button).to_be_hidden()
    assert lines.evaluate("(node) => node.scrollHeight - node.scrollTop - node.clientHeight < 5")


def test_hostile_names_and_lines_are_text(page: Page, master: ScriptedMaster) -> None:
    master.say("WORKER", HOSTILE, cluster.worker(1, HOSTILE, reason=HOSTILE, platform=HOSTILE))
    master.say("RUN", HOSTILE, {**cluster.run(12, reason=HOSTILE), "name": HOSTILE})
    expect(page.locator("#log")).to_contain_text("<script>document.title=2</script>")
    expect(page.locator("#workers tbody tr").first).to_contain_text('<img src=x onerror="document.title=1">')
    assert page.title() == "MAHE"
    assert page.locator("main img, main script").count() == 0


def test_a_silent_master_is_stale_and_a_reload_shows_all_again(
    page: Page, master: ScriptedMaster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("services.console.talk.STALE_S", 0.5)
    master.mute = True
    expect(page.locator("#banner")).to_contain_text("Stale since")
    page.reload()
    expect(page.locator("#header")).to_contain_text("stale since")
    expect(page.locator("#run")).to_contain_text("12 / 30")
    master.mute = False
    expect(page.locator("#header")).to_contain_text("●live")
    expect(page.locator("#banner")).to_be_hidden()


def test_the_page_comes_back_after_the_console_was_restarted(
    browser: Browser, master: ScriptedMaster, tmp_path: Path, control_dir: Path
) -> None:
    prepare(master)
    with running_console(tmp_path / "console", control_dir) as first:
        page, seen = open_page(browser, first.url)
        expect(page.locator("#header")).to_contain_text("●live")
    expect(page.locator("#header")).to_contain_text("console not reached since")
    master.change_state(cluster.state(closed=13))
    master.say("ROUND", "while it was away", cluster.history_row(13))
    port = int(first.host.rpartition(":")[2])
    with running_console(tmp_path / "console", control_dir, port=port):
        expect(page.locator("#header")).to_contain_text("●live")
        expect(page.locator("#loss circle")).to_have_count(13)
    assert seen.errors == []
    page.close()


@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_sticks_out(page: Page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.wait_for_timeout(200)
    assert page.evaluate("() => document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0


def test_the_catalog_is_asked_once_however_slow_it_is(page: Page, master: ScriptedMaster) -> None:
    asked: list[str] = []

    def slowly(route: Route) -> None:
        asked.append(route.request.url)
        page.wait_for_timeout(500)
        route.continue_()

    page.route("**/api/v1/datasets*", slowly)
    page.reload()
    expect(page.get_by_label("Data set").locator("option").nth(1)).to_be_attached()
    page.wait_for_timeout(1_000)
    assert len(asked) == 1, "a second answer would take back what was chosen since the first"
