"""Errors as people and programs meet them over HTTP: RFC 9457 `application/problem+json` with a stable `code`.

Not for what codes there are: codes.py has them. The page translates by `code`; `detail` is English.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from services.common.errors import MaheError

MEDIA_TYPE = "application/problem+json"
TITLES = {
    400: "Refused",
    403: "Not allowed",
    404: "Not found",
    405: "Method not allowed",
    409: "Not possible in this state",
    413: "Body too large",
    415: "Wrong content type",
    422: "Not valid",
    500: "Fault in MAHE",
    502: "Master and console do not fit together",
    503: "Not available now",
}


class FieldFault(BaseModel):
    """One field that is not as it must be; `field` is its path, dotted."""

    field: str
    code: str
    message: str


class ProblemBody(BaseModel):
    """The body of every error (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    instance: str
    code: str
    errors: list[FieldFault] = []


class Problem(MaheError):
    """An error with faults of single fields."""

    def __init__(self, sentence: str, *, code: str, errors: Sequence[Mapping[str, Any]] = ()) -> None:
        super().__init__(sentence, code=code)
        self.errors = [
            {
                "field": str(one.get("field", "")),
                "code": str(one.get("code", code)),
                "message": str(one.get("message", "")),
            }
            for one in errors
        ]


class BrokenTransfer(MaheError):
    """A download that cannot be ended: its connection is closed early, so that nobody takes it for the whole file."""

    code = "BROKEN_TRANSFER"


def unreachable(sentence: str) -> Problem:
    """The master did not answer."""
    return Problem(sentence, code="MASTER_UNREACHABLE")


def key_reused(whose: str) -> Problem:
    """An idempotency key came with something else than before."""
    return Problem(f"this is {whose}; take a new key for another request", code="IDEMPOTENCY_KEY_REUSED")


def problem_json(status: int, code: str, detail: str, instance: str, errors: Sequence[Mapping[str, Any]] = ()) -> bytes:
    """The body of one error."""
    body = {
        "type": f"urn:mahe:problem:{code}",
        "title": TITLES.get(status, "Error"),
        "status": status,
        "detail": detail,
        "instance": instance,
        "code": code,
        "errors": list(errors),
    }
    return json.dumps(body, ensure_ascii=False).encode()
