"""The listening socket of the page, and the address under which a browser opens it."""

import errno
import socket
import sys

from services.common.errors import SettingsError
from services.console.settings import PREFIX, ConsoleSettings

BACKLOG = 256


def open_socket(bind: str, port: int) -> socket.socket:
    """A listening socket; raises SettingsError naming address, port and the variable to change."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(bind, port, type=socket.SOCK_STREAM)[0]
    except OSError as error:
        raise SettingsError(
            f"{PREFIX}BIND is {bind!r}, which is no address here ({error}); use 127.0.0.1", code="BIND_ADDRESS"
        ) from None
    listener = socket.socket(family, kind, protocol)
    try:
        if sys.platform == "win32":
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_EXCLUSIVEADDRUSE, 1)
        else:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        if error.errno in {errno.EADDRINUSE, errno.EACCES} and port:
            raise SettingsError(
                f"port {port} on {bind} is in use by another program (or not allowed); "
                f"stop that one, or choose another with {PREFIX}PORT",
                code="PORT_IN_USE",
            ) from None
        raise SettingsError(
            f"the page cannot be served on {bind} port {port} ({error}); set {PREFIX}BIND and {PREFIX}PORT",
            code="BIND_ADDRESS",
        ) from None
    return listener


def page_url(settings: ConsoleSettings, port: int) -> str:
    """The address to open in a browser: one that the Host check answers."""
    if settings.hosts:
        return f"http://{settings.hosts[0]}/"
    host = f"[{settings.bind}]" if ":" in settings.bind else settings.bind
    known = settings.hosts_allowed(port)
    return f"http://{host}:{port}/" if f"{host}:{port}" in known else f"http://127.0.0.1:{port}/"
