"""Rules that read syntax trees: what is called, inherited, documented, and by which names.

Not for imports between floors (floors.py) nor for the size and text of files (text.py).
"""

import ast
import builtins
import re
from collections.abc import Iterator, Sequence

from services.tests.tidy.source import PYTHON_MIN, Source, Violation, imports, python

Function = ast.FunctionDef | ast.AsyncFunctionDef
FUNCTION_LINES_MAX = 70
BANNED_MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "marshal", "shelve"}
BANNED_NAMES = {"eval", "exec", "__import__"}
BANNED_ATTRIBUTES = {"recv_pyobj", "send_pyobj", "extractall"}
BANNED_CALLS = {"yaml.load", "os.fork", "os.forkpty", "os.system", "os.popen", "pty.fork"}
BANNED_ARGUMENTS = {("shell", True), ("allow_pickle", True)}
FORKING = {"get_context", "set_start_method"}
BASES = {
    *{"BaseModel", "BaseSettings", "RootModel", "Protocol", "Generic", "NamedTuple", "TypedDict"},
    *{"Enum", "IntEnum", "StrEnum", "Flag", "IntFlag"},
}
EXCEPTIONS = {
    name for name, value in vars(builtins).items() if isinstance(value, type) and issubclass(value, BaseException)
}
# Other people's classes that can only be used by inheriting, each with its reason.
BASES_ALLOWED = {"logging.Formatter": "the standard library takes the shape of a log line only as a subclass"}
WORDS = {"server": "master", "client": "worker", "node": "worker", "peer": "master or worker"}
# Names that use another project's word for another project's thing, each with its reason.
NAMES_ALLOWED: dict[str, str] = {}
# A sentence about another project's thing may use that project's word.
FOREIGN = re.compile(r"\b(CURVE|HTTP|ZeroMQ|libzmq|Server-sent)\b")
SPEAKING = {("services", part) for part in ("master", "worker", "common")}


def dotted(item: ast.expr) -> str:
    """The name as written, `os.path.join`; what is not a name is left out."""
    if isinstance(item, ast.Attribute):
        return f"{dotted(item.value)}.{item.attr}".lstrip(".")
    if isinstance(item, ast.Subscript):
        return dotted(item.value)
    return item.id if isinstance(item, ast.Name) else ""


def functions(source: Source) -> Iterator[Function]:
    """Every function of a file, methods and inner ones too."""
    return (item for item in ast.walk(source.tree) if isinstance(item, Function))


def syntax(sources: Sequence[Source]) -> Iterator[Violation]:
    """Every Python file can be read by the oldest Python that MAHE runs on."""
    for source in python(sources):
        try:
            ast.parse(source.text, source.path, feature_version=PYTHON_MIN)
        except SyntaxError as error:
            yield source.at(error.lineno or 1, f"not Python {'.'.join(map(str, PYTHON_MIN))}: {error.msg}")


def function_sizes(sources: Sequence[Source]) -> Iterator[Violation]:
    """A function has at most 70 lines."""
    for source in python(sources):
        for item in functions(source):
            lines = (item.end_lineno or item.lineno) - item.lineno + 1
            if lines > FUNCTION_LINES_MAX:
                yield source.at(item, f"{item.name} has {lines} lines; at most {FUNCTION_LINES_MAX}")


def banned_call(call: ast.Call) -> str | None:
    """What is wrong with this call, if anything."""
    name = dotted(call.func)
    last = name.rpartition(".")[2]
    for argument in call.keywords:
        if isinstance(argument.value, ast.Constant) and (argument.arg, argument.value.value) in BANNED_ARGUMENTS:
            return f"{argument.arg}=True"
    if name in BANNED_NAMES or name in BANNED_CALLS:
        return name
    if last in BANNED_ATTRIBUTES:
        return last
    if last in FORKING and any(isinstance(a, ast.Constant) and a.value in {"fork", "forkserver"} for a in call.args):
        return f"{last}: spawn, never fork"
    return None


def banned_calls(sources: Sequence[Source]) -> Iterator[Violation]:
    """Nothing that runs data as code, forks, opens a shell, unpacks blindly, or hides an error."""
    for source in python(sources):
        for target, place in imports(source, set()):
            if target.partition(".")[0] in BANNED_MODULES:
                yield source.at(place, f"imports {target}: data is never code")
        for item in ast.walk(source.tree):
            if isinstance(item, ast.Call) and (what := banned_call(item)):
                yield source.at(item, f"banned: {what}")
            elif isinstance(item, ast.ExceptHandler) and item.type is None:
                yield source.at(item, "a bare except: name the errors")
            elif isinstance(item, ast.ImportFrom) and any(alias.name == "*" for alias in item.names):
                yield source.at(item, f"from {item.module} import *: name what is imported")


def keyword_bags(sources: Sequence[Source]) -> Iterator[Violation]:
    """No function outside the tests passes its `**kwargs` on: what the inner one takes is said by name."""
    for source in python(sources):
        for item in ast.walk(source.tree):
            if source.is_test or not isinstance(item, Function | ast.Lambda) or not item.args.kwarg:
                continue
            name = item.args.kwarg.arg
            calls = [call for call in ast.walk(item) if isinstance(call, ast.Call)]
            if any(k.arg is None and dotted(k.value) == name for call in calls for k in call.keywords):
                yield source.at(item, f"passes **{name} through: name the arguments")


def base_allowed(name: str, ours: dict[str, list[str]], seen: frozenset[str] = frozenset()) -> bool:
    """Whether a class may inherit from `name`: an allowed base, or a class of ours that itself comes from one."""
    last = name.rpartition(".")[2]
    if name in BASES_ALLOWED or last in BASES or last in EXCEPTIONS or last.endswith("Error"):
        return True
    bases = ours.get(last, [])
    return last not in seen and bool(bases) and all(base_allowed(base, ours, seen | {last}) for base in bases)


def inheritance(sources: Sequence[Source]) -> Iterator[Violation]:
    """Classes inherit only from exceptions, pydantic, Protocol, enum, NamedTuple and TypedDict; no metaclasses."""
    found = [(source, item) for source in python(sources) for item in ast.walk(source.tree)]
    classes = [(source, item) for source, item in found if isinstance(item, ast.ClassDef) and not source.is_test]
    ours = {item.name: [dotted(base) for base in item.bases] for _, item in classes}
    for source, item in classes:
        for base in map(dotted, item.bases):
            if not base_allowed(base, ours):
                yield source.at(item, f"{item.name} inherits from {base}: hold one instead")
        if any(argument.arg == "metaclass" for argument in item.keywords):
            yield source.at(item, f"{item.name} has a metaclass")


def docstrings(sources: Sequence[Source]) -> Iterator[Violation]:
    """Each module says what it is for; each public function and class outside the tests has a docstring."""
    for source in python(sources):
        if source.tree.body and ast.get_docstring(source.tree) is None:
            yield source.at(1, "the module has no docstring")
        if source.is_test:
            continue
        for item in source.tree.body:
            named = isinstance(item, ast.ClassDef | Function) and not item.name.startswith("_")
            if isinstance(item, ast.ClassDef | Function) and named and ast.get_docstring(item) is None:
                yield source.at(item, f"{item.name} has no docstring")


def words_of(name: str) -> list[str]:
    """The words in an identifier, lower case and singular: `NodeList` is node, list."""
    pieces = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)
    return [piece.lower().removesuffix("s") for piece in pieces]


def words(sources: Sequence[Source]) -> Iterator[Violation]:
    """Modules, classes and functions of master, worker and common use the words of DESIGN section 2."""
    for source in python(sources):
        if source.is_test or source.parts[:2] not in SPEAKING:
            continue
        named = [item for item in ast.walk(source.tree) if isinstance(item, ast.ClassDef | Function)]
        for name, place in [(source.stem, 1), *((item.name, item.lineno) for item in named)]:
            for word in words_of(name):
                if word in WORDS and name not in NAMES_ALLOWED:
                    yield source.at(place, f"{name}: not '{word}' but {WORDS[word]} (DESIGN section 2)")


def sentences(sources: Sequence[Source]) -> Iterator[Violation]:
    """So do messages and docstrings: strings with a space in them."""
    for source in python(sources):
        if source.is_test or source.parts[:2] not in SPEAKING:
            continue
        for item in ast.walk(source.tree):
            if not isinstance(item, ast.Constant) or not isinstance(item.value, str) or " " not in item.value:
                continue
            for word in set(re.findall(r"[a-z]+", item.value.lower())):
                if word.removesuffix("s") in WORDS and not FOREIGN.search(item.value):
                    meant = WORDS[word.removesuffix("s")]
                    yield source.at(item, f"'{word}' in \"{item.value[:60]}\": say {meant} (DESIGN section 2)")


def dead_modules(sources: Sequence[Source]) -> Iterator[Violation]:
    """Each module under services is imported by another, is run by itself, or is a test."""
    modules = {source.module for source in python(sources)}
    used = {target for source in python(sources) for target, _ in imports(source, modules) if target != source.module}
    for source in python(sources):
        alone = source.stem in {"__init__", "__main__", "conftest"} or source.stem.startswith("test_")
        runs = 'if __name__ == "__main__"' in source.text
        if source.parts[0] == "services" and not alone and not runs and source.module not in used:
            yield source.at(1, f"nothing imports {source.module}: use it or delete it")
