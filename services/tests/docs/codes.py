"""The codes of errors: those that stand in the source, what the page says of each, and the tables in the documents.

Not for what a code means: `services/console/codes.py` says that.
"""

import ast
import json
import re
from collections.abc import Iterator
from functools import cache

from services.console.codes import CODES
from services.tests.tidy.source import ROOT, Source, load

CODE = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*")
FOLDERS = {"common", "console", "master"}  # nothing else answers the API
GIVEN_BY_PLACE = {"answer", "_answer"}  # functions that take the code without its name
TEXT, TEXT_ZH = (f"services/console/static/i18n/{name}.json" for name in ("en", "zh-CN"))
OF_A_CODE = "error."


@cache
def sentences(path: str) -> dict[str, str]:
    """What a table of the page says of each code."""
    table = json.loads((ROOT / path).read_text("utf-8"))
    return {key.removeprefix(OF_A_CODE): text for key, text in table.items() if key.startswith(OF_A_CODE)}


def table() -> str:
    """The codes in docs/MESSAGES.md, with the status of their answers."""
    meanings = {code: known.meaning for code, known in CODES.items()}
    return _table("| Status | Codes |", "4xx: the request", "5xx: master or console", meanings)


def table_zh() -> str:
    """The codes in docs/MESSAGES.zh-CN.md."""
    return _table("| 状态 | 代码 |", "4xx：请求本身", "5xx：主控或控制台", sentences(TEXT_ZH))


def _table(head: str, request: str, service: str, meanings: dict[str, str]) -> str:
    """Two rows, so that the document stays short: by whose fault it is, each code in a line of its own."""
    lines: dict[bool, list[str]] = {False: [], True: []}
    for code, known in CODES.items():
        lines[known.status >= 500].append(f"{known.status} `{code}` {meanings.get(code)}")
    rows = [f"| {name} | {'<br>'.join(lines[ours])} |" for ours, name in ((False, request), (True, service))]
    return "\n".join([head, "| --- | --- |", *rows])


def in_source() -> dict[str, str]:
    """Every code that a service which answers the API can raise, reply or answer with, and a file that has it."""
    sources = [one for one in load() if one.is_python and not one.is_test and one.parts[0] == "services"]
    return find([one for one in sources if one.parts[1] in FOLDERS])


def find(sources: list[Source]) -> dict[str, str]:
    """The codes in some files: what is called `code` in a call, a class or a parameter, and what GIVEN_BY_PLACE get."""
    names = dict(pair for source in sources for pair in _constants(source.tree))
    found = {}
    for source in sources:
        for value in _values(source.tree):
            for item in ast.walk(value):
                text = names.get(item.id) if isinstance(item, ast.Name) else getattr(item, "value", None)
                if isinstance(text, str) and CODE.fullmatch(text):
                    found[text] = source.path
    return found


def _constants(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """The texts that a module gives names to."""
    for item in tree.body:
        if isinstance(item, ast.Assign) and isinstance(item.value, ast.Constant) and isinstance(item.value.value, str):
            yield from ((target.id, item.value.value) for target in item.targets if isinstance(target, ast.Name))


def _values(tree: ast.Module) -> Iterator[ast.expr]:
    """What is given, or is by default, the code of something."""
    for item in ast.walk(tree):
        if isinstance(item, ast.Call):
            yield from (keyword.value for keyword in item.keywords if keyword.arg == "code")
            called = item.func.attr if isinstance(item.func, ast.Attribute) else getattr(item.func, "id", "")
            plain = (ast.Constant, ast.Name, ast.IfExp)
            yield from (one for one in item.args if called in GIVEN_BY_PLACE and isinstance(one, plain))
            yield from item.args[1:2] if called == "Fault" else ()
        elif isinstance(item, ast.Assign) and any(getattr(target, "id", "") == "code" for target in item.targets):
            yield item.value
        elif isinstance(item, ast.arguments):
            pairs = zip(item.kwonlyargs, item.kw_defaults, strict=True)
            yield from (default for arg, default in pairs if arg.arg == "code" and default is not None)
