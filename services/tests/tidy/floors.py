"""The floors of DESIGN section 1: who may import what.

The table is read from top to bottom; the first row whose prefix fits a module is its floor.
"""

import sys
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from services.tests.tidy.source import Source, Violation, imports, python

COMMON = "services.common"
ERRORS = f"{COMMON}.errors"
PROTOCOL = f"{COMMON}.protocol"
KERNELS = f"{COMMON}.kernels"
LEARNING = f"{COMMON}.learning"
HOST = f"{COMMON}.host"
SERVICES = ("master", "worker", "console")
MAINS = tuple(f"services.{service}.__main__" for service in SERVICES)
CORE_NEVER = ("time", "random", "os", "threading", "asyncio", "logging", "uuid", "datetime", "secrets", "socket")
NEVER = ("time", "threading", "socket")  # common: no sockets, no clock, no threads
# xxhash is the digest of DESIGN section 3: without it no floor could say what it holds.
NUMERIC = ("numpy", "xxhash")
SHELL = (*NUMERIC, "zmq", "pydantic", "pydantic_settings", "platformdirs")
WEB = ("fastapi", "starlette", "uvicorn", "prometheus_client")


class Floor(NamedTuple):
    """One row: the modules it holds, our modules and packages it may import, and what it never imports."""

    name: str
    holds: tuple[str, ...]
    ours: tuple[str, ...]
    packages: tuple[str, ...] = ()
    never: tuple[str, ...] = ()


def core(service: str) -> Floor:
    """Floor 4 of one service: errors and messages, and nothing that has a clock, a socket or chance in it."""
    own = f"services.{service}.core"
    return Floor(f"4 {service} core", (own,), (ERRORS, f"{PROTOCOL}.messages", own), (), CORE_NEVER)


def shell(service: str, *packages: str) -> Floor:
    """Floor 5 of one service, and its `__main__`: floors 1 to 3, the host glue, and all of its own."""
    own = f"services.{service}"
    return Floor(f"5 {service}", (own,), (COMMON, own), (*SHELL, *packages))


FLOORS = (
    Floor("6 the command", ("services.__main__",), (COMMON, "services.launch", *MAINS)),
    Floor("6 launch", ("services.launch",), (COMMON, "services.launch")),
    Floor("1 errors", (ERRORS,), (ERRORS,), (), NEVER),
    Floor("1 protocol", (PROTOCOL,), (ERRORS, PROTOCOL), ("pydantic", *NUMERIC), NEVER),
    Floor("2 kernels", (KERNELS,), (ERRORS, PROTOCOL, KERNELS), ("cffi", "numpy"), NEVER),
    Floor(
        "3 learning",
        (LEARNING,),
        (ERRORS, PROTOCOL, KERNELS, LEARNING),
        ("pydantic", *NUMERIC),
        (*NEVER, "logging"),
    ),
    Floor("host glue", (HOST,), (ERRORS, HOST), ("platformdirs",)),
    Floor("common", (COMMON,), (), (), NEVER),
    core("master"),
    core("worker"),
    shell("master"),
    shell("worker"),
    shell("console", *WEB),
    Floor("services", ("services",), ("services",)),
)


def within(module: str, prefixes: Sequence[str]) -> bool:
    """Whether `module` is one of `prefixes` or inside one."""
    return any(module == prefix or module.startswith(f"{prefix}.") for prefix in prefixes)


def floor_of(module: str) -> Floor | None:
    """The floor that holds `module`; None outside `services`."""
    return next((floor for floor in FLOORS if within(module, floor.holds)), None)


def torch_backend(source: Source) -> bool:
    """Whether this is one of the modules that may import torch."""
    return within(source.module, [f"{LEARNING}.backends"]) and source.stem.startswith("torch_")


def refusal(source: Source, floor: Floor, target: str) -> str | None:
    """Why `source`, on `floor`, may not import `target`; None if it may."""
    top = target.partition(".")[0]
    if target.startswith("."):
        return "a relative import; the import path is the file path"
    if top == "services":
        return None if within(target, floor.ours) else f"floor '{floor.name}' may import only {', '.join(floor.ours)}"
    if top in floor.never:
        return f"floor '{floor.name}' never imports {top}"
    if top in sys.stdlib_module_names or top in floor.packages or (top == "torch" and torch_backend(source)):
        return None
    return f"floor '{floor.name}' may import of the packages only {', '.join(floor.packages) or 'none'}"


def floors(sources: Sequence[Source]) -> Iterator[Violation]:
    """Each module outside the tests imports only what its floor may."""
    modules = {source.module for source in python(sources)}
    for source in python(sources):
        floor = floor_of(source.module)
        if floor is None or source.is_test:
            continue
        for target, place in imports(source, modules):
            reason = refusal(source, floor, target)
            if reason:
                yield source.at(place, f"imports {target}: {reason}")


def services_apart(sources: Sequence[Source]) -> Iterator[Violation]:
    """A service's own tests, too, import no other service; what crosses services is in services/tests."""
    modules = {source.module for source in python(sources)}
    for source in python(sources):
        if not source.is_test or source.parts[:2] == ("services", "tests") or source.parts[0] != "services":
            continue
        own = source.parts[1]
        others = [f"services.{name}" for name in SERVICES if name != own]
        for target, place in imports(source, modules):
            if within(target, others):
                yield source.at(place, f"a test of {own} imports {target}; what crosses services is in services/tests")
