"""The event stream, asked in many ways: only the head of each answer is read, for the stream has no end."""

from collections import Counter
from http.client import HTTPConnection
from typing import Any
from urllib.parse import quote

from services.launch.console_client import TOKEN_HEADER, Link

PATH = "/api/v1/events"
WAIT_S = 10.0
IDS = ("", "1:0", "1:1", "0:0", "99:99", "9999999999999999:9999999999999999", "1:-1", "1", ":", "a:b", "1:1:1", "1 :1")
HOSTILE = ("10000000000000000:1", "\u0661:\u0662", "1:1\n", "%00", "' OR 1=1", "<script>", "x" * 4000, "null", "1e3:1")


def ask_streams(link: Link, described: dict[str, Any]) -> tuple[Counter[int], list[str]]:
    """How often each status was answered, and what was against the description."""
    answers = described["paths"][PATH]["get"]["responses"]
    statuses: Counter[int] = Counter()
    faults = []
    questions = [(f"{PATH}?after={quote(one)}", "") for one in (*IDS, *HOSTILE)]
    questions += [(PATH, one) for one in (*IDS, *HOSTILE) if one.isascii() and one.isprintable()]
    for path, header in questions:
        status, media_type = _head(link, path, header)
        statuses[status] += 1
        if media_type not in answers.get(str(status), {}).get("content", {}):
            faults.append(f"GET {path[:80]} {header[:40]!r}: {status} {media_type}, which is not described")
    return statuses, faults


def _head(link: Link, path: str, header: str) -> tuple[int, str]:
    connection: HTTPConnection = link.connect(WAIT_S)
    try:
        headers = {TOKEN_HEADER: link.token, **({"Last-Event-ID": header} if header else {})}
        connection.request("GET", path, headers=headers)
        response = connection.getresponse()
        return response.status, (response.getheader("content-type") or "").partition(";")[0]
    finally:
        connection.close()
