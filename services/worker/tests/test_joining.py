"""How a worker enters, is refused, stays away and comes back: real processes, real sockets, real keys."""

import socket
import threading
from pathlib import Path

import pytest
import zmq

from services.common.protocol import messages
from services.worker.shell.slot import take_slot
from services.worker.tests.conftest import StartWorker
from services.worker.tests.scripted_master import ScriptedMaster, scripted_master

pytestmark = pytest.mark.system
KNOWS_NOT = "this master does not know the key: the join string is wrong, revoked, or this PC was removed"


def test_a_wrong_join_string_is_refused_with_words(master: ScriptedMaster, start_worker: StartWorker) -> None:
    worker = start_worker(master.join_string(secret=b"\x08" * 32))
    worker.wait_for(f"[LINK] {KNOWS_NOT}; get a new join string from the page")
    assert worker.end() == 0


def test_a_master_with_another_key_is_named(master: ScriptedMaster, start_worker: StartWorker) -> None:
    join = master.join_string()
    master.new_key()
    start_worker(join).wait_for("[LINK] this master has another key than the join string says")


def test_what_is_not_mahe_is_named(master: ScriptedMaster, start_worker: StartWorker) -> None:
    with zmq.Context() as context, context.socket(zmq.ROUTER) as plain:
        port = plain.bind_to_random_port("tcp://127.0.0.1")
        worker = start_worker(master.join_string(f"tcp://127.0.0.1:{port}"))
        # Both ends hang up at once: when the other one is first, the cases look alike, and the sentence names both.
        worker.wait_for(f"what answers at tcp://127.0.0.1:{port} is not a MAHE master")


def test_a_web_server_is_not_mahe_either(master: ScriptedMaster, start_worker: StartWorker) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]

        def answer() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(64)
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        start_worker(master.join_string(f"tcp://127.0.0.1:{port}")).wait_for("is not a MAHE master")
        thread.join()


def test_nothing_there_is_said_and_the_master_is_found_when_it_comes(
    master: ScriptedMaster, start_worker: StartWorker
) -> None:
    join = master.join_string()
    master.unbind()
    worker = start_worker(join)
    worker.wait_for("[LINK] nothing answers at", 15)
    master.bind()
    master.enrol()
    master.welcome()


def test_a_removed_worker_stays_parked_over_restarts_until_it_gets_another_join_string(
    master: ScriptedMaster, start_worker: StartWorker
) -> None:
    join = master.join_string()
    worker = start_worker(join)
    master.enrol()
    master.welcome()
    master.send(messages.Bye(term=1, code="REMOVED", reason="the operator removed this PC"))
    worker.wait_for("[PARKED] the operator removed this PC")
    assert worker.process.poll() is None
    assert worker.end() == 0
    parked = start_worker(join)
    parked.wait_for("stays away until it is started with a new join string")
    assert master.names().count("Hello") == 1
    assert parked.end() == 0
    with scripted_master() as other:
        start_worker(other.join_string())
        other.enrol()
        other.welcome()
    enrolled = [one.public_key for one in [*master.seen, *other.seen] if isinstance(one, messages.Enrol)]
    assert len(set(enrolled)) == 2


def test_an_expired_join_string_parks_at_once(master: ScriptedMaster, start_worker: StartWorker) -> None:
    worker = start_worker(master.join_string())
    master.expect(messages.Enrol)
    master.send(messages.Reject(code="AUTH_EXPIRED", text="this join string has expired"))
    worker.wait_for("[PARKED] the master says AUTH_EXPIRED: this join string has expired")


def test_an_enrolled_worker_needs_no_join_string_and_ignores_a_rotated_one(
    master: ScriptedMaster, start_worker: StartWorker
) -> None:
    worker = start_worker(master.join_string())
    master.enrol()
    master.welcome()
    worker.wait_for("[LINK] joined")
    worker.end()
    master.keys.discard(master.join_key)
    worker = start_worker("")
    master.expect(messages.Bye)
    master.welcome()
    worker.wait_for("[LINK] joined")
    worker.end()
    start_worker(master.join_string(secret=b"\x09" * 32))
    master.expect(messages.Bye)
    master.welcome()


def test_the_join_string_may_come_by_a_file_that_is_waited_for(
    master: ScriptedMaster, start_worker: StartWorker, tmp_path: Path
) -> None:
    file = tmp_path / "join.txt"
    worker = start_worker("", MAHE_WORKER_JOIN_FILE=str(file))
    worker.wait_for("[JOIN] waiting for the master to write")
    file.write_text(master.join_string() + "\n")
    master.enrol()


@pytest.mark.parametrize(
    "join, settings, words",
    [
        ("", {}, "this PC has no join string"),
        ("mahe1.abc", {}, "the join string is damaged"),
        ("", {"MAHE_WORKER_JOIN_FILE": "/nowhere", "MAHE_WORKER_JOIN_WAIT_S": "0"}, "no join string came into"),
        ("", {"MAHE_WORKER_THREADS": "-1"}, "MAHE_WORKER_THREADS is '-1'"),
    ],
)
def test_settings_that_cannot_be_used_end_it_with_a_sentence(
    start_worker: StartWorker, join: str, settings: dict[str, str], words: str
) -> None:
    worker = start_worker(join, **settings)
    assert worker.process.wait(10) == 1
    assert f"[ERROR] {words}" in worker.log


def test_secrets_are_private_and_never_logged(master: ScriptedMaster, start_worker: StartWorker) -> None:
    join = master.join_string()
    worker = start_worker(join)
    master.enrol()
    master.welcome()
    assert worker.end() == 0
    slot = take_slot(worker.data, print)
    identity = slot.identity()
    slot.release()
    assert identity is not None
    assert (slot.folder / "identity.json").stat().st_mode & 0o777 == 0o600
    assert identity.secret_key not in worker.log
    assert join not in worker.log
