"""Reasons beside a state, said in the language of the page in Chromium; of what is not known the English is shown."""

import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from services.common.protocol.reasons import Reason, because, said, told
from services.console.tests import page_runs
from services.console.tests import scripted_cluster as cluster
from services.console.tests.conftest import RunningConsole
from services.console.tests.pages import HOSTILE
from services.console.tests.scripted_master import ScriptedMaster

pytestmark = pytest.mark.browser
ENGLISH = re.compile(r"[A-Za-z]{4,}")


def why(reason: Reason) -> dict[str, Any]:
    """The fields of a state that say it, as a master tells them."""
    return {"reason": reason.text, "reason_said": told(reason)}


@pytest.fixture
def chinese(page: Page) -> Page:
    """The page, in Chinese."""
    page.get_by_label("Language").select_option("zh-CN")
    expect(page.locator("html")).to_have_attribute("lang", "zh-CN")
    return page


def test_a_run_says_why_it_waits_or_has_ended(chinese: Page, master: ScriptedMaster) -> None:
    reason = chinese.locator("#run .reason")
    again = because("ROUND_AGAIN", round=3, why=because("NOBODY_LEFT"))
    for one, phase, words in (
        (because("WAITS_FOR_WORKERS", ready=1, needed=2, n=1), "WAITING", "需要 2 个工作端，现有 1 个；请再启动 1 个"),
        (because("WITH_TROUBLE", why=because("PREPARING"), trouble=again), "WAITING", "第 3 轮重新开始：没有剩下的"),
        (because("FINISHED", rounds=30), "STOPPED", "已完成：全部 30 轮都做完了"),
        (because("STOPPED", version=12), "STOPPED", "已手动停止，停在版本 12"),
    ):
        master.say("RUN", "", cluster.run(12, phase=phase) | why(one))
        expect(reason).to_contain_text(words)
        assert not ENGLISH.search(reason.inner_text())
    chinese.locator("#language").select_option("en")
    expect(reason).to_have_text("stopped by the operator at version 12")


def test_a_worker_says_why_it_does_not_work(chinese: Page, master: ScriptedMaster) -> None:
    chinese.evaluate("() => { location.hash = '#/cluster'; }")
    bad = because("QUARANTINED", why=because("BAD_ROUNDS", n=3))
    dies = because("TRAINER_DIES", why=because("TRAINER_KILLED"), times=3)
    for number, changes, words in (
        (1, {"link": "LOST", **why(because("SILENT", seconds=15))}, "15 秒没有声音"),
        (2, {"quarantined": True, **why(bad)}, "隔离中：连续 3 轮它的变化量不能用"),
        (3, {"agent": "paused", **why(dies)}, "训练进程被系统结束了（信号 9；可能是内存不够），已连续 3 次"),
        (4, {"link": "LOST", **why(because("LEFT", why=said("gone fishing")))}, "已离开：gone fishing"),
    ):
        master.say("WORKER", "", cluster.worker(number, f"pc-{number}", **changes))
        expect(chinese.locator("#workers tr", has_text=f"pc-{number}").first).to_contain_text(words)


def test_the_list_of_runs_says_why_they_wait_or_have_ended(
    chinese: Page, console: RunningConsole, master: ScriptedMaster
) -> None:
    held = because("POSITION", position=1, total=1, why=because("HELD_BY_FAILED", run="digits-7"))
    told_runs = [
        page_runs.old_run(4, phase="QUEUED", finished=False, position=1, **why(held)),
        page_runs.old_run(3, **why(because("FINISHED", rounds=20))),
        page_runs.old_run(2, phase="FAILED", finished=False, **why(because("WORK_FAILED", why="disk"))),
        page_runs.old_run(1, reason="of an older master", reason_said=None),
    ]
    page_runs.serve_runs(master, told_runs, 20)
    chinese.goto(console.url + "#/runs")
    rows = chinese.locator("#runs tbody tr")
    expect(rows.nth(0)).to_contain_text("排在第 1 位（共 1 个）；digits-7 失败了，正在等待")
    expect(rows.nth(1)).to_contain_text("已完成：全部 20 轮都做完了")
    expect(rows.nth(2)).to_contain_text("主控的磁盘或计算出了问题：disk")
    expect(rows.nth(3)).to_contain_text("of an older master")


def test_a_reason_that_the_page_does_not_know_is_said_in_english(chinese: Page, master: ScriptedMaster) -> None:
    reason = chinese.locator("#run .reason")
    inner = {"code": "IN_ROUND", "values": {"round": 3, "why": {"code": "OF_LATER", "values": {}}}}
    for unknown in ({"code": "OF_LATER", "values": {}}, inner, None):
        text = f"as the master says it: {unknown is inner}"
        master.say("RUN", "", cluster.run(12) | {"reason": text, "reason_said": unknown})
        expect(reason).to_have_text(text)
    hostile = because("WAITS_FOR", accepted=1, total=2, names=HOSTILE)
    master.say("RUN", "", cluster.run(12) | why(hostile))
    expect(reason).to_contain_text("<script>")
    assert chinese.locator("main img, main script").count() == 0


def test_a_master_that_is_gone_is_said_in_chinese(chinese: Page, master: ScriptedMaster) -> None:
    master.close()
    banner = chinese.locator("#banner")
    expect(banner).to_contain_text(re.compile("的主控断开了连接|没有应答；主控在运行吗"), timeout=20_000)
