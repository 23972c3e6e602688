"""When the console asks the master for INIT: once in a term, when a page is there to show its lines, or none came.

The master makes the checks once a term however often it is asked; here it is only decided when. Belongs to the event
loop. A page that has been ready, or a wait that is over, counts for every later term, too.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Literal

from services.common.host.logs import Log
from services.common.protocol.control import Init
from services.console.hub import Hub
from services.console.problems import Problem

RETRY_S = 1.0

InitState = Literal["waiting", "running", "done"]


class Initiator:
    """`run` as long as the console does. `ask` sends the command and returns the master's answer; raises Problem."""

    def __init__(self, hub: Hub, ask: Callable[[Init], Awaitable[dict[str, Any]]], wait_s: float, log: Log) -> None:
        self._hub, self._ask, self._wait_s, self._log = hub, ask, wait_s, log
        self._page = asyncio.Event()

    @property
    def state(self) -> InitState:
        """How far INIT is in the master's present term, as far as is known here."""
        snapshot = self._hub.mirror.snapshot or {}
        state: InitState = (snapshot.get("init") or {}).get("state", "waiting")
        return state

    def page_ready(self) -> None:
        """A page is open and shows the lines that come."""
        self._page.set()

    def reason(self) -> str:
        """What INIT waits for; empty when it is done."""
        if self.state == "done":
            return ""
        if self.state == "running":
            return "the master makes its checks"
        if self._hub.mirror.snapshot is None:
            return "the master has not answered yet"
        return f"waiting for a page to be opened, for {self._wait_s:g} s at most; then it begins without one"

    async def run(self) -> None:
        """Wait for a page, then see to it that each term of the master has its INIT."""
        try:
            await asyncio.wait_for(self._page.wait(), self._wait_s)
            why = "a page is open"
        except TimeoutError:
            why = f"nobody opened the page within {self._wait_s:g} s" if self._wait_s else "no page is waited for"
        while True:
            await self._hub.snapshot_came.wait()
            self._hub.snapshot_came.clear()
            if self.state == "waiting":
                self._log("INIT", f"the master is asked for it: {why}")
                await self._ask_until_answered()

    async def _ask_until_answered(self) -> None:
        """A master that does not answer in time is asked again, as long as there is no other."""
        while self.state == "waiting":
            try:
                await self._ask(Init())
            except Problem as problem:
                if problem.code == "MASTER_UNREACHABLE":
                    await asyncio.sleep(RETRY_S)
                    continue
                self._log("WARN", f"the master refuses INIT: {problem.sentence}")
            return
