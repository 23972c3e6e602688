"""The stream: hello at once, resume by id, resync when that is too late, goodbye on stop."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx

from services.console import hub as hub_module
from services.console.hub import BYE, QUEUE_MAX, RESYNC, STREAMS_MAX, Hub, LinkState, Subscription
from services.console.tests import scripted_cluster as cluster
from services.console.tests.conftest import RunningConsole, wait_until
from services.console.tests.scripted_master import ScriptedMaster

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
    hub = Hub(LinkState("connecting", 0, "test"))
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
