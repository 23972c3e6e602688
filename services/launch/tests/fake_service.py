"""A service for the tests of the launcher: starts a child of its own, names both processes in a file, waits.

FAKE_FILE: where to write "pid child-pid"; FAKE_STOP: "clean" (exit 0 when asked), "stubborn" (deaf to signals),
"crash" (ends at once with code 7 and two lines). The child is deaf, too: only the death of its process group ends it.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import FrameType

from services.common.host.files import write_durably

DEAF = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"


def on_stop(number: int, frame: FrameType | None) -> None:
    with Path(os.environ["FAKE_FILE"]).with_suffix(".stopped").open("w") as file:
        file.write(str(time.monotonic()))
    sys.exit(0)


def main() -> None:
    how = os.environ["FAKE_STOP"]
    signal.signal(signal.SIGTERM, signal.SIG_IGN if how == "stubborn" else on_stop)
    sys.stderr.write("a first line\n")
    if how == "crash":
        sys.stderr.write("[ERROR] no luck today\n")
        sys.exit(7)
    child = subprocess.Popen([sys.executable, "-c", DEAF])
    write_durably(Path(os.environ["FAKE_FILE"]), f"{os.getpid()} {child.pid}".encode())
    while True:
        time.sleep(60)


if __name__ == "__main__":
    main()
