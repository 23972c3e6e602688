"""`python -m services.console`: read the settings, serve the page, say in one sentence why not."""

import sys

from services.common.errors import MaheError
from services.common.host.logs import Log
from services.console.server import ConsoleProcess
from services.console.settings import read_settings


def main() -> int:
    """Run one console until it is stopped; the exit code: 0 stopped, 1 could not run."""
    log = Log("console")
    try:
        settings = read_settings()
        log = Log("console", settings.log)
        ConsoleProcess(settings).run()
    except MaheError as error:
        log("ERROR", f"{error.sentence} ({error.code})")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
