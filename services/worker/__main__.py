"""`python -m services.worker`: an agent on this PC, until SIGTERM, SIGINT or (Windows) CTRL-BREAK. Exit code 0, or 1
when a setting or join string cannot be used."""

import signal
import sys
from types import FrameType

from pydantic import ValidationError

from services.common.errors import MaheError, bad_setting
from services.common.host.logs import Log
from services.common.host.machine import NICE_AGENT, give_way
from services.common.protocol.reasons import Reason, because
from services.worker.settings import WorkerSettings
from services.worker.shell.agent import Agent
from services.worker.shell.slot import take_slot
from services.worker.shell.startup import build


class Stopper:
    """Notes the signal, and passes it on once there is an agent."""

    def __init__(self) -> None:
        self._reason: Reason | None = None
        self._agent: Agent | None = None

    def install(self) -> None:
        """From now on signals end the agent in good order."""
        signal.signal(signal.SIGTERM, self._on_signal)
        signal.signal(signal.SIGINT, self._on_signal)
        if sys.platform == "win32":
            signal.signal(signal.SIGBREAK, self._on_signal)

    def asked(self) -> bool:
        """Whether a signal has come."""
        return self._reason is not None

    def watch(self, agent: Agent) -> None:
        """Signals go to this agent."""
        self._agent = agent
        if self._reason is not None:
            agent.stop(self._reason)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        del frame
        self._reason = because("STOPPED_BY_SIGNAL", signal=signal.Signals(number).name)
        if self._agent is not None:
            self._agent.stop(self._reason)


def main() -> int:
    """Settings, parts, run."""
    stopper = Stopper()
    stopper.install()
    try:
        settings = WorkerSettings()
    except ValidationError as error:
        Log("worker")("ERROR", bad_setting("MAHE_WORKER_", error.errors()[0]).sentence)
        return 1
    log = Log("worker", settings.log)
    give_way(NICE_AGENT)
    try:
        slot = take_slot(settings.data, lambda text: log("WARN", text))
        try:
            agent = build(settings, slot, log, stopper.asked)
            if agent is not None:
                stopper.watch(agent)
                agent.run()
        finally:
            slot.release()
    except MaheError as error:
        log("ERROR", f"{error.sentence} ({error.code})")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
