"""`mahe status` and `mahe open`: what the console on this PC says, in a terminal."""

import json
import sys
from typing import Any

from services.common.host.machine import home
from services.launch.console_client import find_console
from services.launch.lines import say
from services.launch.page import open_page


def run_status(*, as_json: bool) -> int:
    """Print the state for people, or whole as JSON. Raises MaheError NOT_REACHABLE when no console runs."""
    link = find_console(home())
    if as_json:
        json.dump(link.get("/api/v1/state"), sys.stdout, ensure_ascii=False, indent=2)
        print()
        return 0
    say("STATUS", f"the page: {link.url}")
    state = link.snapshot()
    say("STATUS", run_line(state.get("run")))
    for worker in state.get("workers") or []:
        say("STATUS", worker_line(worker))
    return 0


def run_open(*, browser: bool) -> int:
    """Print the page's link and open it in a browser. Raises MaheError NOT_REACHABLE when no console runs."""
    link = find_console(home())
    print(link.url, flush=True)
    open_page(link.url, browser)
    return 0


def run_line(run: dict[str, Any] | None) -> str:
    """One sentence about the current run."""
    if not run:
        return "no run"
    line = f"run {run.get('id')}: {run.get('phase')}, round {run.get('version')} of {run.get('rounds_total')}"
    evaluated = run.get("last_eval")
    if evaluated:
        line += f", accuracy {evaluated['accuracy']:.4f} after round {evaluated['version']}"
    return f"{line} ({run['reason']})" if run.get("reason") else line


def worker_line(worker: dict[str, Any]) -> str:
    """One sentence about a worker."""
    state = f"{worker['link']}, {worker['agent']}" + (f": {worker['reason']}" if worker.get("reason") else "")
    return f"worker {worker['name']}: {state}; {worker['accepted_rounds']} rounds, {worker['samples_total']} samples"
