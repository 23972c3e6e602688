"""A browser, and a real cluster on this PC: master, console and two workers as processes."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from services.tests.browser.chromium import chromium
from services.tests.system.cluster import Cluster


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as running:
        yield running


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with Cluster(tmp_path) as started:
        started.start(workers=2)
        yield started
        for name in started.services:
            print(f"--- {name}\n{started.log(name)[-2000:]}")  # pytest shows it when the test has failed
