"""The master process: settings -> parts -> run."""

import signal
import sys
from pathlib import Path
from types import FrameType

from pydantic import ValidationError

from services.common.errors import MaheError, bad_setting
from services.common.host.logs import Log
from services.master.settings import MasterSettings
from services.master.shell.journal import replay
from services.master.shell.loop import Master


def main() -> int:
    """Run until SIGTERM or SIGINT; 0 after a clean stop, 1 when it cannot start."""
    log = Log("master")
    stop = []

    def on_signal(signum: int, frame: FrameType | None) -> None:
        stop.append(signum)

    signal.signal(signal.SIGTERM, on_signal)
    signal.signal(signal.SIGINT, on_signal)
    if sys.platform == "win32":
        signal.signal(signal.SIGBREAK, on_signal)
    try:
        settings = MasterSettings()
        log = Log("master", settings.log)
        Master(settings, log).run(lambda: bool(stop))
    except ValidationError as error:
        log("ERROR", bad_setting("MAHE_MASTER_", error.errors()[0]).sentence)
        return 1
    except MaheError as error:
        log("ERROR", f"{error.sentence} ({error.code})")
        return 1
    return 0


def run_replay(path: Path) -> int:
    """`mahe replay`: 0 when a journal's every decision is the same here. Raises SettingsError when it is no journal."""
    log, found = Log("master"), replay(path)
    if found.differs_at is not None:
        log("REPLAY", f"line {found.differs_at} of {path} is decided otherwise here (digest {found.digest})")
        return 1
    log("REPLAY", f"{found.events} events, the same decisions (digest {found.digest})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
