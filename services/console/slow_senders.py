"""Connections on which a request does not come to its end: closed, so that nobody holds one by sending slowly.

The server has no such limit of its own. Not for who reads slowly: an answer may take as long as it likes.
"""

import asyncio
from collections.abc import Collection
from typing import Any

REQUEST_S = 8.0  # for a head, and again for its body
LOOK_S = 1.0
SENDING = frozenset({"IDLE", "SEND_BODY"})  # of h11, by name: the client has yet to send a head, or a body


async def close_slow_senders(connections: Collection[Any]) -> None:
    """Look at the `connections` (uvicorn's H11Protocol) until cancelled; the set changes meanwhile.

    A connection's `cycle` is its latest request whose head is known: while it is the same one, and the client still
    has to send, it is waited for.
    """
    loop = asyncio.get_running_loop()
    waited: dict[Any, tuple[object, float]] = {}
    while True:
        await asyncio.sleep(LOOK_S)
        now, before, waited = loop.time(), waited, {}
        for connection in list(connections):
            if str(connection.conn.their_state) not in SENDING:
                continue
            cycle, since = before.get(connection, (connection, now))
            waited[connection] = (cycle, since) if cycle is connection.cycle else (connection.cycle, now)
            if now - waited[connection][1] >= REQUEST_S:
                connection.transport.close()
