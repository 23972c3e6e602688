"""A journal of all that the coordinator was told, so that what a user saw can be played again: `mahe replay FILE`.

One JSON object a line: first what it began with, then each event with its time. A running digest of everything it
decided stands in each line; a replay that comes to another digest has found a difference. Off unless asked for.
"""

import dataclasses
import functools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, get_args

import xxhash
from pydantic import TypeAdapter, ValidationError

from services.common.errors import SettingsError
from services.common.protocol.limits import APP_VERSION
from services.master.core import events
from services.master.core.commands import Command
from services.master.core.coordinator import Coordinator
from services.master.core.events import Event
from services.master.core.recovery import Saved

JOURNAL_BYTES_MAX = 1 << 30
_KINDS: dict[str, Any] = {kind.__name__: kind for kind in get_args(events.Event)}


@functools.cache
def _adapter(kind: Any) -> "TypeAdapter[Any]":
    return TypeAdapter(kind)


class Decisions:
    """The running digest of what a coordinator decided."""

    def __init__(self) -> None:
        self._digest = xxhash.xxh3_128()

    def add(self, commands: list[Command]) -> str:
        """With these commands, in order."""
        for command in commands:
            self._digest.update(f"{type(command).__name__} {dataclasses.asdict(command)}".encode())
        return self._digest.hexdigest()


class Journal:
    """Writes; it ends by itself at JOURNAL_BYTES_MAX or when the disk is full: it must never stop the master."""

    def __init__(self, path: Path, term: int) -> None:
        self._decisions = Decisions()
        self._room = JOURNAL_BYTES_MAX
        try:
            self._file: IO[bytes] | None = path.open("wb")
        except OSError as error:
            text = f"the journal {path} cannot be written ({error.strerror or error}); name another file"
            raise SettingsError(f"{text} with MAHE_MASTER_JOURNAL", code="JOURNAL") from None
        self._line({"mahe": APP_VERSION, "term": term})

    def restored(self, saved: Saved, now_ms: int) -> None:
        """What the coordinator took up before the first event."""
        self._line({"at": now_ms, "saved": _adapter(Saved).dump_python(saved, mode="json")})

    def seen(self, now_ms: int, event: Event, commands: list[Command]) -> None:
        """One step."""
        digest = self._decisions.add(commands)
        kind: Any = type(event)
        body = _adapter(kind).dump_python(event, mode="json")
        self._line({"at": now_ms, "kind": kind.__name__, "event": body, "digest": digest})

    def close(self) -> None:
        """Write what is still in memory."""
        file, self._file = self._file, None
        if file is not None:
            try:
                file.close()
            except OSError:
                return

    def _line(self, line: dict[str, Any]) -> None:
        raw = json.dumps(line).encode() + b"\n"
        self._room -= len(raw)
        if self._file is None:
            return
        try:
            if self._room < 0:
                self.close()
            else:
                self._file.write(raw)
        except OSError:
            self.close()


@dataclasses.dataclass(frozen=True)
class Replayed:
    """What a replay found: how many events were played, and where it went another way (None: nowhere)."""

    events: int
    digest: str
    differs_at: int | None


def replay(path: Path) -> Replayed:
    """Feed a coordinator what the journal says. Raises SettingsError when the file is no journal of this version."""
    decisions, coordinator, count, digest = Decisions(), Coordinator(0), 0, ""
    for number, line in _lines(path):
        try:
            if "term" in line:
                coordinator = Coordinator(line["term"])
            elif "saved" in line:
                coordinator.restore(_adapter(Saved).validate_json(json.dumps(line["saved"])), line["at"])
            else:
                event = _adapter(_KINDS[line["kind"]]).validate_json(json.dumps(line["event"]))
                digest = decisions.add(coordinator.step(event, line["at"]))
                count += 1
                if digest != line["digest"]:
                    return Replayed(count, digest, number)
        except (KeyError, TypeError, ValidationError) as error:
            text = f"{path}, line {number}: no line of a journal of MAHE {APP_VERSION} ({type(error).__name__})"
            raise SettingsError(f"{text}; was it written by another version?", code="JOURNAL") from None
    return Replayed(count, digest, None)


def _lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    try:
        with path.open("rb") as file:
            for number, raw in enumerate(file, start=1):
                if not raw.endswith(b"\n"):
                    return  # the master was killed while it wrote this line
                line = json.loads(raw)
                if not isinstance(line, dict):
                    raise ValueError  # noqa: TRY004 - told below with the others
                yield number, line
    except OSError as error:
        raise SettingsError(f"{path} cannot be read ({error.strerror or error})", code="JOURNAL") from None
    except ValueError:
        raise SettingsError(f"{path} is no journal: a line is no JSON object", code="JOURNAL") from None
