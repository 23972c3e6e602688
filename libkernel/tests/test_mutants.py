"""The checks notice bugs: each mutant of the kernels (mutant.py, mutants/) makes check.c fail, and as it should.

Not on another CPU, but of the same kind as `test_emulated.py`: proof of the kernels in depth (`make emulated`).
"""

import re
import sys

import building
import pytest
from mutant import SAYS, Mutant, Outcome, Workshop, by_rule, written

TIME_LIMIT_S = 600
MACHINE = building.this_machine()
MUTANTS = [*written("c"), *((*written(MACHINE), *by_rule(MACHINE)) if MACHINE in {"x86_64", "aarch64"} else ())]

pytestmark = [
    pytest.mark.emulated,
    pytest.mark.skipif(sys.platform == "win32", reason="the check program is POSIX"),
    pytest.mark.timeout(TIME_LIMIT_S),
]


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    return Workshop(building.working_compilers()[0], tmp_path_factory.mktemp("mutants"))


@pytest.fixture(scope="module")
def outcomes(workshop: Workshop) -> dict[str, Outcome | Exception]:
    complaint = workshop.complaint(MUTANTS)
    assert not complaint, f"without any bug: {complaint}"
    return workshop.outcomes(MUTANTS)


def test_names_are_unique() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_the_check_notices(mutant: Mutant, workshop: Workshop, outcomes: dict[str, Outcome | Exception]) -> None:
    expect_noticed(mutant, workshop, outcomes[mutant.name])


def expect_noticed(mutant: Mutant, workshop: Workshop, outcome: Outcome | Exception) -> None:
    if isinstance(outcome, Exception):
        raise outcome
    if mutant.says == SAYS["vzeroupper"] and not workshop.sees_upper_halves():
        pytest.skip("this CPU does not say which registers are in use, so no test can notice it")
    assert not outcome.survived, "nothing was noticed"
    assert re.search(mutant.says, outcome.said), f"noticed, but as: {outcome.said}"
