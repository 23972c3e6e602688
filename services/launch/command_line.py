"""What the command line of `mahe` takes. Not for what the words do: services/__main__.py calls the part that does it.

Words that other modules decide on are known here, too, so that usage and `--help` need none of them; a test compares.
"""

import argparse
import importlib.metadata
import math
from typing import Literal

PRESETS = ("quick", "standard", "thorough", "long")
ENCODINGS = ("fp32", "bf16", "int8", "int4", "topk")
OUTER, INNER = ("fedavg", "momentum", "nesterov", "fedadam"), ("sgd", "momentum", "adamw")
AGGREGATORS, BALANCES = ("clip", "mean", "trimmed", "median"), ("proportional", "equal", "units")
IN_FLIGHT: tuple[Literal["auto", 1, 2], ...] = ("auto", 1, 2)
START_FIELDS = (
    *("dataset", "preset", "name", "rounds", "minutes_max", "patience", "min_workers", "k_steps", "k_auto"),
    *("k_steps_max", "batch", "balance", "units", "encoding", "outer", "inner", "aggregator", "clip", "trim"),
    *("rounds_in_flight", "seed", "model_path", "model_every"),
)
RUNS_SHOWN = 20


def build_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="mahe",
        description="MAHE turns idle PCs into an AI training cluster.",
        epilog="First time? mahe demo trains handwritten digits here. For real use: mahe up here, mahe join elsewhere.",
    )
    parser.add_argument("--version", action="version", version=f"mahe {installed_version()}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)

    add_up(commands.add_parser("up", help="start a master and the page: no worker, nothing trains until you ask"))
    commands.add_parser("down", help="stop what mahe up started; data stays")
    add_demo(commands.add_parser("demo", help="train on this PC with a master, two workers and the page"))
    add_start(commands.add_parser("start", help="train on the cluster that runs on this PC"))
    add_runs(commands)

    join = commands.add_parser("join", help="let this PC work for the master that made this join string")
    join.add_argument("join_string", metavar="JOIN_STRING", help="the line that begins with mahe1.")
    commands.add_parser("worker", help="let this PC work, joined before or for the master on this PC")
    commands.add_parser("master", help="run only a master, set by MAHE_MASTER_* variables")
    commands.add_parser("console", help="run only the page, set by MAHE_CONSOLE_* variables")

    add_json(commands.add_parser("status", help="what the cluster on this PC does now"))
    opening = commands.add_parser("open", help="print the page's link and open it")
    add_browser(opening)
    add_json(opening)
    commands.add_parser("doctor", help="check what MAHE needs on this PC, and say what to do")

    kernels = commands.add_parser("kernels", help="print which numeric kernels are in use, or build them")
    kernels.add_argument("--build", action="store_true", help="build them first")
    kernels.add_argument("--compiler", metavar="CMD", help='build with this compiler, for example "zig cc"')
    kernels.add_argument("--no-asm", action="store_true", help="build plain C only")

    replay = commands.add_parser("replay", help="play a master's journal again (MAHE_MASTER_JOURNAL wrote it)")
    replay.add_argument("journal", metavar="FILE", help="the journal")

    add_yes(commands.add_parser("uninstall", help="list what MAHE wrote on this PC, ask, and remove it"))
    return parser


def add_up(up: argparse.ArgumentParser) -> None:
    """The options of `mahe up`."""
    up.add_argument("--port", type=port, metavar="N", help="port that workers reach (47820)")
    up.add_argument("--console-port", type=port, metavar="N", help="port of the page (47830)")
    up.add_argument(
        "--use",
        choices=("processes", "containers", "auto"),
        default="processes",
        help="processes (the default), containers with idle workers, or what this PC has",
    )
    add_browser(up)
    add_no_ui(up)


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
    add_no_ui(demo)


def add_start(start: argparse.ArgumentParser) -> None:
    """The options of `mahe start`: fields of the run by their names, and how it is shown."""
    start.add_argument("--list", action="store_true", help="print the presets, each with a sentence")
    start.add_argument("--preset", choices=PRESETS, help="how to train (standard)")
    start.add_argument("--spec", metavar="FILE", help="a JSON file with the fields of the run; options win over it")
    start.add_argument(
        "--watch",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="follow its rounds to the end (yes), or only start it",
    )
    add_json(start)
    what = start.add_argument_group("what is trained")
    what.add_argument("--dataset", metavar="NAME", help="digits, spiral3, gauss3 or rings4 (digits)")
    what.add_argument("--name", metavar="TEXT", help="what people call the run (as the data set)")
    what.add_argument("--seed", type=whole, metavar="N", help="seed of weights and data order (7)")
    length = start.add_argument_group("how long")
    length.add_argument("--rounds", type=positive, metavar="N", help="rounds to train (as the preset says)")
    length.add_argument("--minutes-max", type=number, metavar="X", help="end after X minutes of training; 0: no limit")
    length.add_argument(
        "--patience", type=whole, metavar="N", help="end when N evaluations in a row were no better; 0: never"
    )
    add_start_workers(start.add_argument_group("what workers do"))
    master = start.add_argument_group("what the master does")
    master.add_argument("--model-path", metavar="FILE", help="copy the best model here (checkpoints/mahe_model.npz)")
    master.add_argument("--model-every", type=positive, metavar="N", help="rounds between two copies (5)")
    master.add_argument("--outer", choices=OUTER, help="what the master does with the deltas (as the preset says)")
    master.add_argument("--aggregator", choices=AGGREGATORS, help="how deltas become one (clip)")
    master.add_argument("--clip", type=number, metavar="X", help="limit of a norm in medians, for aggregator clip (1)")
    master.add_argument(
        "--trim", type=positive, metavar="N", help="values left out at each end, for aggregator trimmed (1)"
    )
    master.add_argument(
        "--rounds-in-flight",
        type=in_flight,
        metavar="auto|1|2",
        help="1: rounds wait for each other; 2: workers train on meanwhile; auto: as the network is (auto)",
    )


def add_start_workers(group: "argparse._ArgumentGroup") -> None:
    """The options of `mahe start` about local steps and shards."""
    group.add_argument("--min-workers", type=positive, metavar="N", help="a round opens with at least N (1)")
    group.add_argument("--k-steps", type=positive, metavar="N", help="local steps per round (as the preset says)")
    group.add_argument(
        "--k-auto", action=argparse.BooleanOptionalAction, help="let the master raise k-steps (as the preset says)"
    )
    group.add_argument("--k-steps-max", type=positive, metavar="N", help="the most that k-auto takes (as the preset)")
    group.add_argument("--batch", type=positive, metavar="N", help="samples per local step (as recommended)")
    group.add_argument("--inner", choices=INNER, help="how a worker takes a step (as recommended)")
    group.add_argument("--encoding", choices=ENCODINGS, help="how deltas and updates travel (int8)")
    group.add_argument("--balance", choices=BALANCES, help="how the work is shared (proportional)")
    group.add_argument("--units", type=positive, metavar="N", help="units in a round, for balance units (8)")


def add_runs(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """The commands about runs that were started: list, watch, stop, pause, resume."""
    runs = commands.add_parser("runs", help="the runs that were started, or one with settings and checkpoints")
    runs.add_argument("run", nargs="?", metavar="RUN", help="the id of one run")
    runs.add_argument("--limit", type=positive, default=RUNS_SHOWN, metavar="N", help=f"the newest N ({RUNS_SHOWN})")
    add_json(runs)
    for name, said in (
        ("watch", "follow a run to its end; Ctrl-C leaves it alone"),
        ("stop", "end a run for good; its checkpoints stay"),
        ("pause", "close the round in flight, open no other"),
        ("resume", "go on with a paused or failed run"),
    ):
        command = commands.add_parser(name, help=said)
        command.add_argument("run", nargs="?", metavar="RUN", help="the id of the run (the current one)")
        add_json(command)
        if name == "stop":
            add_yes(command)


def add_browser(command: argparse.ArgumentParser) -> None:
    """`--no-browser`, for whatever would open the page."""
    command.add_argument("--no-browser", dest="browser", action="store_false", help="do not open the page")


def add_no_ui(command: argparse.ArgumentParser) -> None:
    """`--no-ui`, for where nobody looks."""
    command.add_argument("--no-ui", action="store_true", help="nobody will look: open no page, and wait for none")


def add_json(command: argparse.ArgumentParser) -> None:
    """`--json`, for whatever scripts read."""
    command.add_argument("--json", action="store_true", help="the result as JSON, for scripts")


def add_yes(command: argparse.ArgumentParser) -> None:
    """`--yes`, for whatever asks first."""
    command.add_argument("--yes", action="store_true", help="do not ask")


def installed_version() -> str:
    """The version of the installed package."""
    try:
        return importlib.metadata.version("mahe")
    except importlib.metadata.PackageNotFoundError:
        return "(from sources, not installed)"


def positive(text: str) -> int:
    """A whole number of at least 1."""
    return between(text, 1, 1_000_000)


def whole(text: str) -> int:
    """A whole number of at least 0."""
    return between(text, 0, 2**31 - 1)


def number(text: str) -> float:
    """A number of at least 0."""
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not 0 <= found < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of at least 0")
    return found


def in_flight(text: str) -> Literal["auto", 1, 2]:
    """How many rounds are in flight."""
    for choice in IN_FLIGHT:
        if text == str(choice):
            return choice
    raise argparse.ArgumentTypeError(f"{text!r} is not auto, 1 or 2")


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
