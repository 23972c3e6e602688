"""The documents say what the code does: settings, commands, messages, ports, routes, paths and quoted sentences.

Each check is run twice: on the documents, where it finds nothing, and with one text changed, where it must find
something. The parts between `NAME: begin` and `NAME: end` are written by
`MAHE_REWRITE=1 pytest services/tests/test_docs.py`.
"""

import os
import re
import tomllib
from collections.abc import Callable

import pytest

from bench.report import readme
from services import __version__
from services.common.learning import catalog
from services.common.learning.models import FAMILIES
from services.common.protocol import limits
from services.console.app import VERSION
from services.tests.docs import facts
from services.tests.docs.text import (
    API,
    CHANGELOG,
    CONTAINERS,
    CONTAINERS_ZH,
    DESIGN,
    EXAMPLE,
    GUIDE,
    MESSAGES,
    MESSAGES_ZH,
    README,
    README_ZH,
    TRAINING,
    Docs,
    anchor,
    documents,
    headings,
    part,
    prose,
    quoted,
    spans,
)
from services.tests.tidy.source import ROOT

Check = Callable[[Docs], list[str]]

README_LINES_MAX = 150  # that people write: the table of figures is not counted
LITERAL_SHARE_MIN = 0.33  # of a quoted message: with less, a template would fit any sentence
INTERNAL = {"MAHE_TRAINER_SCORE", "MAHE_FAILPOINTS"}  # an agent tells its trainer; a test tells a service
NOT_SETTINGS = {
    "MAHE_FAILPOINTS",
    "MAHE_REWRITE",
    "MAHE_NO_SKIPS",
    "MAHE_CHROMIUM",
    "MAHE_ABI_VERSION",
}  # of tests, of C
ORIGINAL_OPTIONS = (
    *("--role", "--master", "--rounds", "--min-workers", "--k-steps", "--batch", "--dataset builtin:rings4"),
    *("--test", "-t", "--no-ui", "--no-browser", "--community", "--no-asm", "--compiler", "--clean", "--systems"),
    "--master-index",
)
TOP_FOLDERS = ("services", "libkernel", "docs", "deploy", "requirements", ".ci")


def absent(docs: Docs, wanted: dict[str, str]) -> list[str]:
    """What the guide lacks: `wanted` maps a text to what it stands for."""
    return [f"{GUIDE} has no {what}: {text}" for text, what in wanted.items() if text not in docs[GUIDE]]


def generated(docs: Docs) -> list[str]:
    """The parts written by machine are as the code has it."""
    found = {key: part(*key).search(docs[key[0]]) for key in facts.GENERATED}
    return [
        f"the part {name!r} of {path} is not as the code has it: run this test with MAHE_REWRITE=1"
        for (path, name), write in facts.GENERATED.items()
        if (match := found[path, name]) is None or match[2] != write()
    ]


def variables(docs: Docs) -> list[str]:
    """Every variable that the code names is in the guide, and the documents name no other."""
    named = facts.variables() - INTERNAL
    known = named | {name for one in facts.settings() for name in one.names} | set(facts.OF_COMPOSE) | NOT_SETTINGS
    strange = {
        f"{path} names {name}, which nothing reads"
        for path, text in docs.items()
        for name in re.findall(r"\bMAHE(?:_[A-Z]+)+\b", text)
        if name not in known
    }
    return absent(docs, {f"`{name}`": "variable" for name in sorted(named)}) + sorted(strange)


def make_verbs(docs: Docs) -> list[str]:
    """Every target and variable of the Makefile is in the guide, and the documents name no other target."""
    targets, names = facts.make_words()
    wanted = {f"`make {one}": "target" for one in targets} | {f"`{one}=": "variable of make" for one in names}
    return absent(docs, wanted) + [
        f"{path} says {span!r}; make has no {word}"
        for path, text in docs.items()
        for span in spans(text)
        for word in re.findall(r"^make ([a-z][a-z-]*)", span)
        if word not in targets
    ]


def mahe_commands(docs: Docs) -> list[str]:
    """Every subcommand and option is in the guide, and the documents name no other."""
    known = facts.commands()
    wanted = {f"`mahe {one}": "command" for one in known} | {"`mahe --version`": "option"}
    wanted |= {f"`mahe {one} {option}": "option" for one, options in known.items() for option in options}
    wrong = absent(docs, wanted)
    for path, text in docs.items():
        for span in spans(text):
            for word, rest in re.findall(r"(?:^|[ /\\])(?:mahe|-m services) ([a-z]+)((?: [^#;&|]*)?)", span):
                bad = [one for one in re.findall(r"--[a-z-]+", rest) if one not in [*known.get(word, []), "--help"]]
                if word not in known or bad:
                    wrong.append(f"{path} says {span!r}; mahe has no {word} {' '.join(bad)}")
    return wrong


def ports(docs: Docs) -> list[str]:
    """Every port of the protocol is in the guide's table of ports."""
    return absent(docs, {f"| {value} |": name for name, value in vars(limits).items() if name.startswith("PORT_")})


def api_routes(docs: Docs) -> list[str]:
    """Every route of the console is in docs/API.md, and it names no other."""
    named = re.findall(r"^\| `([A-Z]+ /\S+)`", docs[API], re.MULTILINE)
    strange = [f"{API} names {route}, which nothing serves" for route in named if route not in facts.routes()]
    return [f"{API} has no route {route}" for route in facts.routes() if f"| `{route}` |" not in docs[API]] + strange


def choices(docs: Docs) -> list[str]:
    """Every data set is in the guide, every model family beside the fields of a run."""
    missing = absent(docs, {f"| `{entry['name']}` |": "data set" for entry in catalog()})
    families = [name for name in FAMILIES if f'"family": "{name}"' not in docs[TRAINING]]
    return missing + [f"{TRAINING} has no model family {name}" for name in families]


def original_options(docs: Docs) -> list[str]:
    """Each has a row that names what exists here (see mahe_commands and make_verbs), or says that it is planned."""
    wrong = []
    for option in ORIGINAL_OPTIONS:
        rows = [line for line in docs[GUIDE].splitlines() if re.match(rf"\| [^|]*`{option}( [^`]*)?`", line)]
        if not any(re.search(r"`(mahe|make) |`MAHE_|planned", row.strip("| ").partition(" | ")[2]) for row in rows):
            wrong.append(f"{GUIDE} does not say what became of {option}")
    return wrong


def paths(docs: Docs) -> list[str]:
    """Each file that is named exists, and so does the function after its colon."""
    wrong = []
    for path, text in docs.items():
        for span in spans(text):
            for name, inner in re.findall(r"(?:^|[ (])([\w.-]+/[\w./-]*\w)(?::([A-Za-z_][\w.]*))?", span):
                if name.split("/")[0] not in TOP_FOLDERS:
                    continue
                if not (ROOT / name).exists() and not (ROOT / f"{name}.py").exists():
                    wrong.append(f"{path} names {name}, which is not there")
                elif inner and not facts.defines(ROOT / name, inner):
                    wrong.append(f"{path} names {inner} in {name}, which is not there")
    return wrong


def printable(message: str) -> bool:
    """Whether the code can say this."""
    least = LITERAL_SHARE_MIN * len(message)
    return any(fixed >= least and pattern.fullmatch(message) for pattern, fixed in facts.templates())


def quoted_messages(docs: Docs) -> list[str]:
    """Each message in a table of messages can really be printed."""
    wrong = []
    for path, least in (
        (README, 12),
        (README_ZH, 12),
        (MESSAGES, 60),
        (MESSAGES_ZH, 60),
        (CONTAINERS, 6),
        (CONTAINERS_ZH, 6),
    ):
        found = quoted(docs[path])
        if len(found) < least:
            wrong.append(f"{path} explains {len(found)} messages; at least {least}")
        wrong += [f"{path} explains {message!r}, which nothing prints" for message in found if not printable(message)]
    return wrong


def languages(docs: Docs) -> list[str]:
    """Both languages have the same headings and explain the same messages; the README stays short."""
    wrong = []
    for english, chinese in ((README, README_ZH), (MESSAGES, MESSAGES_ZH), (CONTAINERS, CONTAINERS_ZH)):
        levels, levels_zh = ([one.split()[0] for one in headings(docs[path])] for path in (english, chinese))
        if levels != levels_zh:
            wrong.append(f"{english} has the headings {levels}, {chinese} has {levels_zh}")
    for english, chinese in ((README, README_ZH), (MESSAGES, MESSAGES_ZH), (CONTAINERS, CONTAINERS_ZH)):
        if quoted(docs[english]) != quoted(docs[chinese]):
            wrong.append(f"{chinese} does not explain the messages of {english} in the same order")
    written = {path: part(path, readme.NAME).sub("", docs[path]) for path in (README, README_ZH)}
    long = [path for path, text in written.items() if len(text.splitlines()) > README_LINES_MAX]
    return wrong + [f"{path} has more than {README_LINES_MAX} lines" for path in long]


def walk(docs: Docs) -> list[str]:
    """The walk of one delta has ten lines, each with a file and a function (which `paths` looks up)."""
    section = docs[DESIGN].partition("## The walk of one delta\n")[2].partition("\n## ")[0]
    lines = re.findall(r"^(\d+)\. (.*)$", section, re.MULTILINE)
    if [int(number) for number, _ in lines] != list(range(1, 11)):
        return [f"{DESIGN}: the walk of one delta has {len(lines)} lines, not ten in order"]
    bare = [number for number, text in lines if not re.search(r"`services/[\w/]+\.py:\w", text)]
    return [f"{DESIGN}: line {number} of the walk names no file and function" for number in bare]


def versions(docs: Docs) -> list[str]:
    """One version everywhere."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    newest = re.search(r"^## (\S+)", docs[CHANGELOG], re.MULTILINE)
    found = {"services": __version__, "services.console.app": VERSION, CHANGELOG: newest[1] if newest else "none"}
    return [
        f"{where} says version {one}, pyproject.toml says {project}" for where, one in found.items() if one != project
    ]


def links(docs: Docs) -> list[str]:
    """Each link within the tree leads to a file, and to a heading in it."""
    wrong = []
    for path, text in docs.items():
        for target in re.findall(r"\]\(([^)\s]+)\)", prose(text)):
            name, _, mark = target.partition("#")
            file = (ROOT / path).parent / name if name else ROOT / path
            if "://" in target:
                continue
            if not file.exists():
                wrong.append(f"{path} links to {target}, which is not there")
            elif mark and mark not in map(anchor, headings(file.read_text("utf-8"))):
                wrong.append(f"{path} links to {target}, which has no such heading")
    return wrong


# For each check: a document, a text in it, and what takes its place; then the check must find something.
BAD: dict[Check, list[tuple[str, str, str]]] = {
    generated: [
        (DESIGN, "| Tick | tick |", "| Tick | tock |"),
        (DESIGN, "| `HELLO` |", "| `HALLO` |"),
        (GUIDE, "| `MAHE_MASTER_PORT` | `47820` |", "| `MAHE_MASTER_PORT` | `4782` |"),
        (TRAINING, "| `k_steps` | `50` |", "| `k_steps` | `5` |"),
        (MESSAGES, "404 `RUN_UNKNOWN`", "400 `RUN_UNKNOWN`"),
        (MESSAGES_ZH, "`BAD_CURSOR`", "`BAD_COURSE`"),
        (EXAMPLE, "#MAHE_CONSOLE_PORT=47830", "#MAHE_CONSOLE_PORT=80"),
        (EXAMPLE, "# Name of this PC", "# The name of this PC"),
        (EXAMPLE, "# settings: end", ""),
        (EXAMPLE, "#MAHE_WORKER_CPUS=1", "#MAHE_WORKER_CPUS=9"),
        (CONTAINERS, "| `MAHE_MASTER_MEMORY` | `2g` |", "| `MAHE_MASTER_MEMORY` | `3g` |"),
        (README, " MB | fp32: ", " MB | fp32: 1"),
        (README_ZH, " MB | fp32：", " MB | fp32：1"),
    ],
    variables: [(GUIDE, "`MAHE_WORKER_JOIN_FILE`", ""), (README, "MAHE_HOME", "MAHE_HOUSE")],
    make_verbs: [(GUIDE, "`make requirements", ""), (GUIDE, "`MIN_WORKERS=", ""), (README, "make demo", "make denim")],
    mahe_commands: [
        (GUIDE, "`mahe doctor", ""),
        (GUIDE, "`mahe demo --k-steps", ""),
        (GUIDE, "`mahe join JOIN_STRING", ""),
        (README, "mahe worker", "mahe walker"),
        (GUIDE, "mahe open --no-browser", "mahe open --no-bowser"),
    ],
    ports: [(GUIDE, "| 47821 |", "| 47831 |")],
    api_routes: [
        (API, "| `DELETE /api/v1/workers/{worker}` |", ""),
        (API, "| `GET /healthz` |", "| `GET /health` |"),
    ],
    choices: [(GUIDE, "| `spiral3` |", "| spiral |"), (TRAINING, '"family": "softmax"', '"family": "soft"')],
    original_options: [(GUIDE, "`--k-steps N`", ""), (GUIDE, "planned", "later"), (GUIDE, "`-t`", "")],
    paths: [
        (DESIGN, "services/master/core/table.py", "services/master/core/tables.py"),
        (DESIGN, "deltas.py:on_delta_staged", "deltas.py:on_delta_stage"),
    ],
    quoted_messages: [
        (README, "copy the whole line again", "copy it"),
        (MESSAGES, "is the port right?", "is it?"),
        (README_ZH, "| 消息 |", "| 提示 |"),
    ],
    languages: [
        (README_ZH, "\n## ", "\n### "),
        (CONTAINERS_ZH, "\n## ", "\n### "),
        (README_ZH, "this join string has expired", "this join string is old"),
        (README, "\n", "\n\n\n"),
    ],
    walk: [(DESIGN, "\n10. ", "\n11. "), (DESIGN, "\n1. `services/worker/shell/trainer.py:", "\n1. `")],
    versions: [(CHANGELOG, f"## {__version__}", "## 0.0.9")],
    links: [(README, "(docs/USER_GUIDE.md)", "(docs/GUIDE.md)"), (API, "#codes)", "#letters)")],
}


@pytest.fixture(scope="module", autouse=True)
def written_anew() -> None:
    """With MAHE_REWRITE=1: write the generated parts first."""
    if os.environ.get("MAHE_REWRITE") != "1":
        return
    for (path, name), write in facts.GENERATED.items():
        text = (ROOT / path).read_text("utf-8")
        found = part(path, name).search(text)
        assert found is not None, f"{path} has no part {name!r}"
        (ROOT / path).write_text(text[: found.start(2)] + write() + text[found.end(2) :], "utf-8")
    documents.cache_clear()


@pytest.mark.parametrize("check", BAD, ids=lambda check: check.__name__)
def test_the_documents_pass(check: Check) -> None:
    found = check(documents())
    assert not found, "\n" + "\n".join(found)


@pytest.mark.parametrize("check", BAD, ids=lambda check: check.__name__)
def test_can_fail(check: Check) -> None:
    for path, old, new in BAD[check]:
        changed = documents()[path].replace(old, new)
        assert changed != documents()[path], f"{path} has no {old!r} to change"
        assert check(documents() | {path: changed}), f"{check.__name__} does not notice {old!r} -> {new!r} in {path}"
