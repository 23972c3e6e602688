"""The Training view in Chromium: what the form holds and keeps, what it asks for, what it says of faults; the queue."""

import pytest
from playwright.sync_api import Browser, Locator, Page, Route, expect

from services.common.protocol.spec import RunSpec
from services.console.tests import scripted_cluster as cluster
from services.console.tests.conftest import RunningConsole, last_command
from services.console.tests.pages import HOSTILE, prepare
from services.console.tests.scripted_master import ScriptedMaster

pytestmark = pytest.mark.browser
LIMITS = """async () => (await import("./static/js/views/training/choices.js")).LIMITS"""
DEFAULTS = """async () => (await import("./static/js/views/training/choices.js")).advised()"""
PLACES = """async (texts) => {
    const { placeOf } = await import("./static/js/views/training/reading.js");
    return texts.map((text) => placeOf(text) ?? null);
}"""
QUEUE = [
    {"id": "run-8", "name": "at noon", "dataset": "rings4", "rounds_total": 20, "position": 1},
    {"id": "run-9", "name": HOSTILE, "dataset": "digits", "rounds_total": 30, "position": 2},
]
WIDTHS = [320, 800, 1440, 2560]


@pytest.fixture
def page(training: Page) -> Page:
    return training


def field(page: Page, label: str) -> Locator:
    return page.get_by_label(label, exact=True)


def start(page: Page) -> None:
    page.locator("#start").get_by_role("button", name="Start", exact=True).click()


def refuse(master: ScriptedMaster, code: str, text: str, *errors: dict[str, str]) -> None:
    master.replies["create_run"] = lambda _: (False, code, text, {"errors": list(errors)} if errors else {})


def test_a_data_set_is_picked_by_its_facts_and_brings_its_recommendation(page: Page, master: ScriptedMaster) -> None:
    form = page.locator("#start")
    expect(page.get_by_role("radiogroup", name="Data set")).to_contain_text("2 data sets, read at")
    expect(form).to_contain_text("2 dimensions 4 classes 1,600 + 400 train + held out")
    expect(form).to_contain_text("Recommended: mlp 32-32 · adamw 0.01 · 20 rounds × 40 steps × 16 samples")
    expect(page.get_by_role("radio", name="Handwritten digits")).to_be_checked()
    page.get_by_role("radio", name="Four rings").check()
    expect(field(page, "Rounds")).to_have_value("20")
    start(page)
    expect(form).to_contain_text("Started: digits-8")
    spec = last_command(master, "create_run")["spec"]
    assert (spec["dataset"], spec["name"]) == ("rings4", "rings4")
    assert (spec["rounds"], spec["k_steps"], spec["batch"]) == (20, 40, 16)
    assert spec["model"] == {"family": "mlp", "hidden": [32, 32]}
    assert spec["inner"] == {"name": "adamw", "lr": 0.01}
    assert (spec["encoding"], spec["k_auto"], spec["patience"]) == ("int8", True, 10)


def test_a_preset_fills_the_form_and_says_what_it_is_good_for(page: Page, master: ScriptedMaster) -> None:
    form = page.locator("#start")
    expect(page.get_by_role("radio", name="Standard")).to_be_checked()
    expect(form).to_contain_text("right for most runs")
    expect(form).to_contain_text("60 rounds × 100 steps × 32 samples")
    page.get_by_role("radio", name="Standard").press("ArrowRight")
    expect(page.get_by_role("radio", name="Thorough")).to_be_checked()
    expect(field(page, "Rounds")).to_have_value("60")
    expect(field(page, "Local steps")).to_have_value("100")
    page.get_by_role("radio", name="Four rings").check()
    expect(field(page, "Rounds")).to_have_value("60")
    start(page)
    expect(form).to_contain_text("Started: digits-8")
    spec = last_command(master, "create_run")["spec"]
    assert (spec["rounds"], spec["k_steps"], spec["batch"]) == (60, 100, 16)
    assert spec["inner"] == {"name": "adamw", "lr": 0.01, "schedule": "cosine", "warmup": 0.05}
    assert spec["outer"] == {"name": "nesterov", "lr": 0.7, "mu": 0.6}


def test_a_value_by_hand_is_marked_stays_and_can_be_set_back(page: Page, master: ScriptedMaster) -> None:
    form = page.locator("#start")
    expect(form.get_by_text("changed")).to_have_count(0)
    field(page, "Rounds").fill("7")
    field(page, "Local steps").fill("25")
    expect(form).to_contain_text("2 values are yours")
    page.get_by_role("radio", name="Quick").check()
    page.get_by_role("radio", name="Four rings").check()
    expect(field(page, "Rounds")).to_have_value("7")
    back = form.get_by_role("button", name="Back to 10")
    expect(back).to_contain_text("changed")
    back.press("Enter")
    expect(field(page, "Rounds")).to_have_value("10")
    expect(field(page, "Rounds")).to_be_focused()
    expect(form).to_contain_text("One value is yours")
    field(page, "Rounds").fill("10")
    expect(form.get_by_role("button", name="Back to 10")).to_have_count(0)
    start(page)
    expect(form).to_contain_text("Started: digits-8")
    spec = last_command(master, "create_run")["spec"]
    assert (spec["rounds"], spec["k_steps"]) == (10, 25)
    form.get_by_role("button", name="Set all back").click()
    expect(field(page, "Local steps")).to_have_value("50")


def test_what_was_typed_stays_over_events_refresh_and_other_views(page: Page, master: ScriptedMaster) -> None:
    page.get_by_role("radio", name="Four rings").check()
    page.get_by_role("radio", name="Thorough").check()
    field(page, "Name").fill("my rings")
    page.locator("#start summary").click()
    field(page, "Hidden layers").fill("8, 8")
    field(page, "Model file").fill("/tmp/mine.npz")
    field(page, "Rounds").fill("12")
    for number in (13, 14):
        master.say("ROUND", f"round={number} workers=4", cluster.history_row(number))
        master.say("RUN", "", cluster.run(number))
    expect(page.locator("#run")).to_contain_text("14 / 30")
    expect(field(page, "Rounds")).to_be_focused()
    page.get_by_role("button", name="Refresh").click()
    page.get_by_role("link", name="Logs").click()
    expect(page.locator("#start")).to_have_count(0)
    page.go_back()
    expect(page.get_by_role("radio", name="Four rings")).to_be_checked()
    expect(page.get_by_role("radio", name="Thorough")).to_be_checked()
    for label, value in {"Name": "my rings", "Hidden layers": "8, 8", "Rounds": "12"}.items():
        expect(field(page, label)).to_have_value(value)
    expect(field(page, "Model file")).to_have_value("/tmp/mine.npz")


def test_refresh_shows_new_data_sets_and_says_that_one_is_gone(page: Page, master: ScriptedMaster) -> None:
    field(page, "Rounds").fill("5")
    new = {**cluster.DATASETS[1], "name": "mine", "title": HOSTILE, "description": HOSTILE}
    master.replies["list_datasets"] = lambda _: (True, "OK", "", {"items": [cluster.DATASETS[1], new]})
    page.get_by_role("button", name="Refresh").click()
    expect(page.get_by_role("radio", name="img src=x")).to_be_visible()
    expect(page.locator("#start")).to_contain_text("“digits” is no longer in the catalog")
    expect(field(page, "Rounds")).to_have_value("5")
    start(page)
    expect(page.locator("#start-dataset-fault")).to_have_text("choose a data set, please")
    expect(page.locator("#start [aria-invalid=true]").first).to_be_focused()
    assert page.title() == "MAHE"
    assert page.locator("main img").count() == 0


def test_the_catalog_is_asked_once_however_slow_it_is(page: Page) -> None:
    asked: list[str] = []

    def slowly(route: Route) -> None:
        asked.append(route.request.url)
        page.wait_for_timeout(500)
        route.continue_()

    page.route("**/api/v1/datasets*", slowly)
    page.reload()
    expect(page.get_by_role("radio", name="Four rings")).to_be_attached()
    page.wait_for_timeout(1_000)
    assert len(asked) == 1, "a second answer would take the focus and the time of reading"


def test_what_is_no_number_is_said_beside_its_field(page: Page, master: ScriptedMaster) -> None:
    page.get_by_label("Local steps").fill("0")
    page.get_by_label("Batch").fill("32.5")
    field(page, "Rounds").fill("many")
    start(page)
    expect(page.locator("#start-rounds-fault")).to_have_text("a whole number from 1 to 1,000,000, please")
    expect(page.locator("#start-k-steps-fault")).to_contain_text("a whole number from 1 to 100,000")
    expect(page.locator("#start-batch-fault")).to_contain_text("from 8 to 65,536")
    expect(field(page, "Rounds")).to_be_focused()
    page.locator("#language").select_option("zh-CN")
    expect(page.locator("#start-rounds-fault")).to_have_text("请填 1 到 1,000,000 的整数")
    page.locator("#language").select_option("en")
    field(page, "Rounds").fill("１５")  # as a Chinese keyboard types it
    expect(page.locator("#start-rounds-fault")).to_be_hidden()
    page.get_by_label("Local steps").fill("25")
    page.get_by_label("Batch").fill("64")
    start(page)
    expect(page.locator("#start")).to_contain_text("Started: digits-8")
    spec = last_command(master, "create_run")["spec"]
    assert (spec["rounds"], spec["k_steps"], spec["batch"]) == (15, 25, 64)
    assert len([command for command in master.commands if command["name"] == "create_run"]) == 1


def test_the_forms_limits_and_defaults_are_those_of_the_specification(page: Page) -> None:
    schema = RunSpec.model_json_schema()["properties"]
    limits = page.evaluate(LIMITS)
    for name, (low, high) in limits.items():
        if name in schema:
            assert (schema[name]["minimum"], schema[name]["maximum"]) == (low, high), name
    defaults = page.evaluate(DEFAULTS)
    for name in defaults.keys() & schema.keys() - {"outer"}:
        assert defaults[name] == schema[name]["default"], name


def test_what_the_master_refuses_shows_beside_its_field(page: Page, master: ScriptedMaster) -> None:
    fault = {"field": "inner.lr", "code": "BAD_SPEC", "message": "lr is 0.1, allowed is less"}
    other = {"field": "model.hidden", "code": "BAD_SPEC", "message": "too wide"}
    refuse(master, "BAD_SPEC", "two values are not allowed", fault, other)
    expect(page.get_by_label("Learning rate")).to_be_hidden()
    start(page)
    expect(page.locator("#start-lr-fault")).to_have_text("lr is 0.1, allowed is less")
    expect(page.locator("#start-hidden-fault")).to_have_text("too wide")
    expect(page.get_by_label("Learning rate")).to_be_focused()
    expect(page.locator("#start")).not_to_contain_text("two values are not allowed")
    refuse(master, "BAD_SPEC", "field model_path is '/x.npz': it cannot be written; name another file")
    start(page)
    expect(page.locator("#start-model-path-fault")).to_contain_text("name another file")
    expect(page.locator("#start-lr-fault")).to_be_hidden()
    refuse(master, "QUEUE_FULL", "20 runs wait already; take one out")
    start(page)
    expect(page.locator("#start [role=alert]")).to_contain_text("20 runs wait already; take one out")


def test_faults_find_their_fields(page: Page) -> None:
    texts = {
        "inner.lr": "lr",
        "model.family": "hidden",
        "rounds_in_flight is 2; balance=units carries nothing": "rounds_in_flight",
        "Value error, balance is units; aggregator=median weighs all alike: use equal": "balance",
        "k_steps_max": "k_auto",
        "outer.mu": "outer",
        "the disk is full": None,
        "": None,
    }
    assert page.evaluate(PLACES, list(texts)) == list(texts.values())


def test_a_fault_in_the_closed_part_opens_it(page: Page) -> None:
    summary = page.locator("#start summary")
    summary.click()
    page.get_by_label("Aggregator").select_option("median")
    page.get_by_label("Balance").select_option("proportional")
    summary.click()
    expect(page.get_by_label("Balance")).to_be_hidden()
    start(page)
    expect(page.locator("#start-balance-fault")).to_contain_text("weighs all alike: use equal")
    expect(page.get_by_label("Balance")).to_be_focused()


def test_the_advanced_part_is_opened_and_used_by_keyboard(page: Page, master: ScriptedMaster) -> None:
    for name in ("Encoding", "Outer optimizer", "Inner optimizer", "Aggregator", "Balance", "Rounds in flight"):
        expect(page.get_by_label(name)).to_be_hidden()
    page.locator("#start summary").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_label("Encoding")).to_be_visible()
    page.keyboard.press("Tab")
    page.keyboard.type("int4")
    expect(page.get_by_role("button", name="Back to int8")).to_be_visible()
    page.get_by_label("Outer optimizer").focus()
    page.keyboard.type("nesterov 0.7/0.6")
    page.get_by_label("Inner optimizer").focus()
    page.keyboard.type("adamw")
    expect(page.get_by_label("Learning rate")).to_have_value("0.001")
    page.get_by_label("Aggregator").focus()
    page.keyboard.type("median")
    expect(page.get_by_label("Balance")).to_have_value("equal")
    page.get_by_label("Rounds in flight").focus()
    page.keyboard.type("1")
    page.get_by_label("Longer rounds").focus()
    page.keyboard.press("Space")
    page.locator("#start-name").focus()
    page.keyboard.type("by keys")
    page.keyboard.press("Enter")
    expect(page.locator("#start")).to_contain_text("Started: digits-8")
    spec = last_command(master, "create_run")["spec"]
    assert (spec["encoding"], spec["aggregator"], spec["balance"]) == ("int4", "median", "equal")
    assert (spec["rounds_in_flight"], spec["k_auto"], spec["name"]) == (1, False, "by keys")
    assert spec["inner"] == {"name": "adamw", "lr": 0.001}
    assert spec["outer"] == {"name": "nesterov", "lr": 0.7, "mu": 0.6}


def test_the_estimate_follows_the_form_and_the_workers(page: Page, master: ScriptedMaster) -> None:
    estimate = page.locator("#start .estimate")
    # 30 rounds of 50 steps of 32 samples on two workers of 900 and 1,800 samples/s.
    expect(estimate).to_contain_text("About 36 s (PCs: 2) · 66.8 passes over the data · 35.2 KiB a round")
    expect(estimate).to_contain_text("One PC alone finishes in 53 s: you need no second one.")
    expect(estimate.locator("li").first).to_contain_text("△ So many passes tend to be learnt by heart")
    field(page, "Rounds").fill("300")
    expect(estimate).to_contain_text("About 6:02 min")
    expect(estimate).to_contain_text("2 PCs are 1.5 times as fast as the fastest alone.")
    field(page, "Rounds").fill("many")
    expect(estimate).to_be_hidden()
    expect(page.locator("#start-rounds-fault")).to_be_hidden()
    field(page, "Rounds").fill("300")
    expect(estimate).to_be_visible()
    master.say("WORKER", "lab-pc-01 has left", {"id": "w1", "gone": True})
    expect(estimate).to_contain_text("One PC is here")
    assert [command for command in master.commands if command["name"] == "create_run"] == []


def test_momentum_in_a_short_run_is_warned_of_while_choosing(page: Page) -> None:
    warning = page.locator("#start .notice.warn")
    expect(warning).to_be_hidden()
    page.get_by_role("radio", name="Long").check()
    expect(warning).to_be_hidden()
    field(page, "Rounds").fill("40")
    expect(warning).to_have_text(
        "△ Momentum 0.9 needs about 100 rounds; this run has 40. Better: nesterov 0.7/0.6, or fedavg."
    )
    field(page, "Rounds").fill("20")
    expect(warning).to_contain_text("Better: fedavg.")
    field(page, "Rounds").fill("100")
    expect(warning).to_be_hidden()


def test_a_chinese_browser_gets_a_chinese_form(
    browser: Browser, master: ScriptedMaster, console: RunningConsole
) -> None:
    prepare(master)
    page = browser.new_page(locale="zh-CN", reduced_motion="reduce")
    page.goto(f"{console.url}#/training")
    expect(page.get_by_role("radio", name="标准")).to_be_checked()
    form = page.locator("#start")
    expect(form).to_contain_text("按数据集推荐的值训练")
    expect(form).to_contain_text("手写数字")
    expect(form.locator(".estimate")).to_contain_text("大约 36 秒（电脑：2 台）")
    page.close()


@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_sticks_out(page: Page, master: ScriptedMaster, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.locator("#start summary").click()
    page.get_by_label("Encoding").select_option("topk")
    page.get_by_label("Batch").fill("x" * 60)
    master.say("QUEUE", "", {"queue": QUEUE})
    start(page)
    expect(page.locator("#start-batch-fault")).to_be_visible()
    assert page.evaluate("() => document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0
