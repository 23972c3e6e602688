"""`mahe status` and `mahe open`: what the console on this PC says, in a terminal."""

from dataclasses import asdict

from services.common.host.machine import home
from services.launch.console_client import find_console
from services.launch.lines import say, show, show_json
from services.launch.page import open_page
from services.launch.summary import master_silence, run_of, worker_of


def run_status(*, as_json: bool) -> int:
    """Print the state for people, or as JSON. Raises MaheError NOT_REACHABLE when no console runs."""
    link = find_console(home())
    state = link.get("/api/v1/state")
    snapshot = state.get("snapshot") or {}
    run = run_of(snapshot["run"]) if snapshot.get("run") else None
    workers = [worker_of(worker) for worker in snapshot.get("workers") or []]
    if as_json:
        told = {
            "console": {"url": link.url},
            "master": {name: state["link"].get(name) for name in ("state", "since_ms", "reason")},
            "run": asdict(run) if run else None,
            "workers": [asdict(worker) for worker in workers],
        }
        show_json(told, indent=2)
        return 0
    say("STATUS", f"the page: {link.url}")
    if silence := master_silence(state["link"]):
        say("STATUS", silence)
    if run is not None:
        say("STATUS", run.sentence)
    elif not silence or snapshot:
        say("STATUS", "no run; to start one: mahe start, or Start on the page")
    for worker in workers:
        say("STATUS", worker.sentence)
    if snapshot and not workers:
        say("STATUS", "no worker; to let this PC work: mahe worker; others join with a line from the page")
    return 0


def run_open(*, browser: bool, as_json: bool) -> int:
    """Print the page's link and open it in a browser. Raises MaheError NOT_REACHABLE when no console runs."""
    link = find_console(home())
    if as_json:
        show_json({"url": link.url})
    else:
        show(link.url)
    open_page(link.url, browser)
    return 0
