"""Settings of every test run: Hypothesis without deadlines, and skips that count as failures where asked.

Not for fixtures: a fixture lives in the conftest beside the tests that use it.
"""

import os

import pytest
from hypothesis import settings

settings.register_profile("mahe", deadline=None, print_blob=True)
settings.load_profile("mahe")


def no_skips() -> bool:
    """Whether a skipped test fails the run: `MAHE_NO_SKIPS=1`, as set by .ci/run."""
    return os.environ.get("MAHE_NO_SKIPS") == "1"


def skipped(config: pytest.Config) -> list[str]:
    """The tests and modules that were skipped so far, each with its reason."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    reports = reporter.stats.get("skipped", []) if reporter else []
    return [f"{report.nodeid}: {report.longrepr[2]}" for report in reports]


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail the run when something was skipped and nothing may be."""
    if no_skips() and skipped(session.config):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Name what was skipped, when nothing may be."""
    if no_skips():
        for line in skipped(config):
            terminalreporter.write_line(f"SKIPPED, and MAHE_NO_SKIPS=1 allows none: {line}", red=True)
