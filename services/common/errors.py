"""The one tree of errors, for every service.

    MaheError
    ├── ProtocolError      a message that cannot be taken: code, sentence, next step
    ├── KernelError        libkernel is missing, has another ABI, or was called wrongly
    ├── CheckpointError    a checkpoint that cannot be written or must not be loaded
    ├── DatasetError       data that cannot be used for training
    └── SettingsError      a setting, port or folder that cannot be used

An error says what happened, the value it met, what is allowed and the next step. Programmer errors are `assert`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

QUOTED_MAX = 80


@dataclass(frozen=True)
class Fault:
    """One field that is not as it must be: its path with dots, a stable code, a sentence."""

    field: str
    code: str
    message: str


class MaheError(Exception):
    """An operating error with a stable `code` (for machines and translations) and a sentence (for people).

    `faults`: the fields that it is about, where they are known.
    """

    code = "ERROR"

    def __init__(self, sentence: str, *, code: str | None = None, faults: Sequence[Fault] = ()) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.faults = tuple(faults)
        if code is not None:
            self.code = code


class ProtocolError(MaheError):
    """A frame or message from outside that is refused."""

    code = "BAD_MESSAGE"


class KernelError(MaheError):
    """libkernel is missing or was called with arguments it refuses."""

    code = "KERNEL"


class CheckpointError(MaheError):
    """A checkpoint that cannot be written, or is damaged and must not be loaded."""

    code = "CHECKPOINT"


class DatasetError(MaheError):
    """A data set that cannot be found or used."""

    code = "DATASET"


class SettingsError(MaheError):
    """A setting, port or folder that cannot be used."""

    code = "SETTINGS"


def bad_setting(prefix: str, fault: Mapping[str, Any]) -> SettingsError:
    """The first fault of a settings class (one of pydantic's `errors()`): variable and value."""
    field = "_".join(str(part) for part in fault["loc"][:1])
    name = field.upper() if field.upper().startswith("MAHE_") else prefix + field.upper()
    return SettingsError(f"{name} is {quoted(fault['input'])}: {fault['msg']}; correct it and start again")


def quoted(value: object) -> str:
    """A value from outside as a sentence names it: as Python writes it, cut to QUOTED_MAX characters. Never raises."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # an integer of over 4,300 digits, lists within lists within lists
        return f"a value of type {type(value).__name__}, too large to show"
    return text if len(text) <= QUOTED_MAX else text[: QUOTED_MAX - 3] + "..."
