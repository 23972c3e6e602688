"""Verdicts and divisions of the coordinator: exact values, and properties for any input."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from services.common.protocol.messages import Drain, Heartbeat
from services.common.protocol.reasons import because, said
from services.master.core import events as e
from services.master.core import policy
from services.master.core.policy import Limits, Verdict
from services.master.core.state import Lease, LeaseState, Link, Round, Worker
from services.master.core.view import state_view
from services.tests.story import Story

NAMES = {"a": "ada", "b": "bob", "c": "cyd"}


def a_round(*states: LeaseState, opened_ms: int = 0) -> Round:
    leases = [
        Lease(f"lease-{at}", at, "abc"[at], [(at * 100, at * 100 + 100)], 100, 10, 10, 1.0, state, accepted_ms=1000)
        for at, state in enumerate(states)
    ]
    return Round(1, 0, 1024.0, leases, opened_ms, "fp32")


def test_three_to_one_on_a_thousand_samples() -> None:
    assert policy.split_by_speed(1000, [3.0, 1.0]) == [750, 250]
    work = policy.plan_work(10, 50, [3000.0, 1000.0])
    assert [one.samples for one in work] == [750, 250]
    assert [(one.k_steps, one.batch, one.delta_scale) for one in work] == [(10, 75, 1.0), (10, 25, 1.0)]


def test_beyond_the_clamp_the_steps_change_and_the_delta_is_scaled() -> None:
    slow, fast = policy.plan_work(50, 32, [1.0, 99.0])
    assert (slow.batch, slow.k_steps) == (8, 6)
    assert slow.delta_scale == 50 / 6
    assert (fast.batch, fast.k_steps, fast.delta_scale) == (63, 50, 1.0)
    fastest = policy.plan_work(50, 32, [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 994.0])[-1]
    assert (fastest.batch, fastest.k_steps) == (128, 80), "64 medians are believed, not 994"
    assert fastest.delta_scale == 50 / 80


@given(*[st.lists(st.tuples(st.integers(0, 40), st.integers(0, 9)), max_size=6)] * 2)
def test_without_leaves_just_what_is_not_taken(ranges: list[tuple[int, int]], taken: list[tuple[int, int]]) -> None:
    spans = [[(start, start + size + 1) for start, size in one] for one in (ranges, taken)]
    merged = [[(start, stop) for start, stop in one] for one in spans]
    positions = [{at for start, stop in one for at in range(start, stop)} for one in merged]
    disjoint = [sorted(_runs(one)) for one in positions]
    left = policy.without(*disjoint)
    assert {at for start, stop in left for at in range(start, stop)} == positions[0] - positions[1]
    assert left == sorted(_runs(positions[0] - positions[1]))


def _runs(positions: set[int]) -> list[tuple[int, int]]:
    return policy.merge_ranges([(at, at + 1) for at in positions])


def test_whatever_speeds_are_claimed_a_task_fits_its_message() -> None:
    for speeds in ([1.0] * 59 + [1e12], [1e-300, 1e12], [1e12] * 3, [1e-9] + [1e12] * 40, [5.0]):
        for k_steps, batch in ((100_000, 65_536), (100_000, 8), (1, 8)):
            for work in policy.plan_work(k_steps, batch, speeds):
                assert 1 <= work.k_steps <= 1_000_000
                assert 1 <= work.samples <= 2**40
                assert 0 < work.delta_scale <= 1e6


def test_a_worker_that_fails_waits_longer_each_time_up_to_a_minute() -> None:
    assert [policy.failure_wait_ms(n) for n in (1, 2, 3, 5, 6, 7, 10_000)] == [
        2_000,
        4_000,
        8_000,
        32_000,
        60_000,
        60_000,
        60_000,
    ]


@given(st.integers(1, 5000), st.lists(st.floats(0.001, 1e9), min_size=1, max_size=40))
def test_a_split_is_whole_and_leaves_nobody_out(extra: int, speeds: list[float]) -> None:
    total = len(speeds) + extra
    parts = policy.split_by_speed(total, speeds)
    assert sum(parts) == total
    assert min(parts) >= 1


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(1, 20)), max_size=6), st.integers(1, 200))
def test_taken_and_left_ranges_are_what_was_there(gaps: list[tuple[int, int]], size: int) -> None:
    pending, at = [], 0
    for gap, length in gaps:
        pending.append((at + gap, at + gap + length))
        at += gap + length
    taken, left, cursor = policy.take_ranges(pending, at, size)
    positions = [one for start, stop in taken for one in range(start, stop)]
    assert len(positions) == size
    rest = [one for start, stop in left for one in range(start, stop)]
    before = [one for start, stop in pending for one in range(start, stop)] + list(range(at, cursor))
    assert sorted(positions + rest) == sorted(before)
    assert cursor == at or not left, "the cursor moves only when nothing is pending (but for very many pieces)"
    assert all(first[1] < second[0] for first, second in pairwise(taken))


def opening(ready: int, min_workers: int, present: int) -> tuple[bool, str]:
    may_open, reason = policy.open_verdict(ready, min_workers, present)
    return may_open, reason.text


def test_a_round_opens_only_with_enough_workers_and_says_what_is_missing() -> None:
    assert opening(1, 2, 1) == (False, "1 of 2 workers; start one more")
    assert opening(0, 3, 0) == (False, "0 of 3 workers; start 3 more")
    assert opening(1, 2, 3) == (
        False,
        "1 of 2 workers ready, 2 busy, paused, silent or waiting after a failure; start one more or wait",
    )
    assert opening(2, 2, 2) == (True, "2 workers ready")


def a_worker(name: str, link: Link, boot_id: str = "1" * 32) -> Worker:
    return Worker(name, NAMES[name], "linux", 1, 1, 1, 1.0, boot_id, 0, 0, link=link)


def test_close_verdicts() -> None:
    limits = Limits()
    out, accepted, lost = LeaseState.OUT, LeaseState.ACCEPTED, LeaseState.LOST

    def verdict(now_ms: int, round_: Round, reachable: set[str], min_workers: int = 1) -> tuple[Verdict, str]:
        known = {one: a_worker(one, Link.LINKED if one in reachable else Link.DETACHED) for one in NAMES}
        found, reason = policy.close_verdict(now_ms, round_, known, min_workers, limits)
        return found, reason.text

    assert verdict(10, a_round(accepted, accepted), {"a", "b"})[0] is Verdict.CLOSE
    assert verdict(10, a_round(accepted, lost), {"a"}) == (Verdict.CLOSE, "1 of 2 workers submitted, 1 lost")
    assert verdict(10, a_round(lost, lost), set())[0] is Verdict.REOPEN
    waiting = verdict(10, a_round(accepted, out, out), {"a", "b", "c"})
    assert waiting == (Verdict.WAIT, "1 of 3 workers submitted; waiting for bob, cyd")
    assert verdict(4_999, a_round(accepted, out), {"a", "b"})[0] is Verdict.WAIT
    assert verdict(5_000, a_round(accepted, out), {"a", "b"})[0] is Verdict.CLOSE
    # A quorum of two is not reached by one delta, however late it is, unless the other cannot be reached.
    assert verdict(60_000, a_round(accepted, out), {"a", "b"}, min_workers=2)[0] is Verdict.WAIT
    assert verdict(60_000, a_round(accepted, out), {"a"}, min_workers=2)[0] is Verdict.CLOSE
    # Nobody waits longer than two heartbeats for a connection that is gone, however long rounds take.
    assert verdict(4_000, a_round(accepted, out), {"a"})[0] is Verdict.WAIT
    gone = verdict(4_001, a_round(accepted, out), {"a"})
    assert gone == (Verdict.CLOSE, "1 of 2 workers submitted; of the others nothing is heard")
    assert verdict(4_000, a_round(accepted, out, out), {"a", "b"})[0] is Verdict.WAIT


def test_who_is_away() -> None:
    limits = Limits()
    assert not policy.is_away(a_worker("a", Link.LINKED), 60_000, limits)
    assert policy.is_away(a_worker("a", Link.SUSPECT), 0, limits)
    assert policy.is_away(a_worker("a", Link.LOST), 0, limits)
    assert not policy.is_away(a_worker("a", Link.DETACHED), 4_000, limits)
    assert policy.is_away(a_worker("a", Link.DETACHED), 4_001, limits)
    assert not policy.is_away(a_worker("a", Link.DETACHED, "0" * 32), 14_000, limits), "it may still rejoin"
    assert policy.is_away(None, 0, limits)


def test_the_fold_bound_is_a_power_of_two_sixteen_times_the_largest_entry() -> None:
    assert policy.fold_bound([]) == 1024.0
    assert policy.fold_bound([0.0]) == 1024.0
    assert policy.fold_bound([0.5]) == 8.0
    assert policy.fold_bound([9.0, 0.1, 0.1, 0.1, 0.1, 0.3]) == 8.0, "only the last five rounds count"
    assert policy.fold_bound([1e-30]) == 2.0**-40


def test_many_small_pieces_of_pending_data_never_make_a_task_that_does_not_fit() -> None:
    pending = [(at, at + 1) for at in range(0, 2000, 2)]
    taken, left, cursor = policy.take_ranges(pending, 5000, 400)
    assert sum(stop - start for start, stop in taken) == 400
    assert len(taken) <= policy.PIECES_MAX + 1
    assert (len(left), cursor) == (1000 - policy.PIECES_MAX, 5000 + 400 - policy.PIECES_MAX)


def test_the_reason_of_a_reopened_round_stays_short() -> None:
    round_ = a_round(LeaseState.LOST)
    round_.leases = [
        Lease(f"l{at}", at, f"w{at}", [], 1, 1, 1, 1.0, LeaseState.LOST, said(f"worker {at} " + "x" * 900))
        for at in range(1000)
    ]
    verdict, reason = policy.close_verdict(0, round_, {}, 1, Limits())
    assert verdict is Verdict.REOPEN
    assert len(reason.text) < 700
    assert reason.text.endswith("and 997 more reasons")


def test_the_clip_factor_brings_a_long_delta_to_the_limit_and_leaves_the_others() -> None:
    assert [policy.clip_factor(*one) for one in [(5.0, None), (0.0, 2.0), (0.0, 0.0), (2.0, 2.0)]] == [1.0] * 4
    assert policy.clip_factor(8.0, 2.0) == 0.25
    assert policy.clip_factor(8.0, 0.0) == 0.0
    assert policy.clip_factor(1e308, 1e-308) >= 0.0


def test_the_clip_limit_is_a_multiple_of_the_median() -> None:
    assert policy.clip_limit([], 1.5) is None
    assert policy.clip_limit([3.0], 1.5) == 4.5
    assert policy.clip_limit([9.0, 1.0], 2.0) == 10.0
    assert policy.clip_limit([1.0, 1.1, 1.2, 1.25, 1.25, 1.5, 1e30, 1e30], 1.0) == 1.25, "two of eight cannot move it"


def test_reasons_are_told_in_english_and_as_code_and_values() -> None:
    story = Story()
    story.play("@1000 join ada\n@2000 create k_steps=10 batch=50 rounds=9 min_workers=2")
    dies = because("TRAINER_DIES", why=because("TRAINER_KILLED"), times=3)
    drain = Drain(term=1, reason=dies.text, reason_said=dies)
    story.coordinator.step(e.WorkerSaid("w-ada", drain), 2_500)
    view = state_view(story.coordinator.state, 2_500)
    assert view["run"]["reason"].startswith("0 of 2 workers ready, 1 busy, paused, silent")
    values = {"ready": 0, "needed": 2, "away": 1, "n": 2}
    assert view["run"]["reason_said"] == {"code": "WAITS_FOR_READY", "values": values}
    [ada] = view["workers"]
    assert ada["reason"] == dies.text
    assert ada["reason_said"]["values"] == {"why": {"code": "TRAINER_KILLED", "values": {}}, "times": 3}
    story.coordinator.step(e.WorkerSaid("w-ada", Drain(term=1, reason="paused by its owner")), 2_600)
    [ada] = state_view(story.coordinator.state, 2_600)["workers"]
    assert ada["reason_said"] == {"code": "TEXT", "values": {"text": "paused by its owner"}}
    story.coordinator.step(e.WorkerSaid("w-ada", Heartbeat(term=1)), 2_700)
    [ada] = state_view(story.coordinator.state, 2_700)["workers"]
    assert (ada["reason"], ada["reason_said"]) == ("", None)
