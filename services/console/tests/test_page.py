"""The page in Chromium against a scripted master: its frame, the dashboard, the stream, and what it never does."""

import gzip
import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from services.console.page import FOLDER, TYPES
from services.console.tests import scripted_cluster as cluster
from services.console.tests.conftest import RunningConsole, last_command, running_console
from services.console.tests.pages import HOSTILE, prepare
from services.console.tests.scripted_master import ScriptedMaster

pytestmark = pytest.mark.browser
VIEWS = ["dashboard", "training", "runs", "cluster", "logs", "try", "deploy", "assistant"]
WIDTHS = [320, 360, 800, 1440, 2560]
PAGE_BYTES_MAX = 150 * 1024  # by gzip, all of it
IN_THE_DOCS = re.compile(r"(docs/[\w.-]+\.md)(?: · (.+))?")
FIGURES = """async () => {
    const shown = await import("./static/js/core/format.js");
    const at = new Date(2026, 11, 1, 9, 5, 7).getTime();
    const figures = [shown.date(at), shown.time(at), shown.integer(1234567), shown.percent(0.926), shown.loss(0.5)];
    return [...figures, shown.duration(42), shown.duration(187), shown.duration(7500), shown.bytes(1536)];
}"""
IN_ENGLISH = ["1 Dec, 09:05", "09:05:07", "1,234,567", "92.6 %", "0.5000", "42 s", "3:07 min", "2:05 h", "1.5 KiB"]
IN_CHINESE = ["12月1日 09:05", "09:05:07", "1,234,567", "92.6%", "0.5000"]
IN_CHINESE += ["42 秒", "3 分 07 秒", "2 小时 05 分", "1.5 KiB"]
USED = re.compile(r'\bt\(\s*"([^"]+)"')


def tables() -> dict[str, dict[str, str]]:
    """Language -> key -> sentence."""
    return {path.stem: json.loads(path.read_text("utf-8")) for path in sorted((FOLDER / "i18n").glob("*.json"))}


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
    expect(page.locator("#loss-chart figcaption")).to_have_text(
        re.compile(r"Loss, eval 0\.\d+ at 14; 14 rounds in all")
    )


def test_the_curve_is_read_with_keys_and_as_a_table(page: Page) -> None:
    plot, readout = page.locator("#loss-chart .plot"), page.locator("#loss-chart .readout")
    plot.focus()
    page.keyboard.press("Home")
    expect(readout).to_contain_text("1: eval 1.")
    page.keyboard.press("End")
    expect(readout).to_contain_text("12: eval 0.")
    page.keyboard.press("ArrowLeft")
    expect(readout).to_contain_text("11: eval 0.")
    page.locator("#loss-chart summary").click()
    expect(page.locator("#loss-chart tbody tr")).to_have_count(12)


def test_what_was_zoomed_to_is_held_until_follow(page: Page, master: ScriptedMaster) -> None:
    box = page.locator("#loss-chart .u-over").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] * 0.2, box["y"] + 40)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.6, box["y"] + 60, steps=4)
    page.mouse.up()
    follow = page.locator("#loss-chart").get_by_role("button", name="Follow")
    expect(follow).to_be_visible()
    master.say("ROUND", "round=13 workers=4", cluster.history_row(13))
    expect(page.locator("#loss-chart figcaption")).to_contain_text("at 13")
    expect(follow).to_be_visible()
    follow.click()
    expect(follow).to_be_hidden()


def test_the_axis_is_chosen_and_kept(page: Page) -> None:
    page.get_by_label("against").select_option("time")
    expect(page.locator("#loss-chart figcaption")).to_contain_text("at 22 s")
    page.get_by_label("against").select_option("bytes")
    expect(page.locator("#loss-chart figcaption")).to_contain_text("at 3.5 MiB")
    page.reload()
    expect(page.get_by_label("against")).to_have_value("bytes")


def test_bytes_saved_come_with_their_formula(page: Page) -> None:
    # 12 rounds of 6,400 samples in batches of 32: 2,400 steps; 8 bytes x 8,970 x 2,400 against 12 x 301,480 bytes.
    expect(page.locator("#savings")).to_contain_text("47.6 ×")
    expect(page.locator("#savings")).to_contain_text("2 × 4 bytes × 8,970 parameters × 2,400 local steps = 164.2 MiB")


def test_stop_asks_first(page: Page, master: ScriptedMaster) -> None:
    stop = page.locator("#run").get_by_role("button", name="Stop")
    stop.click()
    expect(page.get_by_role("dialog")).to_contain_text("Stop this run?")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()
    expect(stop).to_be_focused()
    assert not [command for command in master.commands if command["name"] == "stop_run"]
    stop.click()
    page.get_by_role("dialog").get_by_role("button", name="Stop").click()
    assert last_command(master, "stop_run")["run"] == "run-7"


def test_try_it_now_starts_the_bundled_data_at_once(page: Page, master: ScriptedMaster) -> None:
    master.say("RUN", "stopped", cluster.run(12, phase="STOPPED", reason="stopped by the operator"))
    page.get_by_role("button", name="Try it now").click()
    spec = last_command(master, "create_run")["spec"]
    assert (spec["dataset"], spec["min_workers"]) == ("digits", 1)


def test_every_view_has_its_address_its_key_and_its_heading(page: Page) -> None:
    for at, name in enumerate(VIEWS, start=1):
        page.keyboard.press(str(at))
        expect(page.locator(f"main.view-{name} h1")).to_be_attached()
        assert page.evaluate("() => location.hash") == f"#/{name}"
        expect(page.locator(f".nav [href='#/{name}']")).to_have_attribute("aria-current", "page")
    page.go_back()
    expect(page.locator("main.view-deploy")).to_be_attached()


def test_theme_language_and_calm_are_kept(page: Page) -> None:
    page.get_by_role("button", name="Light theme").click()
    page.get_by_role("button", name="Calm").click()
    page.get_by_label("Language").select_option("zh-CN")
    expect(page.locator("html")).to_have_attribute("lang", "zh-CN")
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-theme", "light")
    expect(page.locator("html")).to_have_class("calm")
    expect(page.locator("#run h2")).to_have_text("现在的情况")


def test_a_chinese_browser_gets_a_chinese_page(
    browser: Browser, master: ScriptedMaster, console: RunningConsole
) -> None:
    prepare(master)
    page = browser.new_page(locale="zh-CN")
    page.goto(console.url)
    expect(page.locator("html")).to_have_attribute("lang", "zh-CN")
    expect(page.locator("#run h2")).to_have_text("现在的情况")
    page.close()


def test_the_subtitles_come_once_and_any_key_skips_them(
    browser: Browser, master: ScriptedMaster, console: RunningConsole
) -> None:
    prepare(master)
    page = browser.new_page()
    page.goto(console.url)
    expect(page.locator("#boot")).to_contain_text("numeric kernels")
    page.keyboard.press("x")
    expect(page.locator("#boot")).to_be_hidden()
    page.reload()
    expect(page.locator("#run")).to_contain_text("12 / 30")
    expect(page.locator("#boot")).to_be_hidden()
    page.close()


def test_hostile_names_and_lines_are_text(page: Page, master: ScriptedMaster) -> None:
    """R28, and so in the tests of that name of the other views."""
    master.say("WARN", HOSTILE)
    master.say("RUN", HOSTILE, {**cluster.run(12, reason=HOSTILE), "name": HOSTILE})
    expect(page.locator("#system")).to_contain_text("<script>document.title=2</script>")
    expect(page.locator("#run")).to_contain_text('<img src=x onerror="document.title=1">')
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


def test_pages_come_back_after_the_console_was_restarted_and_no_round_is_lost_or_doubled(
    browser: Browser, master: ScriptedMaster, tmp_path: Path, control_dir: Path
) -> None:
    prepare(master)
    context = browser.new_context(reduced_motion="reduce")
    with running_console(tmp_path / "console", control_dir) as first:
        pages = [context.new_page() for _ in range(3)]
        for page in pages:
            page.goto(first.url)
            expect(page.locator("#header")).to_contain_text("●live")
    for page in pages:
        expect(page.locator("#header")).to_contain_text("console not reached since")
    master.change_state(cluster.state(closed=13))
    master.say("ROUND", "while it was away", cluster.history_row(13))
    port = int(first.host.rpartition(":")[2])
    with running_console(tmp_path / "console", control_dir, port=port):
        for page in pages:
            expect(page.locator("#header")).to_contain_text("●live")
            expect(page.locator("#loss-chart figcaption")).to_contain_text("at 13; 13 rounds in all")
    context.close()


def test_seven_tabs_share_one_stream_and_the_next_takes_over(
    browser: Browser, master: ScriptedMaster, console: RunningConsole
) -> None:
    prepare(master)
    context = browser.new_context(reduced_motion="reduce")
    streams: list[str] = []
    context.on("request", lambda asked: streams.append(asked.url) if "/api/v1/events" in asked.url else None)
    pages = [context.new_page() for _ in range(7)]
    for page in pages:
        page.goto(console.url)
        expect(page.locator("#run")).to_contain_text("12 / 30")
    assert len(streams) == 1
    pages[0].close()
    master.say("RUN", "", cluster.run(13))
    master.say("ROUND", "round=13 workers=4", cluster.history_row(13))
    for page in pages[1:]:
        expect(page.locator("#run")).to_contain_text("13 / 30")
        expect(page.locator("#loss-chart figcaption")).to_contain_text("at 13; 13 rounds in all")
    assert len(streams) == 2
    context.close()


@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_sticks_out(page: Page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    for name in VIEWS:
        page.evaluate("(view) => { location.hash = `#/${view}`; }", name)
        expect(page.locator(f"main.view-{name}")).to_be_attached()
        page.wait_for_timeout(60)
        out = page.evaluate("() => document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert out == 0, f"{name} at {width} px sticks out by {out} px"


def test_each_language_has_each_sentence_with_the_same_values() -> None:
    every = tables()
    assert list(every) == ["en", "zh-CN"]
    english, chinese = every["en"], every["zh-CN"]

    def values(sentence: str) -> set[str]:
        return set(re.findall(r"\{(\w+)\}", sentence))

    single = {key for key in english if key.endswith(".one")}
    assert set(english) - single == set(chinese)
    assert {key for key in chinese if values(english[key]) != values(chinese[key])} == set()
    assert {key for key in single if key.removesuffix(".one") not in english} == set()


def test_every_sentence_that_the_page_names_is_there() -> None:
    english = tables()["en"]
    named = {key for path in sorted((FOLDER / "js").rglob("*.js")) for key in USED.findall(path.read_text("utf-8"))}
    assert named
    assert {key for key in named if key not in english} == set()


def test_each_place_in_the_docs_that_the_page_names_is_there() -> None:
    for language, sentences in tables().items():
        named = [place for sentence in sentences.values() for place in IN_THE_DOCS.findall(sentence)]
        assert len(named) >= 5, language
        for file, heading in named:
            text = Path(file).read_text("utf-8")
            assert not heading or re.search(rf"^#+ {re.escape(heading)}$", text, re.MULTILINE), f"{file}: {heading}"
    scripts = [path.read_text("utf-8") for path in (FOLDER / "js").rglob("*.js") if path.parent.name != "docs"]
    assert not any(IN_THE_DOCS.search(script) for script in scripts), "places in the docs stand in the tables"


@pytest.mark.parametrize(("language", "shown"), [("en", IN_ENGLISH), ("zh-CN", IN_CHINESE)])
def test_figures_and_dates_are_those_of_the_language(page: Page, language: str, shown: list[str]) -> None:
    page.locator("#language").select_option(language)
    expect(page.locator("html")).to_have_attribute("lang", language)
    assert page.evaluate(FIGURES) == shown


def test_all_of_the_page_is_small() -> None:
    files = [path for path in FOLDER.rglob("*") if path.is_file() and path.suffix in TYPES]
    others = {"zh-CN.json", "docs.css"}  # the other language, and the page of the API
    one_language = [path for path in files if path.name not in others and path.parent.name != "docs"]
    packed = sum(len(gzip.compress(path.read_bytes(), 9)) for path in [*one_language, FOLDER / "index.html"])
    assert packed <= PAGE_BYTES_MAX, f"{packed} bytes by gzip"


def test_a_page_without_its_packages_says_what_to_do(
    page: Page, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("services.console.page.VENDOR", tmp_path)
    page.reload()
    expect(page.locator("body")).to_contain_text("make setup")
