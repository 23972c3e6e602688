"""`mahe watch`: follows a run to its end, whoever started it. Ctrl-C ends the watching, not the run."""

from services.common.errors import MaheError
from services.common.host.machine import home
from services.launch.console_client import EventStream, Link, find_console
from services.launch.display import display
from services.launch.ending import say_end
from services.launch.exits import DONE, FAILED
from services.launch.follow import Follower
from services.launch.interrupts import Interrupts
from services.launch.lines import tell
from services.launch.rounds import newest_told
from services.launch.summary import RunSummary, run_of


def run_watch(run: str | None, *, as_json: bool) -> int:
    """0: it finished, now or before; 1: it was stopped or failed. Raises MaheError when there is nothing to watch."""
    link = find_console(home())
    with Interrupts() as interrupts:
        events = EventStream(link)  # before the state is read: nothing falls between
        try:
            chosen = choose(link, run)
            last = newest_told(link.snapshot(), chosen.id)
            tell("WATCH", chosen.sentence)
            follower = Follower(link, chosen.id, interrupts.check, display(as_json=as_json), attended=True, last=last)
            ending = follower.follow(events)
        except KeyboardInterrupt:
            tell("WATCH", f"no longer watched; the run goes on: mahe watch, mahe stop, and the page: {link.url}")
            raise
        finally:
            events.close()
        say_end(link, chosen.id, ending, "WATCH", as_json=as_json)
    return DONE if ending.finished else FAILED


def choose(link: Link, run: str | None) -> RunSummary:
    """The run of this id, or the current one. Raises MaheError NO_RUN when there is none."""
    found = link.run(run) if run is not None else link.snapshot().get("run")
    if not found:
        raise MaheError("no run is there; to start one: mahe start, or Start on the page", code="NO_RUN")
    return run_of(found)
