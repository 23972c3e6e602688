"""Every code that the API answers with: its HTTP status and what it means, in one line.

The page has the same English, and the Chinese, under `error.<CODE>` in its tables of sentences; docs/MESSAGES.md and
its Chinese version have a table made from both. Tests compare these, and look through the source for codes that are
missing here.
"""

from typing import NamedTuple


class Known(NamedTuple):
    """What stands behind a code: the status of the answer, and a sentence that the answer's `detail` goes on from."""

    status: int
    meaning: str


CODES: dict[str, Known] = {
    "HTTP": Known(400, "The request is not understood."),
    "HOST_REJECTED": Known(403, "The console does not answer under this name."),
    "ORIGIN_REJECTED": Known(403, "Only the console's own page may ask this."),
    "TOKEN_REJECTED": Known(403, "The token is missing or wrong."),
    "NOT_FOUND": Known(404, "There is no such path."),
    "FOLDER_NOT_ALLOWED": Known(403, "This folder is outside of what the master may show."),
    "FOLDER_UNKNOWN": Known(404, "There is no such folder."),
    "RUN_UNKNOWN": Known(404, "There is no such run."),
    "WORKER_UNKNOWN": Known(404, "There is no such worker."),
    "JOIN_UNKNOWN": Known(404, "There is no such join string."),
    "CHECKPOINT_UNKNOWN": Known(404, "There is no such checkpoint."),
    "FILE_GONE": Known(404, "This checkpoint is not kept any more."),
    "METHOD_NOT_ALLOWED": Known(405, "This path does not take this method."),
    "QUEUE_FULL": Known(409, "Too many runs wait already."),
    "NO_DIALOG": Known(409, "No dialog of the system can be opened on this PC."),
    "DIALOG_OPEN": Known(409, "A dialog of the system is open already: look for its window."),
    "DIALOG_TIMEOUT": Known(409, "Nobody answered the dialog in time, and it was closed."),
    "FOLDER_UNUSABLE": Known(409, "The name of this folder cannot be used for a path."),
    "RUN_NOT_IN_PHASE": Known(409, "The run is in a phase in which this cannot be done."),
    "ENDPOINT": Known(409, "The master cannot put its addresses into a join string."),
    "BODY_TOO_LARGE": Known(413, "The body of the request is too large."),
    "FRAME_TOO_LARGE": Known(413, "The request is too large to be passed on to the master."),
    "CONTENT_TYPE": Known(415, "The body must be JSON and say so."),
    "VALIDATION": Known(422, "A value is not allowed."),
    "BAD_SPEC": Known(422, "A run cannot be trained like this."),
    "BAD_FIELD": Known(422, "The master does not take a field of this."),
    "BAD_CURSOR": Known(422, "The cursor is not one of this list."),
    "EVENT_ID": Known(422, "This is not the id of an event."),
    "IDEMPOTENCY_KEY_REUSED": Known(422, "This idempotency key was used for something else."),
    "INTERNAL": Known(500, "This is a bug in MAHE: please report it."),
    "UNKNOWN_TYPE": Known(502, "The master does not know this command: are both of one version?"),
    "FRAME_COUNT": Known(502, "The master does not understand the console: are both of one version?"),
    "FRAME_PAYLOAD": Known(502, "The master expects another message: are both of one version?"),
    "CHECKPOINT": Known(503, "The master's disk cannot be used."),
    "MASTER_UNREACHABLE": Known(503, "The master does not answer."),
    "NOT_READY": Known(503, "The master has not finished its checks."),
    "STREAMS_FULL": Known(503, "Too many pages are open."),
    "DOWNLOADS_FULL": Known(503, "Too many downloads run."),
    "STOPPING": Known(503, "The console stops."),
}
OF_ANOTHER_VERSION = 400  # what a code that is not known here is answered with


def status_of(code: str) -> int:
    """The HTTP status of a code of ours or of the master."""
    return CODES[code].status if code in CODES else OF_ANOTHER_VERSION
