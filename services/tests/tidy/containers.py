"""Rules for what runs in containers: the compose files and the Dockerfile, read as data. No engine is needed.

Not for whether it works: that is `services/tests/containers`.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any

import yaml

from services.tests.tidy.source import Source, Violation

OPEN_PORT = 47820  # the one that other PCs must reach
LOOPBACK = {"127.0.0.1", "[::1]", "::1", "localhost"}
NUMERIC_USER = re.compile(r"[1-9]\d*(:[1-9]\d*)?")
SECRET_NAME = re.compile(r"(TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?|KEY|JOIN)$", re.IGNORECASE)
JOIN_STRING = re.compile(r"mahe1\.[a-z2-7]{8}")
VARIABLE = re.compile(r"\$\{(\w+)(?:(:?[-?])([^{}]*))?\}")
HOST_SPACES = ("network_mode", "pid", "ipc", "userns_mode")
LIMITS = ("cpus", "mem_limit", "pids_limit")


def compose_files(sources: Sequence[Source]) -> Iterator[Violation]:
    """A service has no right it does not need, no door but the one, no secret in the file; limits and a healthcheck."""
    for source in sources:
        if source.suffix not in {".yaml", ".yml"} or "compose" not in source.stem:
            continue
        for name, service in (yaml.safe_load(source.text).get("services") or {}).items():
            for sentence in (*_rights(service), *_doors(service), *_secrets(service), *_care(service)):
                yield source.at(_line(source, name), f"{name}: {sentence}")


def dockerfiles(sources: Sequence[Source]) -> Iterator[Violation]:
    """Every image runs under a numeric user that is not root, on a named version, and checks its health in Python."""
    for source in sources:
        if source.parts[-1] != "Dockerfile":
            continue
        users = re.findall(r"^USER (\S+)", source.text, re.MULTILINE)
        if not users or not all(NUMERIC_USER.fullmatch(user) for user in users):
            yield source.at(1, "runs as root, or not under a number")
        bases = re.findall(r"^(?:FROM|ARG BASE_IMAGE=)(?: *)([^\s$]+:[^\s]+|[a-z0-9./-]+$)", source.text, re.MULTILINE)
        stages = set(re.findall(r" AS (\S+)", source.text))
        for base in bases:
            if base not in stages and not _tagged(base):
                yield source.at(1, f"{base}: name a version, never latest")
        if "HEALTHCHECK" not in source.text or re.search(r"\b(curl|wget)\b", source.text):
            yield source.at(1, "needs a healthcheck, in Python: neither curl nor wget is there")


def resolved(value: object) -> str:
    """A value as it is in an empty environment: `${NAME:-default}` is `default`, and `${NAME:?sentence}` is nothing."""
    text, before = str(value), ""
    while text != before:
        before = text
        text = VARIABLE.sub(lambda found: (found[3] or "") if "-" in (found[2] or "") else "", text)
    return text


def environment(service: dict[str, Any]) -> dict[str, str]:
    """The environment of a service, whichever way it is written."""
    given = service.get("environment") or {}
    pairs = given.items() if isinstance(given, dict) else (str(one).partition("=")[::2] for one in given)
    return {str(name): "" if value is None else str(value) for name, value in pairs}


def _rights(service: dict[str, Any]) -> Iterator[str]:
    if not NUMERIC_USER.fullmatch(resolved(service.get("user", ""))):
        yield "runs as root: set user to a number, such as 10001:10001"
    if service.get("privileged") or service.get("cap_add") or service.get("cap_drop") != ["ALL"]:
        yield "keeps rights: cap_drop must be [ALL], without cap_add or privileged"
    if not any("no-new-privileges" in str(option) for option in service.get("security_opt") or ()):
        yield "may gain rights: security_opt lacks no-new-privileges"
    if service.get("read_only") is not True:
        yield "may write into its image: set read_only"
    if any(str(service.get(name, "")).startswith("host") for name in HOST_SPACES):
        yield "shares a name space of the host"
    if any(
        "docker.sock" in str(volume) or str(volume).startswith(("/var/run:", "/run:")) for volume in _mounts(service)
    ):
        yield "has the engine's socket, and with it the whole machine"


def _mounts(service: dict[str, Any]) -> list[Any]:
    return [*(service.get("volumes") or ()), *(service.get("configs") or ()), *(service.get("devices") or ())]


def _doors(service: dict[str, Any]) -> Iterator[str]:
    for entry in service.get("ports") or ():
        if isinstance(entry, dict):
            address, target = resolved(entry.get("host_ip", "")), resolved(entry.get("target", ""))
        else:
            text = resolved(entry).partition("/")[0]
            target = text.rpartition(":")[2]
            address = text.rpartition(":")[0].rpartition(":")[0]
        if address not in LOOPBACK and target != str(OPEN_PORT):
            yield f"publishes port {target} to every network: write 127.0.0.1: before it"


def _secrets(service: dict[str, Any]) -> Iterator[str]:
    build = service.get("build")
    arguments = environment({"environment": build.get("args")}) if isinstance(build, dict) else {}
    for name, value in {**arguments, **environment(service)}.items():
        if SECRET_NAME.search(name) and resolved(value):
            yield f"{name} has a secret in the file: take it from a variable without a default, or from a file"
    if JOIN_STRING.search(str(service)):
        yield "has a join string in the file"


def _care(service: dict[str, Any]) -> Iterator[str]:
    image = resolved(service.get("image", ""))
    if not _tagged(image):
        yield f"image {image!r}: name a version, never latest"
    lacking = [name for name in LIMITS if not resolved(service.get(name, "")).strip("0")]
    if lacking:
        yield f"has no limit: {', '.join(lacking)}"
    check = service.get("healthcheck") or {}
    once = service.get("restart") == "no" and check.get("disable")  # it ends by itself, and its exit code says how
    if not once and (check.get("disable") or not check.get("test")):
        yield "has no healthcheck"


def _tagged(image: str) -> bool:
    """Whether an image is named with a digest, or with a tag that is not `latest`."""
    tag = image.rpartition("/")[2].partition(":")[2]
    return "@sha256:" in image or tag not in {"", "latest"}


def _line(source: Source, name: str) -> int:
    return next((number for number, line in enumerate(source.lines, 1) if line.startswith(f"  {name}:")), 1)
