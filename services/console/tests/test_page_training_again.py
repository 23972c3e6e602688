"""The Training view filled from a run that was, in Chromium; and what the master warns of when a run is started."""

import pytest
from playwright.sync_api import Locator, Page, expect

from services.console.tests import scripted_cluster as cluster
from services.console.tests.conftest import RunningConsole, last_command
from services.console.tests.page_runs import old_run, prepare_runs, serve_runs
from services.console.tests.pages import HOSTILE
from services.console.tests.scripted_master import ScriptedMaster, answers

pytestmark = pytest.mark.browser
WARNING = "outer momentum 0.8 needs about 50 rounds; this run has 20: use mu 0.6 or fedavg"
SPEC = {
    **cluster.run(0)["spec"],
    "name": "rings, slowly",
    "dataset": "rings4",
    "model": {"family": "mlp", "hidden": [16, 16]},
    "inner": {"name": "adamw", "lr": 0.003, "weight_decay": 0.1, "schedule": "cosine", "warmup": 0.1},
    "outer": {"name": "nesterov", "lr": 0.7, "mu": 0.8},
    "rounds": 20,
    "min_workers": 1,
    "aggregator": "trimmed",
    "trim": 2,
    "balance": "equal",
    "minutes_max": 7.5,
    "seed": 41,
}


def field(page: Page, label: str) -> Locator:
    return page.get_by_label(label, exact=True)


def press_start(page: Page) -> None:
    page.locator("#start").get_by_role("button", name="Start", exact=True).click()


@pytest.fixture
def again(page: Page, console: RunningConsole, master: ScriptedMaster) -> Page:
    """The form filled from `digits-3`, by the link in the table of runs."""
    runs = [old_run(4), old_run(3, spec=SPEC), old_run(2, spec={**SPEC, "name": HOSTILE})]
    serve_runs(master, runs, closed=20)
    page.goto(f"{console.url}#/runs")
    page.get_by_role("link", name="Change and start rings, slowly (digits-3)").click()
    expect(page.locator("#start .from-run")).to_be_visible()
    return page


def test_change_and_start_fills_the_form_and_starts_what_was_changed(again: Page, master: ScriptedMaster) -> None:
    form = again.locator("#start")
    expect(form.locator(".from-run")).to_contain_text("Filled in from the run rings, slowly (digits-3).")
    expect(form.locator(".from-run").get_by_role("link")).to_have_attribute("href", "#/runs/digits-3")
    others = "inner.weight_decay 0.1 · inner.schedule cosine · inner.warmup 0.1"
    others += " · outer.name nesterov · outer.lr 0.7 · outer.mu 0.8 · trim 2 · seed 41"
    expect(form.locator(".from-run code")).to_have_text(others)
    expect(again.get_by_role("radio", name="Four rings")).to_be_checked()
    expect(again.get_by_role("radio", name="As that run")).to_be_checked()
    again.locator("#start summary").click()
    shown = {"Rounds": "20", "Name": "rings, slowly", "Learning rate": "0.003", "Hidden layers": "16, 16"}
    shown |= {"Aggregator": "trimmed", "Balance": "equal", "Outer optimizer": "own", "Minutes at most": "7.5"}
    for label, value in shown.items():
        expect(field(again, label)).to_have_value(value)
    expect(form.get_by_text("changed")).to_have_count(0)
    field(again, "Rounds").fill("60")
    field(again, "Learning rate").fill("0.001")
    expect(form.get_by_role("button", name="Back to 20")).to_be_visible()
    press_start(again)
    expect(form).to_contain_text("Started: digits-8")
    spec = last_command(master, "create_run")["spec"]
    expected = {**SPEC, "rounds": 60, "inner": {**SPEC["inner"], "lr": 0.001}}
    assert {name: spec[name] for name in expected} == expected


def test_what_was_changed_stays_over_other_views_and_another_way_to_train_takes_over(
    again: Page, master: ScriptedMaster
) -> None:
    field(again, "Rounds").fill("60")
    again.get_by_role("link", name="Logs").click()
    expect(again.locator("#start")).to_have_count(0)
    again.go_back()
    expect(field(again, "Rounds")).to_have_value("60")
    again.get_by_role("radio", name="Thorough").check()
    expect(field(again, "Local steps")).to_have_value("100")
    again.get_by_role("radio", name="As that run").check()
    expect(field(again, "Local steps")).to_have_value("50")
    again.get_by_role("button", name="Usual form").click()
    expect(again.locator("#start .from-run")).to_have_count(0)
    expect(again.get_by_role("radio", name="Standard")).to_be_checked()
    expect(again).to_have_url(f"{again.url.split('#')[0]}#/training")
    press_start(again)
    expect(again.locator("#start")).to_contain_text("Started: digits-8")
    spec = last_command(master, "create_run")["spec"]
    assert (spec["rounds"], spec["name"], spec["seed"]) == (60, "rings4", 7)


def test_an_unknown_run_is_said_and_the_usual_form_is_there(
    page: Page, console: RunningConsole, master: ScriptedMaster
) -> None:
    prepare_runs(master)
    page.goto(f"{console.url}#/training/digits-77")
    expect(page.locator("#start [role=alert]")).to_have_text("△ There is no run digits-77: this is the usual form.")
    expect(page.get_by_role("radio", name="Standard")).to_be_checked()
    press_start(page)
    expect(page.locator("#start")).to_contain_text("Started: digits-8")
    page.locator("#language").select_option("zh-CN")
    page.goto(f"{console.url}#/training/..%2f")
    expect(page.locator("#start [role=alert]")).to_contain_text("没有 ../ 这次训练")


def test_a_hostile_name_in_the_form_is_text(again: Page, console: RunningConsole) -> None:
    again.goto(f"{console.url}#/training/digits-2")
    expect(again.locator("#start .from-run")).to_contain_text("<img src=x")
    assert again.title() == "MAHE"
    assert again.locator("main img").count() == 0


def test_what_the_master_warns_of_is_said_after_start_and_rerun(again: Page, master: ScriptedMaster) -> None:
    master.replies["create_run"] = answers({"run": "digits-8", "warnings": [WARNING]})
    press_start(again)
    expect(again.locator("#start")).to_contain_text("Started: digits-8")
    expect(again.locator("#start ul.notice [lang=en]")).to_have_text(f"△ {WARNING}")
    again.get_by_role("link", name="Runs").click()
    again.get_by_role("button", name="Rerun rings, slowly").click()
    expect(again.locator(".rerun").filter(has_text="digits-8")).to_contain_text(WARNING)


@pytest.mark.parametrize("width", [320, 800, 1440])
def test_nothing_sticks_out(again: Page, width: int) -> None:
    again.set_viewport_size({"width": width, "height": 900})
    assert again.evaluate("() => document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0
