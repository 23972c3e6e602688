"""What a restart makes of a round that was open ahead: it stands only beside what it was opened beside."""

from typing import Any

from services.common.protocol.reasons import said
from services.master.core import policy
from services.master.core.coordinator import Coordinator
from services.master.core.recovery import Saved
from services.master.core.state import Run, RunPhase
from services.tests.story import RUN, Story

CLOSED_ONE = """@1000 join ada
@1000 join bob
@2000 create k_steps=10 batch=50 rounds=5 rounds_in_flight=2
@4000 delta ada
@4100 delta bob
"""  # version 1 is durable, round 2 takes deltas, round 3 is ahead


def played(text: str = CLOSED_ONE) -> Story:
    story = Story()
    story.play(text)
    return story


def restarted(story: Story, *tables: dict[str, Any], **meta: Any) -> Run:
    coordinator = Coordinator(2)
    disk = story.disk
    assert disk.spec is not None
    coordinator.restore(
        Saved(RUN, disk.spec, RunPhase.RUNNING, said(""), 1000, {**disk.meta, **meta}, list(tables), {}), 5_000
    )
    run = coordinator.state.run
    assert run is not None
    return run


def numbers(run: Run) -> list[int]:
    return [round_.number for round_ in run.rounds]


def positions(run: Run) -> list[tuple[int, int]]:
    """Pending or with workers, neighbours joined: with what is durable it is all up to the cursor."""
    return policy.merge_ranges(run.pending + [one for round_ in run.rounds for one in round_.ranges])


def test_both_open_rounds_stand_and_no_position_is_lost_or_given_twice() -> None:
    story = played()
    run = restarted(story, story.disk.tables[2], story.disk.tables[3])
    assert numbers(run) == [2, 3]
    assert (run.pending, run.cursor, positions(run)) == ([], 3000, [(1000, 3000)])


def test_a_checkpoint_stands_without_the_table_of_the_round_ahead() -> None:
    story = played()
    run = restarted(story)
    assert numbers(run) == []
    assert (run.cursor, positions(run)) == (2000, [(1000, 2000)]), "round 2 was ahead when version 1 was written"
    assert positions(restarted(story, story.disk.tables[2])) == [(1000, 2000)]


def test_a_table_that_was_ahead_of_another_attempt_does_not_stand() -> None:
    story = played()
    run = restarted(story, {**story.disk.tables[2], "attempt": 1})
    assert numbers(run) == []
    assert positions(run) == [(1000, 2000)]


def test_a_table_without_the_round_before_it_does_not_stand() -> None:
    story = played()
    assert numbers(restarted(story, story.disk.tables[3])) == []


def test_a_table_that_was_opened_after_the_version_stands_in_any_later_attempt() -> None:
    story = played(CLOSED_ONE.replace("rounds_in_flight=2", "rounds_in_flight=1"))
    run = restarted(story, {**story.disk.tables[2], "attempt": 4})
    assert (numbers(run), run.attempt, run.cursor) == ([2], 4, 2000)
