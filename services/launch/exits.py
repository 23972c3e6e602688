"""The exit codes of `mahe`: one table, for the code, the guide and its tests."""

from services.common.errors import MaheError

DONE, FAILED, USAGE, NOT_REACHABLE, INTERRUPTED = 0, 1, 2, 3, 130

MEANING = {
    DONE: "done",
    FAILED: "failed",
    USAGE: "wrong usage",
    NOT_REACHABLE: "no MAHE reachable on this PC",
    INTERRUPTED: "interrupted",
}
NOBODY_TO_ASK = "NOBODY_TO_ASK"
_OF_ERROR = {
    "NOT_REACHABLE": NOT_REACHABLE,  # no console
    "MASTER_UNREACHABLE": NOT_REACHABLE,  # a console without its master
    NOBODY_TO_ASK: USAGE,
}


def exit_of(error: MaheError) -> int:
    """The exit code that an error ends with."""
    return _OF_ERROR.get(error.code, FAILED)
