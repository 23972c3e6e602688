"""How rounds are cut: overlap, local steps, encoding, and the word about a link that is too slow."""

from typing import Any

import pytest

from services.common.protocol.messages import RunSpec
from services.common.protocol.reasons import said
from services.master.core import pace
from services.master.core.state import Pace, Run, RunPhase, Worker

FAST, SLOW = (
    Worker(name, name, "linux", 2, 2, 4096, speed, "0" * 32, 0, 0, link_bytes_per_s=link)
    for name, speed, link in (("ada", 900.0, 1e7), ("bob", 1000.0, 1e6))
)
EVEN = Worker("cyd", "cyd", "linux", 2, 2, 4096, 2000.0, "0" * 32, 0, 0, link_bytes_per_s=1e7)


def a_run(sync_ms: float, step_ms: float = 10.0, **spec: Any) -> Run:
    run = Run("digits-1", RunSpec.model_validate({"k_steps": 20, **spec}), RunPhase.RUNNING, said(""))
    run.pace = Pace(sync_ms=[sync_ms] * 3, step_ms=[step_ms] * 3)
    return run


def decide(run: Run, times: int = 1) -> list[str]:
    return [reason for number in range(times) for reason in pace.choose(run, 4 + number, [FAST, SLOW, EVEN])]


def test_rounds_overlap_from_five_percent_on() -> None:
    run = a_run(10.1)
    (reason,) = decide(run)
    assert reason.startswith("from round 4 on workers train while deltas and updates travel: that takes 0.01 s, 5 %")
    assert run.rounds_in_flight == 2
    assert decide(run) == []
    assert decide(a_run(9.9)) == []
    assert decide(a_run(500.0, rounds_in_flight=1)) == []
    assert decide(a_run(500.0, balance="units")) == []


def test_nothing_is_decided_before_three_rounds_are_measured() -> None:
    run = a_run(500.0, k_auto=True)
    run.pace.sync_ms.pop()
    assert decide(run) == []


def test_local_steps_are_doubled_until_they_make_up_for_the_exchange() -> None:
    run = a_run(400.0, k_auto=True, rounds_in_flight=1)
    assert decide(run) == ["40 local steps instead of 20 from round 4 on: a step takes 10.0 ms, the exchange 0.40 s"]
    decide(run, 10)
    assert run.k_steps == 500, "9 x 400 / 10 is 360: 20, 40, ... 640 is more than the most"
    ahead = a_run(400.0, k_auto=True, rounds_in_flight=2)
    decide(ahead, 10)
    assert ahead.k_steps == 80, "1.05 x 400 / 10 is 42"


def test_a_link_that_got_better_halves_them_down_to_what_was_asked_for() -> None:
    run = a_run(400.0, k_auto=True, rounds_in_flight=2)
    decide(run, 10)
    run.pace.sync_ms = [390.0] * 3
    assert decide(run) == [], "41 steps are wanted: 40 would be too few"
    run.pace.sync_ms = [350.0] * 3
    assert "40 local steps instead of 80" in decide(run)[0]
    run.pace.sync_ms = [100.0] * 3
    decide(run, 10)
    assert run.k_steps == 20


def test_a_short_exchange_is_no_reason_for_long_rounds() -> None:
    assert decide(a_run(99.0, step_ms=0.1, k_auto=True, rounds_in_flight=2)) == []


def test_at_the_most_steps_bytes_are_saved_and_then_the_link_is_named() -> None:
    run = a_run(4_000.0, k_auto=True, k_steps_max=40, rounds_in_flight=2, encoding="fp32")
    decide(run)
    (reason,) = decide(run)
    assert reason.startswith(
        "deltas and updates travel as int8 instead of fp32 from round 4 on: 40 local steps, the most"
    )
    assert decide(run) == [], "the new encoding is measured first"
    run.pace.sync_ms = [1_200.0] * 3
    assert "as int4 instead of int8" in decide(run)[0]
    run.pace.sync_ms = [800.0] * 3
    (reason,) = decide(run)
    assert reason.startswith(
        "workers wait 50 % of the time for the link: the exchange takes 0.80 s, 40 local steps 0.40"
    )
    assert reason.endswith("leave out bob, whose link carries only 8.0 Mbit/s, or allow more than k_steps_max=40")
    assert decide(run, 5) == [], "once"


@pytest.mark.parametrize(
    "workers, words",
    [([FAST], "a wire instead of Wi-Fi"), ([FAST, EVEN], "all share the master's link: leave out ada, the slowest")],
)
def test_whom_to_leave_out_depends_on_the_links(workers: list[Worker], words: str) -> None:
    run = a_run(4_000.0, k_auto=True, k_steps_max=20, rounds_in_flight=2, encoding="int4")
    assert words in pace.choose(run, 4, workers)[0]


def test_units_are_never_cut_by_the_clock() -> None:
    assert decide(a_run(4_000.0, k_auto=True, balance="units"), 5) == []
