"""`mahe start`: a run on the cluster that runs on this PC, through the console's API, followed to its end.

Not for the values of a run: console and master check those, and their sentences are shown as they are.
"""

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from services.common.errors import MaheError, SettingsError, quoted
from services.common.host.machine import home
from services.common.protocol.presets import PRESETS
from services.launch.console_client import EventStream, Link, find_console
from services.launch.display import display
from services.launch.ending import say_end
from services.launch.exits import DONE, FAILED
from services.launch.follow import Follower
from services.launch.interrupts import Interrupts
from services.launch.lines import say, show, show_json, tell
from services.launch.page import in_ci

DATASET, PRESET = "digits", "standard"
NOT_VALID = {"BAD_SPEC", "BAD_SPECIFICATION", "VALIDATION"}
OPTIMIZERS = ("inner", "outer")


@dataclass(frozen=True)
class StartOptions:
    """What the command line says. `fields` has the fields of the run that are given, optimizers by their name."""

    fields: dict[str, Any]
    spec: str | None
    watch: bool
    as_json: bool


def run_list(*, as_json: bool) -> int:
    """Print the presets, each with its sentence."""
    if as_json:
        show_json({"presets": [preset.model_dump(mode="json") for preset in PRESETS.values()]}, indent=2)
        return DONE
    for preset in PRESETS.values():
        show(f"{preset.id:<10}{preset.sentence}")
    return DONE


def run_start(options: StartOptions) -> int:
    """Start the run, and follow it unless told not to. 0: it finished, or was started if it is not followed."""
    request = request_of(options)
    link = find_console(home())
    if not options.watch:
        answer = create(link, request, as_json=options.as_json)
        for sentence in answer.get("warnings") or []:
            tell("WARN", f"run {answer['run']}: {sentence}")
        tell("START", f"it trains by itself; mahe watch follows it, mahe status shows it, and the page: {link.url}")
        return DONE
    with Interrupts() as interrupts:
        events = EventStream(link)  # before the run begins: its warnings come as events, as do its rounds
        try:
            run = str(create(link, request, as_json=options.as_json)["run"])
            attended = sys.stdout.isatty() and not in_ci()
            shown = display(as_json=options.as_json)
            ending = Follower(link, run, interrupts.check, shown, attended=attended).follow(events)
        except KeyboardInterrupt:
            tell("START", f"no longer followed; what was started goes on: mahe watch, mahe stop, the page: {link.url}")
            raise
        finally:
            events.close()
        say_end(link, run, ending, "START", as_json=options.as_json)
    return DONE if ending.finished else FAILED


def request_of(options: StartOptions) -> dict[str, Any]:
    """The body of POST /api/v1/runs: the file's fields, and over them those of the command line."""
    fields: dict[str, Any] = {name: value for name, value in options.fields.items() if value is not None}
    for which in OPTIMIZERS:
        if which in fields:
            fields[which] = {"name": fields[which]}
    if options.spec is not None:
        return read_spec(Path(options.spec)) | fields
    request = {"dataset": DATASET, "preset": PRESET} | fields
    return {"name": request["dataset"].removeprefix("builtin:")} | request


def read_spec(path: Path) -> dict[str, Any]:
    """The fields of a run in a JSON file, as POST /api/v1/runs takes them. Raises SettingsError SPEC_FILE."""
    try:
        fields = json.loads(path.read_text("utf-8"))
    except OSError as error:
        wrong = f"cannot be read ({error.strerror})"
    except (ValueError, RecursionError) as error:
        wrong = f"is not JSON ({error})"
    else:
        if isinstance(fields, dict):
            return fields
        wrong = f"holds {quoted(fields)}"
    raise SettingsError(
        f'--spec {path} {wrong}; give a file with a JSON object, such as {{"dataset": "rings4", "rounds": 20}}',
        code="SPEC_FILE",
    )


def create(link: Link, request: dict[str, Any], *, as_json: bool) -> dict[str, Any]:
    """Start it and say so; the API's answer. Raises MaheError with what is wrong with the request, and what to do."""
    try:
        answer: dict[str, Any] = link.post("/api/v1/runs", request)
    except MaheError as error:
        if error.code not in NOT_VALID:
            raise
        advice = "correct it and start again; mahe start --help lists the options"
        raise MaheError(f"{error.sentence.rstrip('.')}; {advice}", code=error.code) from None
    position = answer.get("position")
    if as_json:
        warnings = answer.get("warnings") or []
        show_json({"type": "started", "run": answer["run"], "position": position, "warnings": warnings})
        return answer
    say("START", f"run {answer['run']} " + (f"waits in the queue, position {position}" if position else "is started"))
    preset = PRESETS.get(str(request.get("preset")))
    if preset is not None:
        say("START", f"{preset.title}: {preset.sentence}")
    return answer
