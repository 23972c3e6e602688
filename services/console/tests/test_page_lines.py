"""The lines to paste on another PC (R31): what a master, or who named a thing, puts into them is never a command.

There are no scripts to download. The lines for PowerShell are looked at as text: it is not on every PC that tests.
"""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from services.console.tests import scripted_cluster as cluster
from services.console.tests.scripted_master import ScriptedMaster, answers

pytestmark = [pytest.mark.browser, pytest.mark.skipif(sys.platform == "win32", reason="runs lines of sh")]
NO_JOIN_STRINGS = ["'; touch evil; '", "mahe1.a\ntouch evil", "mahe1.$(touch evil)`touch evil`", "mahe1.%PATH%'@"]
PLACE = "mahe1.…"


def lines(page: Page, master: ScriptedMaster, joined: str, label: str = "lab") -> dict[str, str]:
    """What the page offers to paste, by the name of the tab, after this join string was made for `label`."""
    told = {"id": 1, "join_string": joined, "expires_at_ms": 1_796_003_600_000, "uses": 1, "endpoints": []}
    master.replies["create_join_string"] = answers(told)
    page.evaluate("() => { location.hash = '#/cluster'; }")
    page.get_by_label("For whom or what").fill(label)
    page.get_by_role("button", name="Create join string").click()
    expect(page.locator("#join .command")).to_be_visible()
    found = {}
    for tab in page.locator("#join").get_by_role("tab").all():
        tab.click()
        expect(page.locator("#join .command")).to_be_visible()
        found[tab.inner_text()] = page.locator("#join .command").inner_text()
    assert len(found) == 4
    return found


def run_in_sh(line: str, folder: Path) -> list[list[str]]:
    """What `line` starts in a shell where mahe and docker only note what they were given."""
    for name in (".venv/bin/mahe", "docker"):
        program = folder / name
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text('#!/bin/sh\nprintf "%s\\t" "$@" "${MAHE_JOIN-}" >> noted\necho >> noted\n')
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
    before = sorted(folder.iterdir())
    environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}
    subprocess.run(["sh", "-c", line], cwd=folder, env=environment, check=True, timeout=10)
    noted = folder / "noted"
    assert sorted(folder.iterdir()) == sorted([*before, noted]), "something else was done, too"
    return [one.split("\t")[:-1] for one in noted.read_text().splitlines()]


@pytest.mark.parametrize("joined", NO_JOIN_STRINGS, ids=[f"R31 {one!r}" for one in NO_JOIN_STRINGS])
def test_what_is_no_join_string_is_in_no_line(page: Page, master: ScriptedMaster, joined: str) -> None:
    for name, line in lines(page, master, joined).items():
        assert PLACE in line, name
        assert not any(word in line for word in ("touch", "%", "'@", "`", "--help", "\n")), line


def test_r31_each_line_for_sh_is_one_command_whatever_the_label_is(
    page: Page, master: ScriptedMaster, tmp_path: Path
) -> None:
    told = lines(page, master, cluster.JOIN_STRING, label="'; touch evil; $(touch evil) %PATH% '@")
    joined = cluster.JOIN_STRING
    for_sh = [line for line in told.values() if "venv/bin/mahe" in line or line.startswith("MAHE_JOIN=")]
    assert len(for_sh) == 2
    (tmp_path / "here").mkdir()
    (tmp_path / "docker").mkdir()
    assert run_in_sh(for_sh[0], tmp_path / "here") == [["join", joined, ""]]
    [words] = run_in_sh(for_sh[1], tmp_path / "docker")
    assert (words[0], words[-1]) == ("compose", joined)
    for line in told.values():
        assert "evil" not in line
        assert line.count(joined) == 1
