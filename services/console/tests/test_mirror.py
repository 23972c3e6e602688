"""The mirror: events change the state, and are kept for whoever comes back."""

from services.common.protocol.control import Event
from services.console.mirror import EVENTS_KEPT_MAX, Mirror
from services.console.tests import scripted_cluster as cluster


def event(seq: int, kind: str, data: dict[str, object] | None = None, *, term: int = 1) -> Event:
    return Event(term=term, seq=seq, time_ms=0, kind=kind, text=f"line {seq}", data=data or {})


def mirror(seq: int = 0) -> Mirror:
    made = Mirror()
    made.replace(1, seq, cluster.state())
    return made


def history(made: Mirror) -> list[dict[str, object]]:
    assert made.snapshot is not None
    rows: list[dict[str, object]] = made.snapshot["history"]
    return rows


def workers(made: Mirror) -> dict[str, dict[str, object]]:
    assert made.snapshot is not None
    return {worker["id"]: worker for worker in made.snapshot["workers"]}


def test_a_round_is_added_and_completed_by_its_evaluation() -> None:
    made = mirror()
    made.apply(event(1, "ROUND", cluster.history_row(13, evaluated=False)))
    made.apply(event(2, "ROUND", cluster.history_row(14, evaluated=False)))
    made.apply(event(3, "ROUND", {"round": 13, "eval_loss": 0.5}))
    assert [row["round"] for row in history(made)] == list(range(1, 15))
    assert history(made)[12]["eval_loss"] == 0.5
    assert history(made)[12]["samples"] == 6400


def test_another_run_begins_with_an_empty_history() -> None:
    made = mirror()
    made.apply(event(1, "RUN", cluster.run(13)))
    assert len(history(made)) == 12
    made.apply(event(2, "RUN", {**cluster.run(0), "id": "run-8"}))
    assert history(made) == []


def test_the_queue_is_replaced_as_a_whole() -> None:
    made = mirror()
    for waiting in ([{"id": "run-8", "position": 1}], []):
        made.apply(event(made.seq + 1, "QUEUE", {"queue": waiting}))
        assert made.snapshot is not None
        assert made.snapshot["queue"] == waiting


def test_a_worker_comes_changes_and_goes() -> None:
    made = mirror()
    made.apply(event(1, "WORKER", cluster.worker(0, "new")))
    assert list(workers(made)) == ["w0", "w1", "w2", "w3", "w4"]
    made.apply(event(2, "PROGRESS", {"workers": [{"id": "w0", "step": 49}, {"id": "unknown", "step": 1}]}))
    assert workers(made)["w0"]["step"] == 49
    assert workers(made)["w0"]["name"] == "new"
    made.apply(event(3, "WORKER", {"id": "w0", "gone": True}))
    assert list(workers(made)) == ["w1", "w2", "w3", "w4"]


def test_an_old_event_or_one_of_another_term_changes_nothing() -> None:
    made = mirror(seq=5)
    assert not made.apply(event(5, "WORKER", {"id": "w1", "gone": True}))
    assert not made.apply(event(6, "WORKER", {"id": "w1", "gone": True}, term=2))
    assert "w1" in workers(made)
    assert made.id == "1:5"


def test_events_after_an_id() -> None:
    made = mirror()
    for seq in range(1, 6):
        made.apply(event(seq, "INFO"))
    assert [one.seq for one in made.after(1, 2) or []] == [3, 4, 5]
    assert made.after(1, 5) == []
    assert made.after(2, 2) is None
    assert made.after(1, 6) is None


def test_what_fell_out_of_the_ring_cannot_be_resumed() -> None:
    made = mirror()
    for seq in range(1, EVENTS_KEPT_MAX + 3):
        made.apply(event(seq, "INFO"))
    assert made.after(1, 1) is None
    assert len(made.after(1, 2) or []) == EVENTS_KEPT_MAX


def test_a_snapshot_that_skips_events_drops_the_ring() -> None:
    made = mirror()
    made.apply(event(1, "INFO"))
    made.replace(1, 1, cluster.state())
    assert made.after(1, 0) is not None
    made.replace(1, 9, cluster.state())
    assert made.after(1, 0) is None
    assert made.after(1, 9) == []


def test_an_event_without_a_text_is_no_log_line() -> None:
    made = mirror()
    made.apply(event(1, "INFO"))
    made.apply(event(2, "RUN", cluster.run(12)).model_copy(update={"text": ""}))
    assert [one.seq for one in made.recent()] == [1]
