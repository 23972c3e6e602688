"""The one command, `mahe` (or `python -m services`). It only reads the command line; services.launch does it.

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 no MAHE reachable on this PC, 130 interrupted.
"""

import argparse
import importlib.metadata
import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from services.common.errors import MaheError

EXIT_FAILED = 1
EXIT_NOT_REACHABLE = 3
EXIT_INTERRUPTED = 130
# Known here, too, so that usage and `--help` need no other module; a test compares them with those that decide.
PRESETS = ("quick", "standard", "thorough", "long")
ENCODINGS = ("fp32", "bf16", "int8", "int4", "topk")
OUTER, INNER = ("fedavg", "momentum", "nesterov", "fedadam"), ("sgd", "momentum", "adamw")
AGGREGATORS, BALANCES = ("clip", "mean", "trimmed", "median"), ("proportional", "equal", "units")
START_FIELDS = (
    *("dataset", "preset", "name", "rounds", "k_steps", "batch"),
    *("encoding", "outer", "inner", "aggregator", "balance"),
)


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
        return EXIT_NOT_REACHABLE if error.code == "NOT_REACHABLE" else EXIT_FAILED
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:  # `mahe demo | head`: whoever read has gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_FAILED


def dispatch(options: argparse.Namespace) -> int:
    """Call the part that does it. Parts are imported here: `mahe --help` needs none of them."""
    match options.command:
        case "up":
            return up(options)
        case "down":
            from services.launch.down import run_down

            return run_down()
        case "demo":
            return demo(options)
        case "start":
            return start(options)
        case "master" | "worker" | "console":
            from services.launch.service import run_service

            return run_service(options.command)
        case "join":
            from services.launch.service import run_join

            return run_join(options.join_string)
        case "status":
            from services.launch.status import run_status

            return run_status(as_json=options.json)
        case "open":
            from services.launch.status import run_open

            return run_open(browser=options.browser)
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
        return run_list()
    fields = {name: getattr(options, name) for name in START_FIELDS}
    return run_start(StartOptions(fields=fields, spec=options.spec, detach=options.detach))


def build_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="mahe",
        description="MAHE turns idle PCs into an AI training cluster.",
        epilog="First time? mahe demo trains handwritten digits here. For real use: mahe up here, mahe join elsewhere.",
    )
    parser.add_argument("--version", action="version", version=f"mahe {installed_version()}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)

    up = commands.add_parser("up", help="start a master and the page: no worker, nothing trains until you ask")
    up.add_argument("--port", type=port, metavar="N", help="port that workers reach (47820)")
    up.add_argument("--console-port", type=port, metavar="N", help="port of the page (47830)")
    up.add_argument(
        "--use",
        choices=("processes", "containers", "auto"),
        default="processes",
        help="processes (the default), containers with idle workers, or what this PC has",
    )
    add_browser(up)
    commands.add_parser("down", help="stop what mahe up started; data stays")

    add_demo(commands.add_parser("demo", help="train on this PC with a master, two workers and the page"))

    add_start(commands.add_parser("start", help="train on the cluster that runs on this PC"))

    join = commands.add_parser("join", help="let this PC work for the master that made this join string")
    join.add_argument("join_string", metavar="JOIN_STRING", help="the line that begins with mahe1.")
    commands.add_parser("worker", help="let this PC work, joined before or for the master on this PC")
    commands.add_parser("master", help="run only a master, set by MAHE_MASTER_* variables")
    commands.add_parser("console", help="run only the page, set by MAHE_CONSOLE_* variables")

    status = commands.add_parser("status", help="what the cluster on this PC does now")
    status.add_argument("--json", action="store_true", help="everything, as JSON")
    add_browser(commands.add_parser("open", help="print the page's link and open it"))
    commands.add_parser("doctor", help="check what MAHE needs on this PC, and say what to do")

    kernels = commands.add_parser("kernels", help="print which numeric kernels are in use, or build them")
    kernels.add_argument("--build", action="store_true", help="build them first")
    kernels.add_argument("--compiler", metavar="CMD", help='build with this compiler, for example "zig cc"')
    kernels.add_argument("--no-asm", action="store_true", help="build plain C only")

    replay = commands.add_parser("replay", help="play a master's journal again (MAHE_MASTER_JOURNAL wrote it)")
    replay.add_argument("journal", metavar="FILE", help="the journal")

    uninstall = commands.add_parser("uninstall", help="list what MAHE wrote on this PC, ask, and remove it")
    uninstall.add_argument("--yes", action="store_true", help="do not ask")
    return parser


def add_demo(demo: argparse.ArgumentParser) -> None:
    """The options of `mahe demo`."""
    demo.add_argument("--rounds", type=positive, metavar="N", help="rounds to train (as the data set recommends)")
    demo.add_argument("--workers", type=workers, default=2, metavar="N", help="worker processes (2)")
    demo.add_argument("--dataset", default="digits", metavar="NAME", help="digits, spiral3, gauss3 or rings4 (digits)")
    demo.add_argument("--min-workers", type=positive, default=1, metavar="N", help="a round opens with at least N (1)")
    demo.add_argument("--k-steps", type=positive, metavar="N", help="local steps per round (as recommended)")
    demo.add_argument("--batch", type=positive, metavar="N", help="samples per local step (as recommended)")
    demo.add_argument(
        "--stay",
        action=argparse.BooleanOptionalAction,
        help="keep the page up after the run (yes in a terminal, no in CI or a pipe)",
    )
    demo.add_argument("--attach", action="store_true", help="train on the cluster that runs here, start no other")
    demo.add_argument("--verbose", action="store_true", help="show the lines of all processes instead of keeping them")
    add_browser(demo)


def add_start(start: argparse.ArgumentParser) -> None:
    """The options of `mahe start`."""
    start.add_argument("--list", action="store_true", help="print the presets, each with a sentence")
    start.add_argument("--preset", choices=PRESETS, help="how to train (standard)")
    start.add_argument("--dataset", metavar="NAME", help="digits, spiral3, gauss3 or rings4 (digits)")
    start.add_argument("--name", metavar="TEXT", help="what people call the run (as the data set)")
    start.add_argument("--rounds", type=positive, metavar="N", help="rounds to train (as the preset says)")
    start.add_argument("--k-steps", type=positive, metavar="N", help="local steps per round (as the preset says)")
    start.add_argument("--batch", type=positive, metavar="N", help="samples per local step (as recommended)")
    start.add_argument("--encoding", choices=ENCODINGS, help="how deltas and updates travel (int8)")
    start.add_argument("--outer", choices=OUTER, help="what the master does with the deltas (as the preset says)")
    start.add_argument("--inner", choices=INNER, help="how a worker takes a step (as recommended)")
    start.add_argument("--aggregator", choices=AGGREGATORS, help="how deltas become one (clip)")
    start.add_argument("--balance", choices=BALANCES, help="how the work is shared (proportional)")
    start.add_argument("--spec", metavar="FILE", help="a JSON file with the fields of the run; options win over it")
    start.add_argument("--detach", action="store_true", help="only start it, do not follow its rounds")


def add_browser(command: argparse.ArgumentParser) -> None:
    """`--no-browser`, for whatever would open the page."""
    command.add_argument("--no-browser", dest="browser", action="store_false", help="do not open the page")


def installed_version() -> str:
    """The version of the installed package."""
    try:
        return importlib.metadata.version("mahe")
    except importlib.metadata.PackageNotFoundError:
        return "(from sources, not installed)"


def positive(text: str) -> int:
    """A whole number of at least 1."""
    return between(text, 1, 1_000_000)


def workers(text: str) -> int:
    """How many worker processes one PC can be asked for."""
    return between(text, 1, 64)


def port(text: str) -> int:
    """A TCP port; 0 takes any free one."""
    return between(text, 0, 65_535)


def between(text: str, least: int, most: int) -> int:
    """The number; raises what argparse turns into usage and exit code 2."""
    if not text.isdecimal() or not least <= int(text) <= most:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from {least} to {most}")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
