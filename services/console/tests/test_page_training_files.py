"""Around the form of the Training view in Chromium: queue, model file and folders, the run in short, checkpoints."""

import json
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from services.console.tests import scripted_cluster as cluster
from services.console.tests.conftest import last_command
from services.console.tests.pages import HOSTILE
from services.console.tests.scripted_master import ScriptedMaster
from services.console.tests.test_page_training import QUEUE, field, start

pytestmark = pytest.mark.browser
FILES = """async (pairs) => {
    const { fileIn, folderOf } = await import("./static/js/views/training/paths.js");
    return pairs.map(([folder, path]) => [fileIn(folder, path), folderOf(path)]);
}"""


@pytest.fixture
def page(training: Page) -> Page:
    return training


def test_a_second_start_waits_in_the_queue_and_is_taken_out(page: Page, master: ScriptedMaster) -> None:
    queue = page.locator("#queue")
    expect(queue).to_contain_text("No run waits.")
    expect(page.locator("#start")).to_contain_text("A run goes on: this one waits in place 1")

    def queued(route: Route) -> None:
        route.fulfill(json={"run": "run-8", "position": 1, "warnings": []}, status=201)

    page.route("**/api/v1/runs", queued)
    start(page)
    expect(page.locator("#start")).to_contain_text("Queued: run-8, place 1")
    master.say("QUEUE", "", {"queue": QUEUE})
    expect(queue.get_by_role("listitem")).to_have_count(2)
    expect(queue.get_by_role("listitem").nth(0)).to_contain_text("at noon rings4 · 20 rounds")
    expect(queue.get_by_role("listitem").nth(1)).to_contain_text("<script>document.title=2</script>")
    expect(page.locator("#start")).to_contain_text("waits in place 3")
    queue.get_by_role("button", name="Take at noon out of the queue").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    assert not [command for command in master.commands if command["name"] == "stop_run"]
    queue.get_by_role("button", name="Take at noon out of the queue").click()
    page.get_by_role("dialog").get_by_role("button", name="Take out").click()
    assert last_command(master, "stop_run")["run"] == "run-8"
    master.say("QUEUE", "", {"queue": QUEUE[1:]})
    expect(queue.get_by_role("listitem")).to_have_count(1)
    assert page.title() == "MAHE"


def test_the_model_file_is_asked_for_only_where_it_is_another(page: Page) -> None:
    sent: list[dict[str, Any]] = []

    def taken(route: Route) -> None:
        sent.append(json.loads(route.request.post_data or "{}"))
        route.fulfill(json={"run": "run-8"}, status=201)

    page.route("**/api/v1/runs", taken)
    expect(field(page, "Model file")).to_have_value("checkpoints/mahe_model.npz")
    expect(page.locator("#start-model-path-hint")).to_contain_text("every 5 rounds")
    start(page)
    expect(page.locator("#start")).to_contain_text("Started: run-8")
    field(page, "Model file").fill("D:\\models\\my digits.npz")
    page.locator("#start summary").click()
    page.get_by_label("Copy every").fill("20")
    expect(page.locator("#start-model-path-hint")).to_contain_text("every 20 rounds")
    with page.expect_request("**/api/v1/runs"):
        start(page)
    first, second = sent
    assert not {"model_path", "model_every"} & first.keys()
    assert (second["model_path"], second["model_every"]) == ("D:\\models\\my digits.npz", 20)


def test_browse_takes_what_the_systems_dialog_gave(page: Page) -> None:
    given: list[dict[str, Any]] = [{"path": "/home/ann/models"}, {"path": None}]
    asked: list[Any] = []

    def pick(route: Route) -> None:
        asked.append(json.loads(route.request.post_data or "null"))
        route.fulfill(json=given.pop(0))

    page.route("**/api/v1/folders/pick", pick)
    page.get_by_role("button", name="Browse…").click()
    expect(field(page, "Model file")).to_have_value("/home/ann/models/mahe_model.npz")
    field(page, "Model file").fill("/home/ann/models/mine.npz")
    with page.expect_response("**/api/v1/folders/pick"):
        page.get_by_role("button", name="Browse…").click()
    expect(field(page, "Model file")).to_have_value("/home/ann/models/mine.npz")
    assert (given, asked) == ([], [{"path": "checkpoints"}, {"path": "/home/ann/models"}])


def test_browse_without_a_dialog_walks_the_folders_in_the_page(page: Page) -> None:
    tree: dict[str, tuple[str | None, list[str]]] = {
        "/data": (None, ["/data/checkpoints", f"/data/{HOSTILE}"]),
        "/data/checkpoints": ("/data", []),
    }

    def folders(route: Route) -> None:
        path = page.evaluate("(url) => new URL(url).searchParams.get('path')", route.request.url) or "/data"
        if path == "checkpoints":
            problem = {"code": "NOT_FOUND", "status": 404, "detail": "no such folder"}
            route.fulfill(status=404, json=problem)
            return
        parent, items = tree[path]
        names = [item.removeprefix(f"{path}/") for item in items]
        route.fulfill(json={"path": path, "parent": parent, "folders": names, "models": [], "more": False, "roots": []})

    no_dialog = {"code": "NO_DIALOG", "status": 409, "detail": "there is no screen"}
    page.route("**/api/v1/folders?*", folders)
    page.route("**/api/v1/folders/pick", lambda route: route.fulfill(status=409, json=no_dialog))
    browse = page.get_by_role("button", name="Browse…")
    browse.click()
    dialog = page.get_by_role("dialog", name="Folder for the model")
    expect(dialog).to_contain_text("/data")
    expect(dialog).to_contain_text("document.title=2")
    dialog.get_by_role("button", name="checkpoints").click()
    expect(dialog).to_contain_text("No folder in here.")
    dialog.get_by_role("button", name="one level up").click()
    expect(dialog.get_by_role("button", name="checkpoints")).to_be_visible()
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    expect(browse).to_be_focused()
    browse.click()
    dialog.get_by_role("button", name="checkpoints").click()
    dialog.get_by_role("button", name="Use this folder").click()
    expect(field(page, "Model file")).to_have_value("/data/checkpoints/mahe_model.npz")
    assert page.title() == "MAHE"


def test_a_console_without_folders_says_that_the_path_is_typed(page: Page) -> None:
    gone = {"code": "NOT_FOUND", "status": 404, "detail": "no such path"}
    page.route("**/api/v1/folders**", lambda route: route.fulfill(status=404, json=gone))
    page.get_by_role("button", name="Browse…").click()
    expect(page.locator("#start")).to_contain_text("cannot list folders; type the path")
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_paths_of_any_system_are_put_together(page: Page) -> None:
    pairs = {
        ("/data", "checkpoints/mahe_model.npz"): ["/data/mahe_model.npz", "checkpoints"],
        ("C:\\models", "D:\\a\\mine.npz"): ["C:\\models\\mine.npz", "D:\\a"],
        ("C:\\", "mine.npz"): ["C:\\mine.npz", ""],
        ("/", "/mine.npz"): ["/mine.npz", "/"],
        ("/data/other.npz", "x/mine.npz"): ["/data/other.npz", "x"],
        ("/data", "models/"): ["/data/mahe_model.npz", "models"],
    }
    assert page.evaluate(FILES, [list(pair) for pair in pairs]) == list(pairs.values())


def test_pause_resume_and_stop_are_beside_the_form(page: Page, master: ScriptedMaster) -> None:
    run = page.locator("#run")
    run.get_by_role("button", name="Pause").click()
    assert last_command(master, "pause_run")["run"] == "run-7"
    master.say("RUN", "", cluster.run(12, phase="PAUSED", reason="paused by the operator"))
    run.get_by_role("button", name="Resume").click()
    assert last_command(master, "resume_run")["run"] == "run-7"
    run.get_by_role("button", name="Stop").click()
    page.get_by_role("dialog").get_by_role("button", name="Stop").click()
    assert last_command(master, "stop_run")["run"] == "run-7"
    expect(run.get_by_role("link", name="Start a run")).to_have_count(0)


def test_checkpoints_are_named_and_downloaded(page: Page, master: ScriptedMaster, tmp_path: Path) -> None:
    panel = page.locator("#checkpoints")
    expect(panel.get_by_role("listitem").first).to_contain_text("round 12")
    expect(panel.get_by_role("listitem").first).to_contain_text("★ best ● latest")
    with page.expect_download() as download:
        panel.get_by_role("button", name="Download the checkpoint of round 12").click()
    assert download.value.suggested_filename == "ckpt-12.npz"
    download.value.save_as(tmp_path / "file")
    assert (tmp_path / "file").stat().st_size == 300_000
    told = {"model_path": "a.npz", "model_file": "/data/a.npz", "model_version": 10, "model_reason": "the disk is full"}
    master.say("RUN", "", {**cluster.run(13), **told})
    expect(panel).to_contain_text("Version 10 is in /data/a.npz")
    expect(panel).to_contain_text("△ the disk is full")
