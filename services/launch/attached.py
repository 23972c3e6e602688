"""`mahe demo --attach`: the demo's run on the cluster that runs here already; nothing is started but the run.

Asked again (a container that starts once more), it follows the run that goes on, or says how it ended: it never trains
the same twice by itself.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from services.common.errors import MaheError
from services.common.host.machine import home
from services.launch.console_client import EventStream, Link, find_console
from services.launch.demo import START_S, DemoOptions, demo_spec, joined_workers
from services.launch.display import Lines
from services.launch.ending import ending_of, say_end
from services.launch.follow import Follower
from services.launch.interrupts import Interrupts
from services.launch.lines import say
from services.launch.rounds import newest_told
from services.launch.summary import run_of
from services.launch.waiting import wait_for

RUNS_LOOKED_AT = 50
NOT_YET = {"NOT_REACHABLE", "MASTER_UNREACHABLE"}

T = TypeVar("T")


def run_attached(options: DemoOptions) -> int:
    """Train and print. 0: the run finished, now or before. Raises MaheError when nothing can be reached in time."""
    with Interrupts() as interrupts:

        def wait(probe: Callable[[], T | None], what: str) -> T:
            return wait_for(patient(probe), what, START_S, interrupts.check, lambda text: say("WAIT", text))

        link = wait(lambda: find_console(home()), "a console to run here (mahe up)")
        spec = wait(lambda: demo_spec(link, options), "the console to reach the master")
        say("DEMO", f"the page: {link.url}")
        events = EventStream(link)
        try:
            run = latest(link, str(spec["name"]))
            if run is not None and run["finished"]:
                say("DEMO", f"run {run['id']} has ended before; to train again press Start on the page")
                ending = ending_of(run)
            else:
                last = None if run is None else newest_told(link.snapshot(), str(run["id"]))
                if run is None:
                    enough = options.min_workers
                    wait(lambda: len(joined_workers(link)) >= enough or None, f"{enough} workers to join")
                    run = {"id": link.post("/api/v1/runs", spec)["run"]}
                follower = Follower(link, str(run["id"]), interrupts.check, Lines(), attended=False, last=last)
                ending = follower.follow(events)
        finally:
            events.close()
        say_end(link, str(run["id"]), ending, "DEMO")
    return 0 if ending.finished else 1


def patient(probe: Callable[[], T | None]) -> Callable[[], T | None]:
    """The same probe, for which a console or master that is not up yet is no error."""

    def asked() -> T | None:
        try:
            return probe()
        except MaheError as error:
            if error.code not in NOT_YET:
                raise
            return None

    return asked


def latest(link: Link, name: str) -> dict[str, Any] | None:
    """The newest run of that name, if it finished or still goes on: one that was stopped or failed is begun anew."""
    for item in link.runs(RUNS_LOOKED_AT):
        if item["spec"]["name"] == name:
            run = link.run(str(item["id"]))
            return run if run["finished"] or not run_of(run).ended else None
    return None
