"""Opening the master's doors: lock, keys, sockets, ZAP."""

import json
import sys
from dataclasses import dataclass, field
from pathlib import Path

import zmq
from zmq.auth.thread import ThreadAuthenticator
from zmq.utils.monitor import recv_monitor_message

from services.common.errors import SettingsError
from services.common.host.files import FolderLock, keep_private, make_folder, sweep
from services.common.protocol.limits import (
    CURVE_DOMAIN_CONSOLE,
    CURVE_DOMAIN_WORKERS,
    LIBZMQ_MIN,
    ROUTER_OPTIONS,
    WORKERS_MAX,
)
from services.master.settings import MasterSettings
from services.master.shell.admission import Admission
from services.master.shell.keys import MasterKeys

if sys.platform != "win32":
    import resource

_WATCHED = (
    zmq.EVENT_ACCEPTED
    | zmq.EVENT_DISCONNECTED
    | zmq.EVENT_HANDSHAKE_SUCCEEDED
    | zmq.EVENT_HANDSHAKE_FAILED_AUTH
    | zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL
    | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL
)
FAREWELL_MS = 500  # for the last words to workers
FILES_PER_WORKER, FILES_OWN = 4, 256
FILES_WANTED = FILES_PER_WORKER * WORKERS_MAX + FILES_OWN
ANY_ADDRESS = "0.0.0.0"  # noqa: S104 - compared with, never a default here


def check_zeromq() -> None:
    """Refuse a ZeroMQ without CURVE or with known holes."""
    if not zmq.has("curve") or zmq.zmq_version_info() < LIBZMQ_MIN:
        wanted = ".".join(map(str, LIBZMQ_MIN))
        raise SettingsError(
            f"libzmq {zmq.zmq_version()} is too old or lacks CURVE, needed is {wanted}; run `make setup` again",
            code="ZEROMQ_TOO_OLD",
        )


def raise_file_limit() -> str:
    """Let this process open enough files for WORKERS_MAX; a sentence when the PC allows fewer, else an empty text.

    Beyond the limit a ROUTER stops accepting without an error (shared/research/zeromq.md 1.3), so too few are refused.
    """
    if sys.platform == "win32":
        return ""
    else:  # noqa: RET505 - so that mypy leaves this part out for Windows
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        endless = resource.RLIM_INFINITY
        wanted = FILES_WANTED if hard == endless else min(FILES_WANTED, hard)
        if soft != endless and soft < wanted:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            soft = wanted
        return _check_files(WORKERS_MAX if soft == endless else (soft - FILES_OWN) // FILES_PER_WORKER, soft)


def _check_files(workers: int, files: int) -> str:
    if workers < 1:
        raise SettingsError(
            f"this process may open {files} files, needed are {FILES_OWN + FILES_PER_WORKER}; see `ulimit -n`",
            code="FILE_LIMIT",
        )
    return "" if workers >= WORKERS_MAX else f"this PC allows {files} open files: enough for about {workers} workers"


def lock_data(folder: Path) -> FolderLock:
    """The data folder, made and locked for this process; raises SettingsError when another master has it."""
    lock = FolderLock(make_folder(folder), "MAHE_MASTER_DATA")
    if not lock.acquire():
        raise SettingsError(
            f"another master uses the data folder {folder}; stop it, or give another with MAHE_MASTER_DATA",
            code="DATA_DIR_LOCKED",
        )
    for one in (folder, folder / "control", folder / "join"):
        sweep(one)
    return lock


@dataclass
class Doors:
    """The two ROUTERs, their authenticator, and the monitor that tells of failed handshakes."""

    context: "zmq.Context[zmq.Socket[bytes]]"
    authenticator: ThreadAuthenticator
    workers: "zmq.Socket[bytes]"
    control: "zmq.Socket[bytes]"
    monitor: "zmq.Socket[bytes]"
    worker_port: int
    control_port: int
    greeted: list[int] = field(default_factory=list)  # descriptors accepted, handshake not done

    def failed_handshakes(self) -> list[str]:
        """What the monitor has seen since it was last read: strangers that did not get in.

        Measured on libzmq 4.3.5: a worker with another master's key, and ZeroMQ without CURVE, are
        HANDSHAKE_FAILED_PROTOCOL (with different values); silence is HANDSHAKE_FAILED_NO_DETAIL; HTTP is only ACCEPTED
        and DISCONNECTED. HANDSHAKE_SUCCEEDED names no descriptor, so the connection that waits longest is taken for it.
        """
        seen = []
        while self.monitor.poll(0):
            event = recv_monitor_message(self.monitor)
            kind, value = event["event"], event["value"]
            if kind == zmq.EVENT_ACCEPTED:
                self.greeted.append(value)
            elif kind in (zmq.EVENT_HANDSHAKE_SUCCEEDED, zmq.EVENT_HANDSHAKE_FAILED_AUTH):
                del self.greeted[:1]
            elif kind == zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL:
                del self.greeted[:1]
                other_key = value == zmq.PROTOCOL_ERROR_ZMTP_CRYPTOGRAPHIC
                seen.append("a worker with another master's key" if other_key else "ZeroMQ without MAHE's encryption")
            elif kind == zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL:
                del self.greeted[:1]
                seen.append("a connection that said nothing")
            elif kind == zmq.EVENT_DISCONNECTED and value in self.greeted:
                self.greeted.remove(value)
                seen.append("something that does not speak MAHE's protocol (a browser?)")
        return seen

    def close(self) -> None:
        """Sockets first, then the authenticator, then the context."""
        self.workers.disable_monitor()
        self.monitor.close(linger=0)
        self.workers.close(linger=FAREWELL_MS)
        self.control.close(linger=0)
        self.authenticator.stop()
        self.context.destroy(linger=0)


def open_doors(settings: MasterSettings, keys: MasterKeys, admission: Admission) -> Doors:
    """Authenticator first, then bind; raises SettingsError when a port is in use."""
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context(io_threads=2)
    context.set(zmq.MAX_SOCKETS, 4096)
    authenticator = ThreadAuthenticator(context)
    authenticator.start()
    for domain in (CURVE_DOMAIN_WORKERS, CURVE_DOMAIN_CONSOLE):
        authenticator.configure_curve_callback(domain=domain, credentials_provider=admission)
    try:
        workers = _router(context, keys, CURVE_DOMAIN_WORKERS)
        monitor = workers.get_monitor_socket(_WATCHED)
        worker_port = _bind(workers, settings.bind, settings.port, "MAHE_MASTER_PORT")
        console = _router(context, keys, CURVE_DOMAIN_CONSOLE)
        control_port = _bind(console, settings.control_bind, settings.control_port, "MAHE_MASTER_CONTROL_PORT")
    except SettingsError:
        authenticator.stop()
        context.destroy(linger=0)
        raise
    return Doors(context, authenticator, workers, console, monitor, worker_port, control_port)


def write_control_file(folder: Path, doors: Doors, settings: MasterSettings, keys: MasterKeys) -> None:
    """What a console needs, in one private file; written only when the doors are open."""
    folder.mkdir(parents=True, exist_ok=True)
    host = "127.0.0.1" if settings.control_bind == ANY_ADDRESS else settings.control_bind
    facts = {
        "endpoint": f"tcp://{host}:{doors.control_port}",
        "server_key": keys.public.decode(),
        "secret": keys.console_secret,
    }
    keep_private(folder / "control.json", json.dumps(facts).encode(), "control-file")


def _router(context: "zmq.Context[zmq.Socket[bytes]]", keys: MasterKeys, domain: str) -> "zmq.Socket[bytes]":
    socket = context.socket(zmq.ROUTER)
    for name, value in ROUTER_OPTIONS.items():
        socket.setsockopt(getattr(zmq, name), value)
    socket.setsockopt(zmq.ZAP_DOMAIN, domain.encode())
    socket.setsockopt(zmq.ZAP_ENFORCE_DOMAIN, 1)
    socket.curve_server = True
    socket.curve_publickey, socket.curve_secretkey = keys.public, keys.secret
    return socket


def _bind(socket: "zmq.Socket[bytes]", address: str, port: int, option: str) -> int:
    """Bind and return the real port."""
    if ":" in address:
        socket.setsockopt(zmq.IPV6, 1)
        address = f"[{address.strip('[]')}]"
    try:
        socket.bind(f"tcp://{address}:{port or '*'}")
    except zmq.ZMQError as error:
        if error.errno != zmq.EADDRINUSE:
            raise SettingsError(
                f"{address} cannot be bound ({error.strerror}); is it an address of this PC? set MAHE_MASTER_BIND",
                code="BIND_FAILED",
            ) from None
        raise SettingsError(
            f"port {port} on {address} cannot be used ({error.strerror}); another program has it, or another master "
            f"runs: stop it, or set {option}",
            code="PORT_IN_USE",
        ) from None
    return int(socket.getsockopt_string(zmq.LAST_ENDPOINT).rsplit(":", 1)[1])
