"""What the documents are compared with, read from the code: settings, commands, targets, routes, messages, sentences.

Not for what the documents say (text.py) nor for the comparison (test_docs.py).
"""

import argparse
import ast
import json
import re
import typing
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, cast

from fastapi import FastAPI
from pydantic import AliasChoices, SecretStr
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings

from bench.report import readme
from services.common.host.logs import Log
from services.common.host.machine import home
from services.common.kernels.library import TIERS
from services.common.protocol import control, messages
from services.common.protocol.spec import RunSpec
from services.console.app import build
from services.console.context import Console
from services.console.hub import Hub, LinkState
from services.console.openapi import describe
from services.console.settings import ConsoleSettings
from services.launch.command_line import build_parser
from services.master.core.table import diagram
from services.master.settings import MasterSettings
from services.tests.docs import codes
from services.tests.docs.text import (
    CONTAINERS,
    DESIGN,
    EXAMPLE,
    GUIDE,
    MESSAGES,
    MESSAGES_ZH,
    README,
    README_ZH,
    TRAINING,
)
from services.tests.tidy.source import ROOT, Source, load
from services.worker.settings import WorkerSettings, hostname

GAP = "\0"  # what is filled into a sentence
KINDS = {
    bool: "true or false",
    Path: "a path",
    dict: "an object, see below",
    SecretStr: "a join string",
    tuple: "names, by commas",
}
MAHE_HOME = "Folder of all data; empty: the system's place for user data"
MAHE_KERNEL = "Which numeric kernels are used; auto: the fastest that runs here"
COMPOSE_FILES = ("compose.yaml", "deploy/compose.master.yaml", "deploy/compose.worker.yaml")
COMPOSE_VARIABLE = re.compile(r"\$\{(\w+):[-?]([^{}]*)\}")
OF_COMPOSE = {  # what only the compose files read
    "BASE_IMAGE": "Image that the images are built on",
    "PIP_INDEX_URL": "Package index of the build, if not that of the base image",
    "NPM_REGISTRY": "Where the page's packages come from, if make setup has not fetched them and npm's own does not do",
    "CA_BUNDLE": "File in deploy/ca with the certificates that the build trusts",
    "MAHE_VERSION": "Version of the images",
    "MAHE_HEALTH_INTERVAL": "How often the engine looks whether a service is well",
    **{f"MAHE_{name}_CPUS": f"Processors that a {name} may use" for name in ("MASTER", "WORKER", "CONSOLE")},
    **{f"MAHE_{name}_MEMORY": f"Memory that a {name} may use" for name in ("MASTER", "WORKER", "CONSOLE")},
}


class Setting(NamedTuple):
    """One environment variable as people see it."""

    names: tuple[str, ...]
    default: str
    allowed: str
    description: str


def settings() -> list[Setting]:
    """Every variable that a person may set: two for all of MAHE, and those of the settings classes."""
    found = [
        Setting(("MAHE_HOME",), "", "a path", MAHE_HOME),
        Setting(("MAHE_KERNEL",), "auto", " or ".join(TIERS), MAHE_KERNEL),
    ]
    classes: tuple[type[BaseSettings], ...] = (MasterSettings, WorkerSettings, ConsoleSettings)
    for one in classes:
        for name, field in one.model_fields.items():
            alias = field.validation_alias
            names: tuple[str, ...] = (f"{one.model_config.get('env_prefix', '')}{name.upper()}",)
            if isinstance(alias, str):
                names = (alias,)
            elif isinstance(alias, AliasChoices):
                names = tuple(map(str, alias.choices))
            found.append(Setting(names, default_of(field), allowed_by(field), field.description or ""))
    return found


def default_of(field: FieldInfo) -> str:
    """A default as it would be written into an environment file."""
    value = "" if field.default_factory is hostname else field.get_default(call_default_factory=True, validated_data={})
    if isinstance(value, SecretStr):
        value = value.get_secret_value()
    if isinstance(value, Path):
        return value.as_posix().replace(home().as_posix(), "${MAHE_HOME}")
    if isinstance(value, float):
        return f"{value:g}"
    return "" if value in (None, ()) else str(value).replace("'", '"')


def allowed_by(field: FieldInfo) -> str:
    """The bounds of a field, in words."""
    options = typing.get_args(field.annotation)
    if typing.get_origin(field.annotation) is typing.Literal:
        return " or ".join(map(str, options)) if len(options) > 1 else f"only {options[0]}"
    names = ("ge", "le", "lt", "min_length", "max_length", "pattern")
    bounds: dict[str, Any] = {
        name: getattr(one, name) for name in names for one in field.metadata if getattr(one, name, None) is not None
    }
    if "pattern" in bounds:
        return f"`{bounds['pattern']}`"
    if "max_length" in bounds:
        return f"{bounds.get('min_length', 0)} to {bounds['max_length']} characters"
    if "ge" in bounds:
        high = bounds["le"] if "le" in bounds else bounds["lt"] - 1
        return f"{bounds['ge']:g} to {f'{high:g}' if isinstance(high, float) else high}"
    kind: Any = typing.get_origin(field.annotation) or field.annotation
    return "a path" if Path in options else KINDS.get(kind, "text")


def settings_table() -> str:
    """The settings in the guide."""
    rows = ["| Variable | Default | Allowed | Meaning |", "| --- | --- | --- | --- |"]
    for one in settings():
        names = " or ".join(f"`{name}`" for name in one.names)
        rows.append(f"| {names} | {f'`{one.default}`' if one.default else ''} | {one.allowed} | {one.description} |")
    return "\n".join(rows)


def settings_file() -> str:
    """The settings in deploy/example.env: a line of description, then the variable with its default, commented out."""
    return "\n\n".join(f"# {one.description} ({one.allowed})\n#{one.names[0]}={one.default}" for one in settings())


def compose_defaults() -> dict[str, list[str]]:
    """The variables of the compose files, each with the defaults it has in them."""
    found: dict[str, list[str]] = {}
    for path in COMPOSE_FILES:
        for name, default in COMPOSE_VARIABLE.findall((ROOT / path).read_text("utf-8")):
            found.setdefault(name, []).append(default)
    return found


def _only_of_compose() -> list[tuple[str, str, str]]:
    defaults = compose_defaults()
    return [(name, " or ".join(dict.fromkeys(defaults[name])), said) for name, said in OF_COMPOSE.items()]


def compose_table() -> str:
    """What only the compose files read, in docs/CONTAINERS.md."""
    rows = ["| Variable | Default | Meaning |", "| --- | --- | --- |"]
    return "\n".join(
        [*rows, *(f"| `{name}` | {f'`{one}`' if one else ''} | {said} |" for name, one, said in _only_of_compose())]
    )


def compose_file() -> str:
    """The same in deploy/example.env."""
    return "\n\n".join(f"# {said}\n#{name}={one.partition(' or ')[0]}" for name, one, said in _only_of_compose())


def fields_table() -> str:
    """A run's specification in docs/TRAINING.md."""
    rows = ["| Field | Default | Allowed | Meaning |", "| --- | --- | --- | --- |"]
    for name, field in RunSpec.model_fields.items():
        rows.append(f"| `{name}` | `{default_of(field)}` | {allowed_by(field)} | {field.description} |")
    return "\n".join(rows)


def messages_table() -> str:
    """The types of messages in docs/DESIGN.md, with what their classes say of them."""
    rows = ["| Message | Class | What for |", "| --- | --- | --- |"]
    ways = (messages.FromWorker, messages.ToWorker, control.FromConsole, control.ToConsole)
    classes: list[Any] = [one for way in ways for one in typing.get_args(way)]
    for one in dict.fromkeys(classes):
        said = " ".join((one.__doc__ or "").split())
        rows.append(f"| `{one.model_fields['t'].default}` | `{one.__name__}` | {said} |")
    return "\n".join(rows)


# The parts of documents that are written by machine, by document and name.
GENERATED: dict[tuple[str, str], Callable[[], str]] = {
    (DESIGN, "states"): diagram,
    (DESIGN, "messages"): messages_table,
    (GUIDE, "settings"): settings_table,
    (TRAINING, "fields"): fields_table,
    (EXAMPLE, "settings"): settings_file,
    (EXAMPLE, "containers"): compose_file,
    (CONTAINERS, "variables"): compose_table,
    (MESSAGES, "codes"): codes.table,
    (MESSAGES_ZH, "codes"): codes.table_zh,
    (README, readme.NAME): readme.english,
    (README_ZH, readme.NAME): readme.chinese,
}


@cache
def commands() -> dict[str, list[str]]:
    """The subcommands of `mahe`, each with its long options and its arguments."""
    parsers = next(one for one in build_parser()._actions if isinstance(one, argparse._SubParsersAction))
    return {name: list(_words(parser)) for name, parser in parsers.choices.items()}


def _words(parser: argparse.ArgumentParser) -> Iterator[str]:
    for action in parser._actions:
        if not action.option_strings:
            yield str(action.metavar)
        yield from (name for name in action.option_strings if name.startswith("--") and name != "--help")


@cache
def make_words() -> tuple[set[str], set[str]]:
    """The targets and the variables of the Makefile."""
    text = (ROOT / "Makefile").read_text("utf-8")
    phony = re.findall(r"^\.PHONY: (.*)$", text, re.MULTILINE)
    return set(" ".join(phony).split()), {"PYTHON", "ARGS", *re.findall(r"\$\(if \$\(([A-Z_]+)\)", text)}


@cache
def openapi() -> dict[str, Any]:
    """The description of the API, as the console serves it."""
    console = Console(
        Hub(LinkState("connecting", 0, None)), cast(Any, None), "token", cast(Any, None), ConsoleSettings()
    )
    return describe(cast(FastAPI, build(console, frozenset(), Log("console"))._app))


def openapi_file() -> str:
    """The same as docs/openapi.json holds it: indented, so that a change can be read."""
    return json.dumps(openapi(), ensure_ascii=False, indent=1) + "\n"


def routes() -> list[str]:
    """`METHOD /path` of every route that the API describes."""
    return [f"{method.upper()} {path}" for path, methods in openapi()["paths"].items() for method in methods]


@cache
def code() -> list[Source]:
    """The Python of the product, without its tests."""
    return [one for one in load() if one.is_python and one.parts[0] == "services" and not one.is_test]


@cache
def variables() -> set[str]:
    """Every name of an environment variable of ours that stands in the code by itself."""
    items = (item for source in code() for item in ast.walk(source.tree))
    texts = (item.value for item in items if isinstance(item, ast.Constant) and isinstance(item.value, str))
    return {text for text in texts if re.fullmatch(r"MAHE(_[A-Z]+)+", text)}


@cache
def templates() -> list[tuple[re.Pattern[str], int]]:
    """What the code and the Makefile can say: a pattern, and how many of its characters are fixed."""
    said = {text for source in code() for text in _sentences(source.tree) if " " in text}
    echoed = re.findall(r'echo "([^"\n]+)', (ROOT / "Makefile").read_text("utf-8"))
    said |= {re.sub(r"\$\$\(.*|\$\(\w+\)", GAP, text) for text in echoed}
    patterns = ((re.escape(text).replace(re.escape(GAP), ".+?"), text) for text in sorted(said))
    return [(re.compile(pattern), len(text.replace(GAP, ""))) for pattern, text in patterns]


def _sentences(tree: ast.Module) -> Iterator[str]:
    """Every text in a module, with GAP for what is filled in."""
    pieces: set[int] = set()
    for item in ast.walk(tree):
        if isinstance(item, ast.JoinedStr):
            pieces.update(id(part) for part in item.values)
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else GAP for part in item.values)
        elif isinstance(item, ast.Constant) and isinstance(item.value, str) and id(item) not in pieces:
            yield re.sub(r"\{\w*\}", GAP, item.value)


def defines(path: Path, name: str) -> bool:
    """Whether a module has this function or class, or this method as `Class.method`."""
    scope: list[ast.stmt] = ast.parse(path.read_text("utf-8")).body
    for part in name.split("."):
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        found = next((item for item in scope if isinstance(item, kinds) and item.name == part), None)
        if found is None:
            return False
        scope = found.body
    return True
