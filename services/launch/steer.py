"""`mahe stop`, `mahe pause`, `mahe resume`: what an operator does to a run, from a terminal."""

import time
from dataclasses import asdict
from typing import Literal

from services.common.errors import MaheError
from services.common.host.machine import home
from services.launch.console_client import Link, find_console, run_path
from services.launch.exits import DONE, FAILED
from services.launch.lines import confirm, say, show_json, tell
from services.launch.summary import RunSummary
from services.launch.watch import choose

Action = Literal["stop", "pause", "resume"]
BECOMES = {"stop": {"STOPPED", "FAILED"}, "pause": {"PAUSED"}, "resume": {"RUNNING", "WAITING"}}
SETTLE_S = 5.0
POLL_S = 0.1


def run_action(action: Action, run: str | None, *, yes: bool, as_json: bool) -> int:
    """0: done; 1: the person said no. Raises MaheError when it does not apply, or nobody is there to be asked."""
    link = find_console(home())
    chosen = choose(link, run)
    if action == "stop":
        if chosen.ended:
            raise MaheError(f"run {chosen.id} has ended already: {chosen.word}", code="RUN_NOT_IN_PHASE")
        question = f"Stop {chosen.sentence} for good? Its checkpoints stay."
        if not yes and not confirm(question, f"mahe stop {chosen.id} --yes"):
            tell("STOP", f"nothing was stopped: run {chosen.id} goes on")
            return FAILED
    link.post(f"{run_path(chosen.id)}/{action}", {})
    after = settle(link, chosen.id, BECOMES[action])
    if as_json:
        show_json(asdict(after), indent=2)
    else:
        say(action.upper(), after.sentence)
    return DONE


def settle(link: Link, run: str, phases: set[str]) -> RunSummary:
    """The run once the console shows it in one of these phases, or as it is after SETTLE_S: what is done is done."""
    deadline = time.monotonic() + SETTLE_S
    while (now := choose(link, run)).phase not in phases and time.monotonic() < deadline:
        time.sleep(POLL_S)
    return now
