"""Child processes: what of their output is a message, and that their end is always told."""

from pathlib import Path

import pytest

from services.common.host.children import CHATTER_MAX, Child
from services.common.host.tests.chattering_child import CHATTER

ENV = {"PATH": "", "PYTHONPATH": str(Path.cwd())}


def test_a_child_ends_with_its_parent_s_pipe_and_its_end_is_told() -> None:
    lines: list[dict[str, object]] = []
    child = Child("services.master.shell.evaluator", ENV, lines.append)
    assert child.send({"version": 1, "path": "/nowhere/ckpt-1.npz", "data": {"kind": "?"}, "model": {}})
    child.stop()
    assert [line["t"] for line in lines] == ["failed", "exit"]
    assert lines[-1]["code"] == 0


def test_only_an_object_with_a_type_is_a_message_and_the_rest_is_logged(capfd: pytest.CaptureFixture[str]) -> None:
    lines: list[dict[str, object]] = []
    Child("services.common.host.tests.chattering_child", ENV, lines.append).stop()
    assert lines == [{"t": "done", "reason": "the file /data/? \U0001f600"}, {"t": "exit", "code": 0}]
    logged = capfd.readouterr().err.splitlines()
    assert len(logged) == len(CHATTER) + 1, "each of them but the empty one, and the two lines without an end"
    assert logged[:2] == ["[CHILD] chattering_child says: loading...", "[CHILD] chattering_child says: 3"]
    assert logged[-1] == "[CHILD] chattering_child says: no end of line"
    assert max(map(len, logged)) <= len(logged[0]) + CHATTER_MAX
