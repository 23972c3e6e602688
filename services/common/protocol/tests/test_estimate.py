"""The estimate against numbers worked out by hand, its hints at their bounds, and what must hold of any run."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.common.protocol.encodings import ENCODINGS, down_encoding, encoded_bytes
from services.common.protocol.estimate import Conditions, Estimate, Pc, estimate
from services.common.protocol.round_time import HANDOVER_S, HANDOVER_S_PER_PARAMETER, default_fixed_s
from services.common.protocol.spec import RunSpec

N = 1_000_000
LINK = 12.5e6  # 100 Mbit/s
TWO = (Pc("a", 3000.0), Pc("b", 1000.0))
SPEC = RunSpec(rounds=10, k_steps=100, batch=32, encoding="fp32", rounds_in_flight=1)
AHEAD, AUTO = (SPEC.model_copy(update={"rounds_in_flight": how}) for how in (2, "auto"))


def codes(found: Estimate) -> list[str]:
    return [hint.code for hint in found.hints]


def test_steps_samples_epochs_and_bytes() -> None:
    found = estimate(SPEC, Conditions(n_train=1600, n_parameters=N, pcs=TWO))
    assert (found.workers, found.local_steps) == (2, 10 * 100 * 2)
    assert (found.samples_per_round, found.samples_total) == (6_400, 64_000)
    assert found.epochs == 40.0
    assert found.bytes_per_round == 2 * (4 * N + 4 * N)
    assert found.bytes_total == 10 * found.bytes_per_round + 2 * 4 * N  # and the first download of the model


def test_a_blocking_run_by_hand() -> None:
    pcs = (Pc("a", 3000.0, LINK), Pc("b", 1000.0, LINK))
    found = estimate(SPEC, Conditions(1600, N, pcs, bytes_per_s=LINK, fixed_s=0.1))
    # 6,400 samples at 4,000/s; 16 MB over the master's link; then 0.1 s. 8 MB before the first round.
    assert found.compute_s == pytest.approx(1.6)
    assert found.sync_s == pytest.approx(1.28 + 0.1)
    assert found.round_s == pytest.approx(2.98)
    assert found.minutes == pytest.approx((0.64 + 10 * 2.98) / 60)


def test_eight_workers_at_100_mbit_as_in_the_notes() -> None:
    """1.0 M fp32 parameters, 8 workers: 2.6 s in and 2.6 s out."""
    pcs = tuple(Pc(f"pc-{i}", 1000.0) for i in range(8))
    found = estimate(SPEC, Conditions(1600, N, pcs, bytes_per_s=LINK, fixed_s=0.0))
    assert found.sync_s == pytest.approx(2 * 2.56)


def test_overlap_takes_the_longer_of_both_and_auto_overlaps_where_it_pays() -> None:
    handover_s = HANDOVER_S + HANDOVER_S_PER_PARAMETER * N
    slow = Conditions(1600, N, TWO, bytes_per_s=LINK, fixed_s=0.1)
    found = estimate(AHEAD, slow)
    assert found.round_s == pytest.approx(1.6 + handover_s)  # compute 1.6 hides sync 1.38
    assert found.minutes == pytest.approx((0.64 + 1.6 + 1.38 + 9 * (1.6 + handover_s)) / 60)
    auto = estimate(AUTO, slow)
    assert auto.round_s == found.round_s
    hardly = estimate(AUTO, Conditions(1600, N, TWO, fixed_s=0.07))  # 4.4 % of 1.6 s
    assert hardly.round_s == pytest.approx(1.67)


def test_balance_equal_waits_for_the_slowest_and_units_for_the_last_unit() -> None:
    bare = Conditions(1600, N, TWO, fixed_s=0.0)
    assert estimate(SPEC.model_copy(update={"balance": "equal"}), bare).compute_s == pytest.approx(3.2)
    units = estimate(SPEC.model_copy(update={"balance": "units", "units": 5}), bare)
    # Units of 3,200 samples: a begins at 0, 1.07, 2.13 and 3.2 s, b at 0 and not again: the fifth is done at 4.27 s.
    assert units.compute_s == pytest.approx(4 * 3200 / 3000)
    assert units.samples_per_round == 5 * 3200
    assert units.bytes_per_round == 5 * 4 * N + 2 * 4 * N  # a delta a unit, an update a worker


def test_one_slow_link_holds_all_back() -> None:
    pcs = (Pc("a", 3000.0, LINK), Pc("b", 1000.0, 1e6))
    found = estimate(SPEC, Conditions(1600, N, pcs, bytes_per_s=LINK, fixed_s=0.0))
    assert found.sync_s == pytest.approx(8.0)  # b's own 8 MB; the master's link would be done in 1.28 s


def test_a_master_link_that_is_not_measured_is_as_fast_as_the_fastest_other() -> None:
    pcs = (Pc("a", 3000.0, LINK), Pc("b", 1000.0, LINK / 2))
    found = estimate(SPEC, Conditions(1600, N, pcs, fixed_s=0.0))
    assert found.sync_s == pytest.approx(16e6 / LINK)
    assert "LINK_NOT_MEASURED" not in codes(found)


def test_without_a_measured_link_only_the_masters_work_counts_and_a_hint_says_so() -> None:
    found = estimate(SPEC, Conditions(1600, N, TWO))
    assert found.sync_s == pytest.approx(default_fixed_s(N, 2))
    assert "LINK_NOT_MEASURED" in codes(found)


@pytest.mark.parametrize("n, measured_s", [(99_954, 0.024), (1_000_140, 0.066), (9_999_840, 0.4765)])
def test_the_masters_work_is_what_the_benchmark_found(n: int, measured_s: float) -> None:
    """bench/results/wire.json, overhead, int8, 2 workers."""
    assert default_fixed_s(n, 2) == pytest.approx(measured_s, rel=0.1)


@pytest.mark.parametrize(
    "n_train, expected",
    [
        (64_001, ["UNDER_TRAINED"]),
        (64_000, []),
        (1_280, []),
        (1_279, ["OVER_TRAINED"]),
    ],
)
def test_hints_at_their_bounds(n_train: int, expected: list[str]) -> None:
    """1 and 50 passes are healthy, less and more are not."""
    found = estimate(SPEC, Conditions(n_train, N, TWO, bytes_per_s=LINK))
    assert codes(found) == expected


def test_a_run_that_waits_for_pcs_has_a_volume_and_no_time() -> None:
    found = estimate(SPEC.model_copy(update={"min_workers": 3}), Conditions(1600, N, TWO))
    assert (found.workers, found.samples_per_round) == (3, 9_600)
    assert (found.minutes, found.round_s, found.compute_s, found.sync_s) == (None, None, None, None)
    assert found.hints[1].sentence == "The run waits until 3 PCs are here; now there are 2."
    nobody = estimate(SPEC, Conditions(1600, N, ()))
    assert (nobody.minutes, nobody.workers, nobody.verdict.code) == (None, 1, "NO_PC")


def test_a_speed_from_the_short_test_is_said_to_be_rough() -> None:
    pcs = (TWO[0], Pc("b", 1000.0, measured=False))
    assert "SPEED_NOT_MEASURED" in codes(estimate(SPEC, Conditions(1600, N, pcs)))
    assert "SPEED_NOT_MEASURED" not in codes(estimate(SPEC, Conditions(1600, N, TWO)))


speeds = st.floats(1.0, 1e6)
links = st.none() | st.floats(1e3, 1e9)
some_pcs = st.lists(st.tuples(speeds, links), min_size=1, max_size=12)
specs = st.builds(
    RunSpec.model_construct,  # also units with two rounds in flight, which nobody may ask for
    rounds=st.integers(1, 1000),
    k_steps=st.integers(1, 1000),
    batch=st.integers(8, 512),
    balance=st.sampled_from(["proportional", "equal", "units"]),
    encoding=st.sampled_from(ENCODINGS),
    rounds_in_flight=st.sampled_from([1, 2, "auto"]),
)


def pcs_of(drawn: list[tuple[float, float | None]]) -> tuple[Pc, ...]:
    return tuple(Pc(f"pc-{i}", speed, link) for i, (speed, link) in enumerate(drawn))


@given(specs, some_pcs, links, st.integers(1, 10**7))
@settings(max_examples=150, deadline=None)
def test_more_bytes_are_never_faster(
    spec: RunSpec, drawn: list[tuple[float, float | None]], link: float | None, n: int
) -> None:
    def minutes(of: RunSpec) -> tuple[int, float]:
        found = estimate(of, Conditions(1000, n, pcs_of(drawn), link, fixed_s=0.01))
        assert found.minutes is not None
        return found.bytes_total, found.minutes

    smaller, larger = sorted((encoding for encoding in ENCODINGS), key=lambda one: _both_ways(one, n))[
        :: len(ENCODINGS) - 1
    ]
    few, many = (minutes(spec.model_copy(update={"encoding": one})) for one in (smaller, larger))
    assert few[0] <= many[0]
    if spec.rounds_in_flight != "auto":  # left to the run, a longer exchange may be the one that is hidden
        assert few[1] <= many[1] * (1 + 1e-9)


def _both_ways(encoding: str, n: int) -> int:
    known = next(one for one in ENCODINGS if one == encoding)
    return encoded_bytes(known, n) + encoded_bytes(down_encoding(known), n)


@given(specs, some_pcs, st.integers(1, 10**7))
@settings(max_examples=100, deadline=None)
def test_the_parts_fit_together(spec: RunSpec, drawn: list[tuple[float, float | None]], n: int) -> None:
    spec = spec.model_copy(update={"rounds_in_flight": 1})
    found = estimate(spec, Conditions(1000, n, pcs_of(drawn)))
    assert found.samples_total == found.samples_per_round * spec.rounds == found.local_steps * spec.batch
    assert found.minutes is not None and found.round_s is not None
    assert found.minutes * 60 >= 0.999 * spec.rounds * found.round_s
    assert len(found.verdict.speedups) == len(drawn)
    assert all(one > 0 for one in found.verdict.speedups)


def test_k_auto_is_foretold_as_the_master_will_choose_it() -> None:
    def chosen(sync_s: float, **changes: Any) -> int:
        spec = RunSpec.model_validate({"k_steps": 20, "k_auto": True, "rounds_in_flight": 1, **changes})
        return estimate(spec, Conditions(1000, 1000, (Pc("a", 3200.0),), fixed_s=sync_s)).k_steps  # 10 ms a step

    assert chosen(0.4) == 500, "360 are wanted: 20, 40, ... 320, and 640 is more than the most"
    assert chosen(0.4, k_steps_max=10_000) == 640
    assert chosen(0.4, k_auto=False) == 20
    assert chosen(0.09) == 20
    assert chosen(0.4, balance="units") == 20
