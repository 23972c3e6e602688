"""Will it help? Equal PCs, slow links, slow PCs, a full link of the master, and a run that needs no second PC."""

import pytest

from services.common.protocol.estimate import Conditions, Pc, Verdict, estimate
from services.common.protocol.limits import WORKERS_MAX
from services.common.protocol.spec import RunSpec

N = 1_000_000
LINK = 12.5e6
LONG = RunSpec(rounds=10_000, k_steps=100, batch=32, encoding="fp32", rounds_in_flight=1)
EQUAL = LONG.model_copy(update={"balance": "equal"})


def pc(name: str, speed: float = 1000.0, link: float | None = LINK) -> Pc:
    return Pc(name, speed, link)


def verdict(spec: RunSpec, *pcs: Pc, link: float | None = None, fixed_s: float = 0.0) -> Verdict:
    return estimate(spec, Conditions(1600, N, pcs, link, fixed_s)).verdict


@pytest.mark.parametrize("balance", ["proportional", "equal"])
@pytest.mark.parametrize("count", [1, 2, 3, 8, 50])
def test_equal_pcs_that_need_not_send_are_n_times_as_fast(count: int, balance: str) -> None:
    pcs = [pc(f"pc-{i}", link=None) for i in range(count)]
    found = verdict(LONG.model_copy(update={"balance": balance}), *pcs)
    assert found.speedups == pytest.approx(list(range(1, count + 1)))
    assert (found.best_workers, found.leave_out) == (count, [])
    assert found.code == ("HELPS" if count > 1 else "ONE_PC")


def test_speeds_add_up_with_shares_by_speed() -> None:
    found = verdict(LONG, pc("slow", 500.0, None), pc("fast", 2000.0, None))
    assert found.speedups == pytest.approx([1.0, 1.25])
    assert found.sentence == "2 PCs are 1.2 times as fast as fast alone."


def test_sending_is_counted_against_a_pc_that_sends_nothing() -> None:
    """3.2 s of local steps, 8 MB at 12.5 MB/s: one PC in a cluster of itself is slower than by itself."""
    found = verdict(LONG, pc("a"), pc("b"), link=LINK)
    assert found.speedups == pytest.approx([3.2 / (3.2 + 0.64), 2 * 3.2 / (3.2 + 1.28)])


def test_one_pc_that_finishes_in_under_a_minute_needs_no_second() -> None:
    # 2 PCs, rounds of 6,400 samples in all, at 2,000 samples/s: 19 rounds are 60.8 s, 18 are 57.6 s.
    pcs = (pc("a", 2000.0), pc("b", 2000.0))
    assert verdict(LONG.model_copy(update={"rounds": 19}), *pcs).code == "HELPS"
    found = verdict(LONG.model_copy(update={"rounds": 18}), *pcs)
    assert found.code == "ONE_PC_IS_ENOUGH"
    assert found.alone_s == pytest.approx(57.6)
    assert found.sentence == "a alone finishes in 58 s: you need no second PC."


def test_a_slow_link_is_left_out_by_name_and_slow_pcs_are_not_where_shares_follow_speed() -> None:
    found = verdict(LONG, pc("a"), pc("wifi", 900.0, 2e5), pc("old", 100.0), pc("b"))
    assert (found.code, found.best_workers) == ("LEAVE_OUT", 3)
    assert [(one.name, one.code) for one in found.leave_out] == [("wifi", "SLOW_LINK")]
    # wifi: 8 MB at 0.2 MB/s are 40 s; without it 24 MB at 12.5 MB/s are 1.92 s.
    assert found.leave_out[0].sentence == "wifi: its link carries 0.2 MB/s, so every round waits 38.1 s for it."
    assert found.sentence.startswith("Leave out wifi: the run is then ")


def test_a_slow_pc_is_left_out_where_all_get_the_same() -> None:
    found = verdict(EQUAL, pc("a"), pc("old", 100.0), pc("b"))
    assert [(one.name, one.code) for one in found.leave_out] == [("old", "SLOW_PC")]
    # 3,200 samples at 100/s are 32 s, the others need 3.2 s.
    assert found.leave_out[0].sentence == "old: equal pieces take it 32.0 s, so every round waits 28.8 s for it."
    assert verdict(EQUAL, pc("a"), pc("not-so-old", 970.0), pc("b")).leave_out == []


def test_a_link_that_takes_longer_than_the_training_is_said() -> None:
    pcs = [pc(f"pc-{i}", 20_000.0) for i in range(4)]
    found = verdict(LONG, *pcs, link=LINK)
    assert found.code == "LINK_BOUND"
    assert found.sentence.startswith("4 PCs are 0.2 times as fast as pc-0 alone, for a round sends for 2.6 s and ")


def test_with_overlap_a_full_link_gains_nothing_from_more_pcs() -> None:
    pcs = [pc(f"pc-{i}", 4000.0) for i in range(8)]
    found = verdict(LONG.model_copy(update={"rounds_in_flight": 2}), *pcs, link=LINK)
    assert found.speedups[7] == pytest.approx(found.speedups[3], rel=0.05)
    assert found.code == "LINK_BOUND"


def test_a_thousand_pcs_are_no_matter() -> None:
    pcs = [pc(f"pc-{i}", 100.0 + i, 1e5 * (1 + i % 300)) for i in range(WORKERS_MAX)]
    found = verdict(EQUAL, *pcs, link=1e9)
    assert len(found.speedups) == WORKERS_MAX == found.best_workers + len(found.leave_out)
    assert " more: the run is then " in found.sentence
