"""The API of a real cluster keeps to its description: about a thousand questions, in seconds."""

from pathlib import Path

import pytest

from services.tests.contract.__main__ import question
from services.tests.contract.asking import Outcome

pytestmark = [pytest.mark.system, pytest.mark.timeout(300)]
EXAMPLES = 5
REQUESTS_MIN = 500


def test_every_answer_is_a_described_one(tmp_path: Path) -> None:
    results = question(tmp_path, EXAMPLES, seed=8)
    assert results["failures"] == []
    assert results["held"], results
    assert results["requests"] >= REQUESTS_MIN
    assert {"200", "201", "404", "409", "422"} <= set(results["statuses"])


@pytest.mark.parametrize(
    "statuses, failures",
    [({"200": 7, "500": 1}, []), ({"200": 7, "503": 1}, []), ({"200": 7}, ["Undocumented HTTP status code"]), ({}, [])],
)
def test_a_fault_does_not_pass(statuses: dict[str, int], failures: list[str]) -> None:
    assert not Outcome(sum(statuses.values()), statuses, 1, failures, 1.0, "").held
