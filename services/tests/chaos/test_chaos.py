"""The drawing and the judging of faults, by themselves; and a small storm of real processes that must lose nothing.

Times are never asserted, but for bounds after which something surely hangs.
"""

import json
import os
import subprocess
from pathlib import Path

import pytest

from services.tests.chaos import delay, network, processes, thousand
from services.tests.chaos.__main__ import play
from services.tests.chaos.faults import BATCH, CUTS, HOLD_S, Kind, draw
from services.tests.chaos.report import slope_per_minute
from services.tests.chaos.storm import Storm
from services.tests.chaos.verdict import Plan
from services.tests.chaos.watch import first_after, longest_gap


def test_faults_are_drawn_from_the_seed_alone_and_all_kinds_come() -> None:
    faults = draw(7, 60, 8, with_cuts=True)
    assert faults == draw(7, 60, 8, with_cuts=True) != draw(8, 60, 8, with_cuts=True)
    assert {fault.kind for fault in faults} == set(Kind)
    assert all(0 < fault.hold_s <= HOLD_S[1] and max(fault.targets, default=1) <= 8 for fault in faults)
    assert {len(fault.targets) for fault in faults if fault.kind is Kind.KILL_BATCH} == {BATCH}
    assert not {fault.kind for fault in draw(7, 60, 8, with_cuts=False)} & set(CUTS)
    assert all(len(set(fault.targets)) < 2 for fault in draw(1, 20, 2, with_cuts=True)), "one worker stays"


def test_moments_are_reckoned_as_they_say() -> None:
    closings = [(10.0, 1), (11.0, 2), (15.0, 3)]
    assert first_after(closings, 11.5) == 3.5
    assert first_after(closings, 16.0) is None
    assert longest_gap(closings, 9.0, 16.0) == 4.0
    assert longest_gap([], 9.0, 16.0) == 7.0
    assert slope_per_minute([(0.0, 5.0), (60.0, 7.0), (120.0, 9.0)]) == 2.0


def test_this_process_is_seen_with_its_size() -> None:
    own = os.getpid()
    assert own in processes.family(own)
    assert processes.alive(own)
    found = processes.size([own])
    assert found.rss_mib > 1 and found.descriptors > 2 and found.threads >= 1


@pytest.mark.system
@pytest.mark.timeout(180)
def test_a_small_storm_loses_no_round_and_leaves_no_process(tmp_path: Path) -> None:
    plan = Plan(seed=3, faults=3, workers=4, every_s=3.0, calm_s=1.0, k_steps=100)
    results = play(plan, tmp_path)
    assert results["held"], json.dumps(results, indent=2)
    assert results["rounds"] > 3


@pytest.mark.system
@pytest.mark.timeout(180)
def test_one_lost_worker_does_not_hold_a_round_for_ever(tmp_path: Path) -> None:
    with Storm(tmp_path, 2) as storm:
        ways = {way.name: way for way in delay.ways(2, cuts=storm.cuttable)}
        for name in ("killed worker", "frozen worker"):
            found = delay.measure(storm, ways[name], 1, 100)
            assert max(found["one_round_delay_s"]) < delay.WAIT_S
        assert storm.end() == []


@pytest.mark.system
@pytest.mark.timeout(120)
def test_scripted_workers_join_and_train(tmp_path: Path) -> None:
    results = thousand.play(50, 3, tmp_path)
    assert results["held"], json.dumps(results, indent=2)


@pytest.mark.system
def test_a_network_leaves_nothing_behind() -> None:
    if not network.available():
        return  # without root there are no cuts, and the storms do without
    mine = f"{network.PREFIX}-{os.getpid()}"
    net = network.Network(1)
    try:
        net.cut(1, "both")
        assert _rules().count(mine) == 2
        with net.inside(1):
            inside = Path("/proc/thread-self/ns/net").readlink()
        assert inside != Path("/proc/self/ns/net").readlink() == Path("/proc/thread-self/ns/net").readlink()
    finally:
        net.close()
    assert mine not in _rules()
    assert not list(network.NAMESPACES.glob(f"{mine}-*"))


def _rules() -> str:
    return subprocess.run(["iptables", "-w", "-S"], capture_output=True, text=True, check=True).stdout
