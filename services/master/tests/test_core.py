"""The coordinator under any order of events: its table is total, its invariants hold, the same events give the same."""

import inspect
from typing import Any, get_args

from hypothesis import given, settings
from hypothesis import strategies as st

from services.master.core import events
from services.master.core.events import Event, WorkerSaid
from services.master.core.invariants import violations
from services.master.core.state import RunPhase
from services.master.core.table import TABLE, Ignore, diagram
from services.tests.story import Story


def test_the_table_is_total() -> None:
    names = {kind.__name__ for kind in get_args(Event) if kind is not WorkerSaid}
    names |= {kind.model_fields["t"].default for kind in get_args(events.WorkerMessage)}
    assert set(TABLE) == names
    for name, row in TABLE.items():
        assert set(row) == set(RunPhase), name
        for cell in row.values():
            assert cell.reason if isinstance(cell, Ignore) else callable(cell), name


def test_every_handler_says_what_it_does() -> None:
    handlers = {cell for row in TABLE.values() for cell in row.values() if not isinstance(cell, Ignore)}
    assert all(inspect.getdoc(handler) for handler in handlers)


def test_the_diagram_has_a_row_for_each_event() -> None:
    assert len(diagram().splitlines()) == len(TABLE) + 2


_WHO = st.sampled_from(["ada", "bob", "cyd"])
_STEP = st.one_of(
    st.tuples(st.sampled_from(["join", "left", "bye", "drain", "remove"]), _WHO),
    st.tuples(st.sampled_from(["begin", "staged", "delta", "refuse", "busy", "beat", "stalled", "another"]), _WHO),
    st.tuples(st.sampled_from(["join_holds", "join_works", "bad_delta"]), _WHO),
    st.tuples(st.sampled_from(["tick", "pause", "resume", "stop", "create", "restart", "fail"]), st.just("")),
    st.tuples(st.sampled_from(["diverge", "nan", "eval_good", "eval_far"]), st.just("")),
    st.tuples(st.sampled_from(["wait", "stop_waiting"]), st.just("")),
)


def _play(steps: list[tuple[str, str]]) -> list[str]:
    lines: list[str] = ["@1000 create k_steps=10 batch=50 rounds=4"]
    now, seen, made = 1000, set(), 1
    begun: list[int] = []
    story = Story()
    out = [story.play(lines[0])]
    for verb, who in steps:
        now += 20_000 if verb == "wait" else 700
        if verb.startswith("join"):
            holds = verb.removeprefix("join").strip("_") if f"w-{who}" in story.leases else ""
            line = f"@{now} join {who} {holds}"
            seen.add(who)
        elif (
            who and (f"w-{who}" not in story.leases or who not in seen) and verb not in ("left", "bye", "drain", "beat")
        ):
            continue
        elif verb == "create":
            made += 1
            line = f"@{now} create digits-{made} k_steps=10 batch=50 rounds=2"
        elif verb == "stop_waiting":
            line = f"@{now} stop digits-{made}"
        elif verb == "nan" or verb.startswith("eval"):
            run = story.coordinator.state.run
            loss = 50 if verb == "eval_far" else 0.5
            measured = "nan" if verb == "nan" else f"eval loss={loss} acc=0.5"
            line = f"@{now} {measured} version={run.version if run is not None else 0}"
        elif verb == "busy":
            line = f"@{now} refuse {who} busy"
        elif verb == "another":
            line = f"@{now} begin {who} digest=8"
        elif verb == "bad_delta":
            line = f"@{now} delta {who} nonfinite=1"
        else:
            line = f"@{now} {'tick' if verb == 'wait' else verb} {who}"
        out.append(story.play(line.rstrip()))
        assert not violations(story.coordinator.state)
        current = story.coordinator.state.run
        if current is not None and int(current.id.removeprefix("digits-")) not in begun[-1:]:
            begun.append(int(current.id.removeprefix("digits-")))
    assert begun == sorted(set(begun)), "each once, in the order in which they were asked for"
    return out


@settings(max_examples=300, deadline=None)
@given(st.lists(_STEP, max_size=60))
def test_any_order_of_events_keeps_the_invariants_and_is_repeatable(steps: list[tuple[str, str]]) -> None:
    assert _play(steps) == _play(steps)


@settings(max_examples=100, deadline=None)
@given(st.lists(_STEP, max_size=40))
def test_whatever_happened_a_healthy_worker_finishes_the_run(steps: list[tuple[str, str]]) -> None:
    story = Story()
    story.play("@1000 create k_steps=10 batch=50 rounds=4")
    now = 1000
    for verb, who in steps:
        if verb in ("stop", "stop_waiting", "fail", "create", "pause", "diverge", "nan", "eval_good", "eval_far") or (
            who and verb not in ("join", "left", "bye", "drain")
        ):
            continue
        now += 20_000 if verb == "wait" else 700
        story.play(f"@{now} {'tick' if verb == 'wait' else verb} {who}".rstrip())
    run: Any = story.coordinator.state.run
    for _ in range(40):
        now += 1_500
        story.play(f"@{now} join dan works" if "w-dan" in story.leases else f"@{now} join dan")
        story.play(f"@{now + 700} tick")
        run = story.coordinator.state.run
        if run.finished:
            break
        if any(lease.worker == "w-dan" for round_ in run.rounds for lease in round_.leases):
            story.play(f"@{now + 800} delta dan")
    assert run.finished, (run.phase, run.reason)
