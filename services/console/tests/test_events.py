"""The stream: hello at once, resume by id, resync when that is too late, goodbye on stop."""

import json
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import httpx
import pytest

from services.console import hub as hub_module
from services.console.hub import BYE, QUEUE_MAX, RESYNC, STREAMS_MAX, Hub, LinkState, Subscription
from services.console.tests import scripted_cluster as cluster
from services.console.tests.conftest import RunningConsole, wait_until
from services.console.tests.scripted_master import ScriptedMaster
from services.console.tests.wire import connected, head

Sse = tuple[str, str | None, Any]


@contextmanager
def stream(client: httpx.Client, **options: Any) -> Iterator[Iterator[Sse]]:
    """The events of one stream as (name, id, data); a comment comes as ("comment", None, None)."""
    with client.stream("GET", "/api/v1/events", **options) as response:
        assert response.status_code == 200
        assert response.headers["content-type"].startswith("text/event-stream")
        assert response.headers["cache-control"] == "no-store"
        yield _events(response)


def _events(response: httpx.Response) -> Iterator[Sse]:
    fields: dict[str, str] = {}
    for line in response.iter_lines():
        if line.startswith(":"):
            yield "comment", None, None
        elif line:
            name, _, value = line.partition(": ")
            fields[name] = value
        elif fields:
            yield fields["event"], fields.get("id"), json.loads(fields["data"])
            fields = {}


def seen(live: httpx.Client, event_id: str) -> None:
    wait_until(lambda: live.get("/api/v1/state").json()["id"] == event_id)


def test_hello_then_what_happens(live: httpx.Client, master: ScriptedMaster) -> None:
    with stream(live) as events:
        name, _, hello = next(events)
        assert (name, hello["id"], hello["link"]["state"]) == ("hello", "1:0", "live")
        master.say("ROUND", "round=13", cluster.history_row(13))
        name, event_id, data = next(events)
        assert (name, event_id, data["kind"], data["text"]) == ("event", "1:1", "ROUND", "round=13")
        assert data["data"]["round"] == 13


def test_a_stream_goes_on_from_the_last_id(live: httpx.Client, master: ScriptedMaster) -> None:
    for number in range(5):
        master.say("INFO", f"line {number}")
    seen(live, "1:5")
    for options in ({"headers": {"Last-Event-ID": "1:2"}}, {"params": {"after": "1:2"}}):
        with stream(live, **options) as events:
            assert next(events)[0] == "hello"
            assert [next(events)[1] for _ in range(3)] == ["1:3", "1:4", "1:5"]
            master.say("INFO", "and on")
            assert next(events)[2]["text"] == "and on"
        live.get("/api/v1/state")


def test_an_id_that_is_unknown_here_asks_to_resync(live: httpx.Client) -> None:
    for after in ("9:1", "1:77"):
        with stream(live, params={"after": after}) as events:
            assert [next(events)[0] for _ in range(2)] == ["hello", "resync"]


def test_a_new_snapshot_asks_every_stream_to_resync(live: httpx.Client, master: ScriptedMaster) -> None:
    with stream(live) as events:
        next(events)
        master.term = 2
        assert next(events)[0] == "resync"
    assert live.get("/api/v1/state").json()["term"] == 2


def test_stop_says_bye_on_every_stream(live: httpx.Client, console: RunningConsole) -> None:
    with stream(live) as first, stream(live) as second:
        assert next(first)[0] == next(second)[0] == "hello"
        console.stop()
        assert [name for name, _, _ in first] == ["bye"]
        assert [name for name, _, _ in second] == ["bye"]


def test_too_many_streams_are_refused_and_an_ended_one_makes_room(live: httpx.Client, console: RunningConsole) -> None:
    def opens() -> bool:
        with live.stream("GET", "/api/v1/events") as response:
            return response.status_code == 200

    limits = httpx.Limits(max_connections=None)
    headers = {"X-MAHE-Token": console.token}
    with httpx.Client(base_url=console.url, headers=headers, limits=limits, trust_env=False) as many:
        open_streams = [many.send(many.build_request("GET", "/api/v1/events"), stream=True) for _ in range(STREAMS_MAX)]
        wait_until(lambda: not opens())
        refusal = live.get("/api/v1/events")
        assert (refusal.status_code, refusal.json()["code"]) == (503, "STREAMS_FULL")
        open_streams.pop().close()
        wait_until(opens)
        for one in open_streams:
            one.close()


def test_a_slow_reader_loses_its_queue_and_is_told() -> None:
    subscription = Subscription()
    for number in range(QUEUE_MAX + 1):
        subscription.offer(b"%d" % number)
    assert list(subscription._items) == [RESYNC, b"%d" % QUEUE_MAX]


def test_a_hub_that_closes_takes_no_new_stream() -> None:
    hub = Hub(LinkState("connecting", 0, None))
    subscription = hub.subscribe()
    hub.close()
    assert list(subscription._items) == [BYE]
    refusal = hub.refuse_stream()
    assert refusal is not None
    assert refusal.code == "STOPPING"


def test_a_silent_stream_shows_that_it_lives(live: httpx.Client, monkeypatch: Any) -> None:
    from services.console.routes import events as route  # noqa: PLC0415 - its constant is changed here

    monkeypatch.setattr(route, "HEARTBEAT_S", 0.05)
    with stream(live) as events:
        assert [next(events)[0] for _ in range(3)] == ["hello", "comment", "comment"]
    assert hub_module.RETRY_MS > 0


def test_r24_of_200_streams_at_once_64_are_taken_and_the_console_answers(
    live: httpx.Client, console: RunningConsole, master: ScriptedMaster
) -> None:
    with ExitStack() as stack:
        readers = [stack.enter_context(connected(console)) for _ in range(200)]
        for reader in readers:
            reader.sendall(head(console, "GET", "/api/v1/events"))
        beginnings = [_beginning(reader) for reader in readers]
        taken = [reader for reader, said in zip(readers, beginnings, strict=True) if b"event: hello" in said]
        assert len(taken) == STREAMS_MAX
        refused = [said for said in beginnings if b"event: hello" not in said]
        assert all(b"STREAMS_FULL" in said or b"event: bye" in said for said in refused)
        assert live.get("/api/v1/state").status_code == 200
        master.say("INFO", "for all")
        for reader in taken:
            assert b"for all" in reader.recv(65_536)
    wait_until(lambda: live.get("/metrics").status_code == 200)
    with stream(live) as events:
        assert next(events)[0] == "hello"


def _beginning(reader: socket.socket) -> bytes:
    """What is said at once: the head of the answer, and the first event or the problem."""
    said = b""
    while not any(word in said for word in (b"event: hello", b"event: bye", b"STREAMS_FULL")):
        part = reader.recv(65_536)
        assert part, said
        said += part
    return said


def test_r25_a_reader_that_never_reads_holds_nobody_up_and_loses_what_it_missed(
    live: httpx.Client, master: ScriptedMaster, console: RunningConsole
) -> None:
    lines, line = 6_000, "x" * 3_000  # 18 MB: more than two queues and the system hold
    with connected(console) as deaf, stream(live) as events:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)  # else the system keeps all of it
        deaf.sendall(head(console, "GET", "/api/v1/events"))
        assert next(events)[0] == "hello"
        for number in range(1, lines + 1):
            master.say("INFO", f"{number} {line}")
            if number % 250 == 0:
                numbers = [next(events)[1] for _ in range(250)]
                assert numbers == [f"1:{one}" for one in range(number - 249, number + 1)], "who reads, misses nothing"
        got = _until_last(deaf, b"%d xxx" % lines)
    assert b"event: resync" in got
    assert len(got) < lines * len(line) * 0.8, "what was missed was kept for it"


def _until_last(reader: socket.socket, last: bytes) -> bytes:
    """All that comes up to the line that begins with `last`."""
    got = bytearray()
    while last not in got[-8_000:]:
        part = reader.recv(4_000)
        assert part
        got += part
    return bytes(got)


def test_r25_it_does_not_hold_up_the_end_either(live: httpx.Client, console: RunningConsole) -> None:
    with connected(console) as deaf:
        deaf.sendall(head(console, "GET", "/api/v1/events"))
        began = time.monotonic()
        console.stop()
        assert time.monotonic() - began < 5


GARBAGE = [
    "garbage",
    "1",
    "1:",
    ":1",
    "1:1:1",
    "-1:1",
    "1:-1",
    "1.0:1",
    "1e3:1",
    "\u00b2:1",
    "9" * 5_000 + ":1",
    "null",
]


@pytest.mark.parametrize("garbage", GARBAGE, ids=[f"R26 {one[:12]}" for one in GARBAGE])
def test_an_id_that_is_none_is_refused(live: httpx.Client, garbage: str) -> None:
    for options in ({"headers": {"Last-Event-ID": garbage.encode("latin-1")}}, {"params": {"after": garbage}}):
        response = live.get("/api/v1/events", **options)
        assert (response.status_code, response.json()["code"]) == (422, "EVENT_ID")
    with stream(live) as events:
        assert next(events)[0] == "hello"
