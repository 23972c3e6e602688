"""What a person may send to somebody who helps: the state, the latest lines, settings and versions, without secrets.

Three nets, as no single one is sure: values whose name says secret, the very secrets of this console, and what has the
form of one. MAHE sends nothing; the file is for the person, who looks at it first.
"""

import os
import platform
import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import zmq
from pydantic import BaseModel, Field

from services.common.errors import SettingsError
from services.console.context import Console
from services.console.control_file import read_place
from services.console.settings import ConsoleSettings

HIDDEN = "(hidden)"
EVENTS_MAX = 1_000
PACKAGES = ("fastapi", "numpy", "pydantic", "pyzmq", "starlette", "uvicorn")
Dict = dict[str, Any]

_SECRET_NAME = re.compile(
    r"token|secret|passw|credential|cookie|authori[sz]ation|(^|[_-])join($|[_-]?string)|(^|[_-])(api)?keys?$",
    re.IGNORECASE,
)
_SECRET_FORM = re.compile(
    r"mahe1\.[a-z2-7.=]+"  # a join string
    r"|[0-9a-f]{32,}"  # a secret in hexadecimal; digests go with it
    r"|(?<![a-z0-9_-])(?=[a-z_-]*[0-9])[a-z0-9_-]{40,}"  # a token in base64
    r"|(?:token|secret|passw\w*|credential|cookie|authori[sz]ation|api[_-]?key)[\"']?\s*[=:]\s*[^,;\r\n]+"
    r"|\b(?:bearer|basic)\s+\S+",
    re.IGNORECASE,
)
_USER_FOLDER = re.compile(
    r"(?:/home|/Users)/+[^/\s:'\",;]+"
    r"|[A-Za-z]:[\\/]+Users[\\/]+(?:[^\\/:*?\"<>|\r\n]+(?=[\\/])|[^\\/\s:*?\"<>|]+)"
)


class SupportBundle(BaseModel):
    """The file that `getSupportBundle` hands out."""

    made_at_ms: int = Field(description="Wall clock, ms since the Unix epoch")
    versions: dict[str, str] = Field(description="Of MAHE, Python, the system, and the packages that matter")
    settings: Dict = Field(description="Of the console")
    variables: dict[str, str] = Field(description="The MAHE_ variables it was started with")
    link: Dict = Field(description="Whether the master answers, since when, and why not")
    id: str | None = Field(description="The event up to which `snapshot` goes, `term:seq`")
    snapshot: Dict | None = Field(description="The state as the page shows it; null before the master has answered")
    events: list[Dict] = Field(description=f"The latest log lines, at most {EVENTS_MAX}, oldest first")


def make_bundle(console: Console, mahe_version: str) -> SupportBundle:
    """Everything, cleaned."""
    mirror = console.hub.mirror
    settings = console.settings
    clean = cleaner([console.token, *_keys(settings)])
    found = {
        "made_at_ms": int(datetime.now(UTC).timestamp() * 1000),
        "versions": {"mahe": mahe_version, **versions()},
        "settings": settings.model_dump(mode="json"),
        "variables": {name: value for name, value in sorted(os.environ.items()) if name.startswith("MAHE_")},
        "link": console.hub.link.facts(),
        "id": mirror.id,
        "snapshot": mirror.snapshot,
        "events": [
            event.model_dump(include={"term", "seq", "time_ms", "kind", "text", "data"})
            for event in mirror.recent(EVENTS_MAX)
        ],
    }
    return SupportBundle.model_validate(clean(found))


def bundle_name(made_at_ms: int) -> str:
    """Its file name, by UTC."""
    return f"mahe-support-{datetime.fromtimestamp(made_at_ms / 1000, UTC):%Y%m%d-%H%M%S}.json"


def versions() -> dict[str, str]:
    """Python, the system, libzmq, and PACKAGES."""
    found = {"python": platform.python_version(), "system": platform.platform(), "libzmq": zmq.zmq_version()}
    return found | {name: _version(name) for name in PACKAGES}


def cleaner(secrets: Iterable[str], home: Path | None = None) -> Callable[[Any], Any]:
    """A function that makes the same value (JSON) without `secrets`, without what looks like one, and without the
    names of user folders: `home` (if not given, that of this process) and others become ~. The value is not changed.
    """
    parts = [re.escape(one) for one in secrets if one]
    known = re.compile("|".join(sorted(parts, key=len, reverse=True))) if parts else None
    home_text = str(home or _home() or "")
    own_folder = re.compile(rf"{re.escape(home_text)}(?![\w.-])") if len(home_text) > 3 else None

    def text(value: str) -> str:
        if known is not None:
            value = known.sub(HIDDEN, value)
        if own_folder is not None:
            value = own_folder.sub("~", value)
        return _SECRET_FORM.sub(HIDDEN, _USER_FOLDER.sub("~", value))

    def clean(value: Any) -> Any:
        if isinstance(value, str):
            return text(value)
        if isinstance(value, list | tuple):
            return [clean(one) for one in value]
        if isinstance(value, dict):
            return {text(str(name)): HIDDEN if _hides(str(name), one) else clean(one) for name, one in value.items()}
        return value

    return clean


def _hides(name: str, value: object) -> bool:
    """Whether the name alone says that the value is a secret; a count or a switch is none."""
    return bool(value) and not isinstance(value, int | float) and _SECRET_NAME.search(name) is not None


def _keys(settings: ConsoleSettings) -> list[str]:
    """The keys to the master; none where control.json cannot be read."""
    try:
        place = read_place(settings.control_dir)
    except SettingsError:
        return []
    return [place.server_key.decode(), place.secret_key.decode()]


def _home() -> Path | None:
    try:
        return Path.home()
    except RuntimeError:  # a user without a folder, in a container
        return None


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
