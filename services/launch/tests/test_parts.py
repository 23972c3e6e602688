"""The small pieces: waiting, the event stream's format, what is said about a run, what is advertised."""

import errno
import http.server
import io
import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from services.common.errors import MaheError
from services.launch import lines, places, up
from services.launch.console_client import RESYNC, Event, EventStream, Link, parse_events, read_link
from services.launch.demo import free_or_any
from services.launch.ending import ending_of
from services.launch.ports import port_free
from services.launch.summary import run_of
from services.launch.waiting import wait_for


def test_waiting_ends_with_the_reason() -> None:
    with pytest.raises(MaheError, match=r"waited 0 s for the sun: it is night") as caught:
        wait_for(lambda: None, "the sun", 0.2, lambda: None, reason=lambda: "it is night")
    assert caught.value.code == "TIMEOUT"


def test_waiting_ends_when_it_is_useless() -> None:
    def watch() -> None:
        raise MaheError("it has burnt down", code="CHILD_ENDED")

    with pytest.raises(MaheError, match="burnt down"):
        wait_for(lambda: None, "the bus", 60, watch)


def test_events_as_they_come_over_the_wire() -> None:
    lines = [
        b": hello\n", b"\n",
        b"event: hello\n", b'data: {"id": "1:5", "link": {}}\n', b"\n",
        b"id: 1:6\n", b"event: ROUND\r\n",
        b'data: {"kind": "ROUND", "text": "round=1", "data": {"round": 1}}\r\n', b"\r\n",
    ]  # fmt: skip
    lines += [b"event: resync\n", b'data: {"get": "/api/v1/state"}\n', b"\n"]
    assert list(parse_events(iter(lines))) == [
        ("1:5", None), ("1:6", Event("ROUND", "round=1", {"round": 1})), ("", Event(RESYNC, "", {})),
    ]  # fmt: skip


class Console(http.server.BaseHTTPRequestHandler):
    """Just enough of a console: one answer, one problem, one event for each time it is asked for the stream."""

    def do_GET(self) -> None:
        if self.headers["X-MAHE-Token"] != "t":
            self.answer(401, {"code": "TOKEN", "detail": "the token is wrong"})
        elif self.path == "/api/v1/events":
            number = int((self.headers["Last-Event-ID"] or "1:0").partition(":")[2]) + 1
            self.send_response(200)
            self.end_headers()
            if number > 1:  # what is new by now is ahead of what this reader has
                self.wfile.write(b'event: hello\ndata: {"id": "1:9"}\n\n')
            self.wfile.write(f'id: 1:{number}\ndata: {{"kind": "RUN", "text": "{number}"}}\n\n'.encode())
        else:
            self.answer(200, {"path": self.path})

    def answer(self, status: int, body: dict[str, str]) -> None:
        self.send_response(status)
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 its name upstream
        pass


@pytest.fixture
def console() -> Iterator[str]:
    """The address of that console."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Console) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_the_console_is_asked_directly_whatever_the_proxy_settings(
    console: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    assert Link(console, "t").get("/healthz") == {"path": "/healthz"}


def test_a_refusal_keeps_its_code_and_sentence(console: str) -> None:
    with pytest.raises(MaheError, match="the token is wrong") as caught:
        Link(console, "x").get("/api/v1/state")
    assert caught.value.code == "TOKEN"


def test_the_stream_goes_on_where_it_broke(console: str) -> None:
    events = EventStream(Link(console, "t"))
    texts = [event.text for event in (events.next(5), events.next(5), events.next(5)) if event is not None]
    events.close()
    assert texts == ["1", "2", "3"]


def test_a_console_that_was_started_again_is_found_on_its_new_port(tmp_path: Path) -> None:
    place = tmp_path / "console.json"
    place.write_text('{"url": "http://127.0.0.1:1/", "token": "t"}')
    link = read_link(tmp_path)
    assert link is not None
    place.unlink()
    assert link.fresh() == link
    place.write_text('{"url": "http://127.0.0.1:2/", "token": "t"}')
    assert link.fresh().url == "http://127.0.0.1:2/"


def test_nobody_listens() -> None:
    with pytest.raises(MaheError) as caught:
        Link("http://127.0.0.1:9", "t").get("/healthz")
    assert caught.value.code == "NOT_REACHABLE"


def test_half_a_link_is_no_link(tmp_path: Path) -> None:
    assert read_link(tmp_path) is None
    (tmp_path / "console.json").write_text('{"url": "http://127.0.0.1:1/"')
    assert read_link(tmp_path) is None


@pytest.mark.parametrize("content", [b"\xff\xfe{", b"[]", b'{"url": 1}', b"[" * 100_000, b""])
def test_what_is_no_link_is_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "console.json").write_bytes(content)
    assert read_link(tmp_path) is None


def test_a_full_output_is_no_reason_to_stop_but_one_that_nobody_reads_is(monkeypatch: pytest.MonkeyPatch) -> None:
    class Output(io.StringIO):
        def flush(self) -> None:
            raise error

    monkeypatch.setattr("sys.stdout", Output())
    monkeypatch.setattr("sys.stderr", Output())
    error: OSError = OSError(errno.ENOSPC, "No space left on device")
    lines.say_error("one\ntwo")
    error = BrokenPipeError()
    with pytest.raises(BrokenPipeError):
        lines.say("KIND", "message")


def test_what_an_earlier_start_has_left_and_cannot_be_removed_is_named(tmp_path: Path) -> None:
    left = places.control_file(tmp_path / "master")
    left.mkdir(parents=True)
    with pytest.raises(MaheError, match=rf"{left} is left and cannot be removed"):
        up.begin_anew(tmp_path / "master", tmp_path / "console")


def test_a_busy_port_is_replaced_and_said(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.delenv("MAHE_CONSOLE_PORT", raising=False)
    monkeypatch.setattr("services.launch.demo.port_free", lambda port, address: False)
    assert free_or_any("MAHE_CONSOLE_PORT") == "0"
    assert "port 47830 is in use" in capsys.readouterr().out
    monkeypatch.setenv("MAHE_CONSOLE_PORT", "8080")
    assert free_or_any("MAHE_CONSOLE_PORT") == "8080"
    assert port_free(0)


def test_a_demo_inherits_no_place_of_real_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAHE_MASTER_DATA", "/srv/mahe")
    monkeypatch.setenv("MAHE_JOIN", "mahe1.x")
    monkeypatch.setenv("MAHE_KERNEL", "scalar")
    absent = places.without_service_settings()
    assert {"MAHE_MASTER_DATA", "MAHE_JOIN"} <= absent.keys()
    assert "MAHE_KERNEL" not in absent


def test_what_a_master_advertises(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MAHE_ADVERTISE", raising=False)
    monkeypatch.setattr(up, "addresses", lambda: ["192.0.2.7", "2001:db8::7"])
    monkeypatch.delenv("MAHE_MASTER_BIND", raising=False)
    assert up.master_env(Path("/m"), 5)["MAHE_ADVERTISE"] == "192.0.2.7", "the master is bound to IPv4 by default"
    monkeypatch.setenv("MAHE_MASTER_BIND", "::")
    assert up.master_env(Path("/m"), 5)["MAHE_ADVERTISE"] == "192.0.2.7,[2001:db8::7]"
    monkeypatch.setenv("MAHE_ADVERTISE", "pc.example")
    assert "MAHE_ADVERTISE" not in up.master_env(Path("/m"), 5)


def test_how_a_run_ended() -> None:
    state = {"phase": "STOPPED", "reason": "", "last_eval": {"loss": 0.3, "accuracy": 0.9, "version": 4}}
    ending = ending_of(state)
    assert (ending.finished, ending.reason, ending.accuracy) == (False, "STOPPED", 0.9)


def test_the_status_line() -> None:
    run = {"id": "r-1", "phase": "WAITING", "version": 2, "rounds_total": 9, "reason": "1 of 2 workers"}
    assert run_of(run).sentence == "run r-1: WAITING, round 2 of 9 (1 of 2 workers)"
    last = {"version": 2, "loss": 0.5, "accuracy": 0.75}
    going = {**run, "phase": "RUNNING", "reason": "", "rounds_per_minute": 2.0, "last_eval": last}
    assert (
        run_of(going).sentence == "run r-1: RUNNING, round 2 of 9, accuracy 0.7500 after round 2, about 3:30 min left"
    )
