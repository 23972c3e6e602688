"""What must hold after every step, whatever happened. Checked in tests and in simulation."""

from itertools import pairwise

from services.master.core.state import QUEUE_MAX, LeaseState, RoundPhase, RunPhase, State


def violations(state: State) -> list[str]:
    """Sentences naming what is broken; empty when all holds."""
    run = state.run
    waiting = [queued.id for queued in state.queue]
    if run is None:
        return [f"{waiting} wait, and nothing goes on"] if waiting else []
    wrong = []
    if len(set(waiting)) != len(waiting) or run.id in waiting or len(waiting) > QUEUE_MAX:
        wrong.append(f"the queue is {waiting} while {run.id} is the current run")
    numbers = [round_.number for round_ in run.rounds]
    if numbers != list(range(run.version + 1, run.version + 1 + len(numbers))):
        wrong.append(f"rounds in flight are {numbers}, version is {run.version}")
    if len(run.rounds) > run.rounds_in_flight:
        wrong.append(f"{len(run.rounds)} rounds in flight, allowed are {run.rounds_in_flight}")
    if run.version > run.spec.rounds:
        wrong.append(f"version {run.version} of {run.spec.rounds}")
    if run.phase in (RunPhase.STOPPED, RunPhase.FAILED) and any(
        round_.phase in (RoundPhase.OPEN, RoundPhase.COLLECTING) for round_ in run.rounds
    ):
        wrong.append(f"a round still collects in a {run.phase.value} run")
    if run.goes_back and run.rounds:
        wrong.append(f"rounds {numbers} are in flight while the run goes back")
    out = [one for round_ in run.rounds for one in round_.ranges]
    taken = sorted(run.pending + out)
    for (_, stop), (start, _) in pairwise(taken):
        if start < stop:
            wrong.append(f"stream positions {start} to {stop} are given out twice")
    if taken and taken[-1][1] > run.cursor:
        wrong.append(f"stream position {taken[-1][1]} is beyond the cursor {run.cursor}")
    wrong += [
        f"round {one.number} is {one.phase.value} before round {run.rounds[0].number} is closed"
        for one in run.rounds[1:]
        if one.phase is not RoundPhase.OPEN
    ]
    for round_ in run.rounds:
        ids = [lease.id for lease in round_.leases]
        if len(set(ids)) != len(ids):
            wrong.append(f"round {round_.number} has a lease twice")
        late = round_.phase in (RoundPhase.AGGREGATING, RoundPhase.COMMITTING)
        if late and not any(lease.state is LeaseState.ACCEPTED for lease in round_.leases):
            wrong.append(f"round {round_.number} is {round_.phase.value} without a delta")
    return wrong
