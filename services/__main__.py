"""The one command, `mahe` (or `python -m services`). It only builds and runs: services.launch reads the command line
(command_line.py), does what it says, and knows the exit codes (exits.py).
"""

import argparse
import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from services.common.errors import MaheError
from services.launch.command_line import START_FIELDS, build_parser
from services.launch.exits import FAILED, INTERRUPTED, exit_of


def main(argv: Sequence[str] | None = None) -> int:
    """Do what the command line asks for; the exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="replace", line_buffering=True)
    options = build_parser().parse_args(argv)
    try:
        return dispatch(options)
    except MaheError as error:
        from services.launch.lines import say_error

        say_error(error.sentence)
        return exit_of(error)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # `mahe demo | head`: whoever read has gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED


def dispatch(options: argparse.Namespace) -> int:
    """Call the part that does it. Parts are imported here: `mahe --help` needs none of them."""
    if getattr(options, "no_ui", False):
        options.browser = False
        os.environ["MAHE_CONSOLE_UI_WAIT_S"] = "0"  # for what is started, in containers, too
    match options.command:
        case "up":
            return up(options)
        case "down":
            from services.launch.down import run_down

            return run_down()
        case "demo":
            return demo(options)
        case "start" | "runs" | "watch" | "stop" | "pause" | "resume" | "status" | "open":
            return over_the_api(options)
        case "master" | "worker" | "console":
            from services.launch.service import run_service

            return run_service(options.command)
        case "join":
            from services.launch.service import run_join

            return run_join(options.join_string)
        case "doctor":
            from services.launch.doctor import run_doctor

            return run_doctor()
        case "kernels":
            from services.launch.kernels import run_kernels

            return run_kernels(build=options.build, compiler=options.compiler, no_asm=options.no_asm)
        case "replay":
            from services.master.__main__ import run_replay

            return run_replay(Path(options.journal))
        case _:
            from services.launch.uninstall import run_uninstall

            return run_uninstall(yes=options.yes)


def over_the_api(options: argparse.Namespace) -> int:
    """The commands that only ask the console on this PC."""
    match options.command:
        case "start":
            return start(options)
        case "runs":
            from services.launch.runs import run_runs

            return run_runs(options.run, limit=options.limit, as_json=options.json)
        case "watch":
            from services.launch.watch import run_watch

            return run_watch(options.run, as_json=options.json)
        case "status":
            from services.launch.status import run_status

            return run_status(as_json=options.json)
        case "open":
            from services.launch.status import run_open

            return run_open(browser=options.browser, as_json=options.json)
        case _:
            from services.launch.steer import run_action

            yes = options.command != "stop" or options.yes
            return run_action(options.command, options.run, yes=yes, as_json=options.json)


def up(options: argparse.Namespace) -> int:
    """`mahe up`, with processes or containers; where it chooses, it says which and why."""
    from services.launch.containers import run_up_containers, why_no_engine
    from services.launch.lines import say
    from services.launch.up import run_up

    lack = "" if options.use == "processes" else why_no_engine()
    if options.use == "containers" and lack:
        raise MaheError(f"{lack}; install Docker with Compose v2, or start processes: mahe up", code="NO_ENGINE")
    if options.use == "auto":
        found = f"processes ({lack})" if lack else "containers (an engine answers; else: make up USE=processes)"
        say("UP", f"starting {found}")
    if options.use == "processes" or lack:
        return run_up(options.port, options.console_port, browser=options.browser)
    return run_up_containers(browser=options.browser)


def demo(options: argparse.Namespace) -> int:
    """The demo, with what the terminal says about staying."""
    from services.launch.attached import run_attached
    from services.launch.demo import DemoOptions, run_demo
    from services.launch.page import in_ci

    stay = options.stay if options.stay is not None else sys.stdout.isatty() and not in_ci()
    run = run_attached if options.attach else run_demo
    return run(
        DemoOptions(
            rounds=options.rounds,
            workers=options.workers,
            dataset=options.dataset,
            min_workers=options.min_workers,
            k_steps=options.k_steps,
            batch=options.batch,
            browser=options.browser,
            stay=stay,
            verbose=options.verbose,
        )
    )


def start(options: argparse.Namespace) -> int:
    """A run on the cluster here, or the list of presets."""
    from services.launch.start import StartOptions, run_list, run_start

    if options.list:
        return run_list(as_json=options.json)
    fields = {name: getattr(options, name) for name in START_FIELDS}
    return run_start(StartOptions(fields=fields, spec=options.spec, watch=options.watch, as_json=options.json))


if __name__ == "__main__":
    sys.exit(main())
