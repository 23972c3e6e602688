"""The view of the runs that were: the table, one run, runs beside each other, and what can be done with them."""

import json
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from services.console.tests import page_runs
from services.console.tests import scripted_cluster as cluster
from services.console.tests.conftest import RunningConsole, last_command
from services.console.tests.pages import HOSTILE, prepare
from services.console.tests.scripted_master import ScriptedMaster, answers
from services.tests.browser.chromium import open_page

pytestmark = pytest.mark.browser


@pytest.fixture
def runs(page: Page, console: RunningConsole, master: ScriptedMaster) -> Page:
    """The view with a run that goes on and six that have ended."""
    page_runs.prepare_runs(master)
    page.goto(console.url + "#/runs")
    expect(page.locator("#runs tbody tr")).to_have_count(7)
    return page


def commands(master: ScriptedMaster, name: str) -> list[dict[str, Any]]:
    return [command for command in master.commands if command["name"] == name]


def test_the_table_tells_best_and_last_and_draws_the_loss(runs: Page) -> None:
    rows = runs.locator("#runs tbody tr")
    expect(rows.nth(0)).to_contain_text("digits at night")
    expect(rows.nth(0)).to_contain_text("▸ running")
    expect(rows.nth(0)).to_contain_text("round 13 of 30: 2 of 4 deltas are in")
    failed = rows.filter(has_text="digits-2")
    expect(failed).to_contain_text("× failed")
    expect(failed).to_contain_text("it diverged twice")
    told = page_runs.rounds_of(2, 20)
    best = min(row["eval_loss"] for row in told)
    assert best < told[-1]["eval_loss"], "the best is not the last"
    expect(failed.locator("td.number").nth(1)).to_contain_text(f"{best:.4f} last {told[-1]['eval_loss']:.4f}")
    expect(failed.locator("td.number").nth(2)).to_contain_text("last 91.8 %")
    expect(failed).to_contain_text("36 s of training")
    spark = failed.get_by_role("img")
    expect(spark).to_have_attribute("aria-label", f"loss from {told[0]['eval_loss']:.4f} to 0.2054 in 20 rounds")


def test_the_row_of_the_run_that_goes_on_moves_and_no_round_is_fetched_twice(
    runs: Page, master: ScriptedMaster
) -> None:
    row = runs.locator("#runs tbody tr").first
    expect(row.locator("td.number").first).to_contain_text("12")
    master.say("ROUND", "round=13 workers=4", cluster.history_row(13))
    master.say("RUN", "", cluster.run(13))
    expect(row.locator("td.number").first).to_contain_text("13")
    label = "loss from {:.4f} to {:.4f} in 13 rounds".format(*(cluster.history_row(at)["eval_loss"] for at in (1, 13)))
    expect(row.get_by_role("img")).to_have_attribute("aria-label", label)
    runs.get_by_role("link", name="Logs", exact=False).first.click()
    runs.get_by_role("link", name="Runs").first.click()
    expect(runs.locator("#runs tbody tr")).to_have_count(7)
    asked = [command["run"] for command in commands(master, "list_rounds")]
    assert sorted(asked) == [f"digits-{number}" for number in range(1, 7)]


def test_older_runs_come_on_request_and_what_is_chosen_stays(
    page: Page, console: RunningConsole, master: ScriptedMaster
) -> None:
    page_runs.prepare_runs(master, count=60)
    page.goto(console.url + "#/runs")
    rows = page.locator("#runs tbody tr")
    expect(rows).to_have_count(50)
    page.get_by_label("Compare try 60").check()
    page.get_by_role("button", name="Older runs").click()
    expect(rows).to_have_count(61)
    expect(page.get_by_role("button", name="Older runs")).to_have_count(0)
    master.say("RUN", "stopped", cluster.run(12, phase="STOPPED", reason="stopped by the operator"))
    expect(rows.first).to_contain_text("■ stopped")
    expect(rows).to_have_count(61)
    expect(page.get_by_label("Compare try 60")).to_be_checked()


def test_an_api_with_cursors_is_paged_by_them(page: Page, console: RunningConsole, master: ScriptedMaster) -> None:
    asked: list[str] = []

    def answer(route: Route) -> None:
        query = route.request.url.partition("?")[2]
        asked.append(query)
        number = 1 if "cursor=a%2Fb" in query else 2
        route.fulfill(json={"items": [page_runs.old_run(number)], "next_cursor": "a/b" if number == 2 else None})

    page_runs.prepare_runs(master)
    page.route("**/api/v1/runs?**", answer)
    page.goto(console.url + "#/runs")
    page.get_by_role("button", name="Older runs").click()
    expect(page.locator("#runs tbody tr")).to_have_count(2)
    expect(page.get_by_role("button", name="Older runs")).to_have_count(0)
    assert asked == ["limit=50", "limit=50&cursor=a%2Fb"]


def test_up_to_five_runs_are_compared(runs: Page) -> None:
    expect(runs.get_by_role("button", name="Compare")).to_be_disabled()
    for number in (6, 1, 3, 4, 5):
        runs.get_by_label(f"Compare try {number}").check()
    expect(runs.get_by_label("Compare try 2")).to_be_disabled()
    runs.get_by_label("Compare try 5").uncheck()
    runs.get_by_label("Compare try 4").uncheck()
    runs.get_by_label("Compare try 3").uncheck()
    runs.get_by_role("link", name="Compare").click()
    legend = runs.locator("#compare-curves .legend")
    expect(legend).to_contain_text("try 6 (digits-6)")
    lines = legend.locator("line")
    dashes = [lines.nth(at).get_attribute("stroke-dasharray") for at in range(2)]
    colors = [lines.nth(at).get_attribute("stroke") for at in range(2)]
    assert dashes[0] != dashes[1] and colors[0] != colors[1]
    settings = runs.locator("#compare-settings tbody tr")
    expect(settings.locator("th")).to_have_text(["name", "k_steps", "encoding", "seed"])
    expect(settings.nth(2).locator("td")).to_have_text(["int8", "fp32"])
    expect(runs.locator("#compare-settings .meta")).to_contain_text("others are the same")
    results = runs.locator("#compare-results tbody tr")
    expect(results.filter(has_text="Best loss").locator("td").nth(1)).to_contain_text("0.1473 ★ best")
    runs.locator("#metric").select_option("accuracy")
    expect(runs.locator("#compare-curves figcaption")).to_contain_text("Accuracy")
    runs.reload()
    expect(settings).to_have_count(4)
    runs.get_by_role("link", name="All runs").click()
    expect(runs.locator("#runs tbody tr")).to_have_count(7)


def test_a_rerun_starts_the_same_specification(runs: Page, master: ScriptedMaster) -> None:
    runs.get_by_role("button", name="Rerun try 1 (digits-1)").click()
    expect(runs.locator("#runs")).to_contain_text("Started: digits-8")
    told = last_command(master, "create_run")["spec"]
    wanted = page_runs.old_run(1, spec={"encoding": "fp32", "k_steps": 25})["spec"]
    assert {name: told[name] for name in wanted} == wanted
    master.replies["create_run"] = lambda _: (False, "RUN_ACTIVE", "run run-7 goes on; stop it first", {})
    runs.get_by_role("button", name="Rerun try 3 (digits-3)").click()
    expect(runs.locator("#runs tbody tr").filter(has_text="try 3")).to_contain_text("run run-7 goes on; stop it first")


def test_one_run_in_detail(runs: Page, master: ScriptedMaster, tmp_path: Path) -> None:
    runs.get_by_role("link", name="try 2", exact=True).click()
    detail = runs.locator("#run-detail")
    expect(detail).to_contain_text("it diverged twice")
    expect(detail).to_contain_text("0.2047")
    expect(detail).to_contain_text("last 0.2054")
    expect(runs.locator("#run-loss figcaption")).to_contain_text("20 rounds")
    best = runs.locator("#evaluations tr.best")
    expect(best).to_contain_text("19 ★ best")
    expect(runs.locator("#run-settings")).to_contain_text("inner.lr")
    expect(runs.locator("#confusion")).to_contain_text("comes with trying the model")
    with runs.expect_download() as download:
        detail.get_by_role("button", name="Export as JSON").click()
    assert download.value.suggested_filename == "mahe-digits-2.json"
    download.value.save_as(tmp_path / "run.json")
    exported = json.loads((tmp_path / "run.json").read_text("utf-8"))
    assert exported["run"]["spec"] == page_runs.old_run(2)["spec"]
    assert exported["rounds"] == page_runs.rounds_of(2, 20)


def test_checkpoints_are_downloaded_and_read_again_while_rounds_close(
    runs: Page, master: ScriptedMaster, tmp_path: Path
) -> None:
    runs.get_by_role("link", name="digits at night", exact=True).click()
    for name in ("Download the best", "Download the latest", "Download the checkpoint of round 12"):
        with runs.expect_download() as download:
            runs.get_by_role("button", name=name).click()
        assert download.value.suggested_filename == "ckpt-12.npz"
        download.value.save_as(tmp_path / "file")
        assert (tmp_path / "file").read_bytes() == b"z" * 300_000
    rows = runs.locator("#checkpoints li")
    expect(rows).to_have_text(["round 12 ★ best ● latest293.0 KiBDownload"])
    sha256 = master.keep_file(b"y" * 5_000)
    newer = {"round": 13, "bytes": 5_000, "sha256": sha256, "best": False}
    master.replies["list_checkpoints"] = answers({"items": [newer]})
    runs.get_by_role("button", name="Download the checkpoint of round 12").click()  # pruned meanwhile
    expect(runs.locator("#checkpoints [role=alert]")).to_contain_text("keeps no checkpoint of round 12")
    expect(rows).to_have_text(["round 13 ● latest4.9 KiBDownload"])
    master.replies["list_checkpoints"] = answers({"items": [newer, {**newer, "round": 14, "best": True}]})
    master.say("RUN", "", cluster.run(14))
    expect(rows.first).to_contain_text("round 14 ★ best")


def test_a_run_whose_rounds_cannot_be_read_says_so_and_tries_again(
    page: Page, console: RunningConsole, master: ScriptedMaster
) -> None:
    page_runs.prepare_runs(master)
    answer = master.replies["list_rounds"]
    master.replies["list_rounds"] = lambda _: (False, "STORE", "the store cannot be read; check the disk", {})
    page.goto(console.url + "#/runs/digits-3")
    expect(page.locator("#run-detail")).to_contain_text("The rounds could not be read.")
    master.replies["list_rounds"] = answer
    page.get_by_role("button", name="Try again").click()
    expect(page.locator("#evaluations tbody tr")).to_have_count(20)
    page.goto(console.url + "#/runs/digits-77")
    expect(page.locator("#run-detail [role=alert]")).to_contain_text("there is no run digits-77")


def test_an_empty_list_says_what_will_be_there(page: Page, console: RunningConsole) -> None:
    page.goto(console.url + "#/runs")
    expect(page.locator("#runs")).to_contain_text("Each run stays here")
    expect(page.locator("#runs")).to_contain_text("docs/USER_GUIDE.md")
    page.goto(console.url + "#/runs/compare/digits-1")
    expect(page.locator("#runs")).to_contain_text("Choose at least two runs")


def test_hostile_names_are_text_in_every_part(page: Page, console: RunningConsole, master: ScriptedMaster) -> None:
    told = page_runs.old_run(1, spec={"name": HOSTILE, "encoding": HOSTILE}, reason=HOSTILE)
    page_runs.serve_runs(master, [page_runs.old_run(2), told], 20)
    for view in ("runs", "runs/digits-1", "runs/compare/digits-1/digits-2"):
        page.goto(console.url + "#/" + view)
        expect(page.locator("main")).to_contain_text('<img src=x onerror="document.title=1">')
        assert page.title() == "MAHE"
        assert page.locator("main img, main script").count() == 0


@pytest.mark.parametrize("view", ["runs", "runs/digits-2", "runs/compare/digits-6/digits-1/digits-2/digits-3/run-7"])
def test_nothing_sticks_out_in_either_language(
    browser: Browser, console: RunningConsole, master: ScriptedMaster, view: str
) -> None:
    prepare(master)
    page_runs.prepare_runs(master)
    page, seen = open_page(browser, console.url + "#/" + view)
    for language in ("en", "zh-CN"):
        page.locator("#language").select_option(language)
        expect(page.locator("html")).to_have_attribute("lang", language)
        for width in (320, 800, 1000, 1440, 2560):
            page.set_viewport_size({"width": width, "height": 900})
            page.wait_for_timeout(100)
            out = page.evaluate("() => document.documentElement.scrollWidth - document.documentElement.clientWidth")
            assert out == 0, (view, language, width)
    assert seen.errors == []
    page.close()
