"""A launcher for the tests: two fake services, their files in the folder given; ends them on Ctrl-C."""

import sys
import time
from pathlib import Path

from services.launch.interrupts import Interrupts
from services.launch.processes import Group

FAKE = "services.launch.tests.fake_service"


def main() -> None:
    folder = Path(sys.argv[1])
    with Interrupts() as interrupts, Group(folder / "logs") as group:
        for name in ("one", "two"):
            group.start(name, FAKE, {"FAKE_FILE": str(folder / name), "FAKE_STOP": sys.argv[2]})
        while not interrupts.requested:
            time.sleep(0.05)
    print("stopped")


if __name__ == "__main__":
    main()
