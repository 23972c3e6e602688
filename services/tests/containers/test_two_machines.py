"""Two machines, each a compose project on a network of its own: joined by the published port and a join string only."""

import time
from collections.abc import Iterator

import pytest

from services.common.host.machine import addresses
from services.tests.containers.stack import Stack, docker
from services.tests.system.cluster import finished, linked

pytestmark = [pytest.mark.containers, pytest.mark.timeout(300)]

EXPIRES_S = 60  # the shortest that the API makes


class Leader(Stack):
    """The machine that leads, reached at this PC's own address."""

    def __init__(self) -> None:
        super().__init__(
            "deploy/compose.master.yaml", MAHE_ADVERTISE=next(one for one in addresses() if ":" not in one)
        )

    def join_string(self, **wanted: int) -> str:
        """A new one, exactly as the page shows it."""
        return str(self.api.post("/api/v1/join-strings", wanted)["join_string"])


def other(join_string: str, name: str = "pc2") -> Stack:
    return Stack("deploy/compose.worker.yaml", MAHE_JOIN=join_string, MAHE_WORKER_NAME=name)


@pytest.fixture(scope="module")
def leader() -> Iterator[Leader]:
    with Leader() as stack:
        stack.up()
        yield stack


@pytest.fixture(scope="module")
def expiring(leader: Leader) -> tuple[str, float]:
    """A join string, and when it will have expired."""
    return leader.join_string(expires_s=EXPIRES_S), time.monotonic() + EXPIRES_S + 1


def test_they_train_together(leader: Leader, expiring: tuple[str, float]) -> None:
    with other(leader.join_string()) as first, other(leader.join_string(), "pc3") as second:
        first.up()
        second.up()
        leader.until(lambda state: sorted(linked(state)) == ["pc2", "pc3"], "both to join")
        networks = [
            set(one["NetworkSettings"]["Networks"]) for stack in (leader, first, second) for one in stack.containers()
        ]
        assert len(networks) == 4
        assert not networks[0] & (networks[2] | networks[3])
        leader.run(dataset="digits", rounds=8, k_steps=40, min_workers=2)
        state = leader.until(finished, "the run to finish")
        assert state["run"]["last_eval"]["accuracy"] >= 0.9
        leader.until(lambda state: [one["accepted_rounds"] for one in state["workers"]] == [8, 8], "both to be counted")

        first.env["MAHE_JOIN"] = ""  # worthless after enrolment, so not needed any more
        first.up("--force-recreate")
        assert len(leader.api.get("/api/v1/workers")["items"]) == 2


def test_a_revoked_one_is_refused(leader: Leader) -> None:
    text = leader.join_string()
    number = max(int(item["id"]) for item in leader.api.get("/api/v1/join-strings")["items"])
    leader.api._ask("DELETE", f"/api/v1/join-strings/{number}", None)
    with other(text) as stack:
        stack.compose("up", "--detach")
        stack.until_log("worker", "this master does not know the key: the join string is wrong, revoked, or")


def test_that_of_another_master_is_refused(leader: Leader) -> None:
    with Stack(
        "deploy/compose.master.yaml", MAHE_ADVERTISE=f"{leader.env['MAHE_ADVERTISE']}:{leader.port}"
    ) as stranger:
        stranger.up()
        text = str(stranger.api.post("/api/v1/join-strings", {})["join_string"])
    with other(text) as stack:
        stack.compose("up", "--detach")
        stack.until_log("worker", "this master has another key than the join string says")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("mahe1.abcdefgh", "the join string is damaged or cut short; copy the whole line again"),
        ("hello", "a join string begins with 'mahe1.', this begins with 'hello'; copy it again"),
        ("", "this PC has no join string: copy one from the master's page and give it as MAHE_JOIN"),
    ],
)
def test_what_is_no_join_string_is_named(text: str, sentence: str) -> None:
    with other(text) as stack:
        stack.compose("up", "--detach")
        stack.until_log("worker", sentence)


def test_a_removed_worker_stays_parked_when_the_engine_starts_it_again(leader: Leader) -> None:
    sentence = "removed by the operator; this PC stays away until it is started with a new join string"
    with other(leader.join_string(), "pc4") as stack:
        stack.up()
        state = leader.until(lambda state: "pc4" in linked(state), "it to join")
        worker = next(one["id"] for one in state["workers"] if one["name"] == "pc4")
        leader.api._ask("DELETE", f"/api/v1/workers/{worker}", None)
        stack.until_log("worker", sentence)
        for _ in range(2):
            docker("restart", str(stack.containers()[0]["Id"]))
            stack.up()
        assert stack.log("worker").count(sentence) >= 3
        assert "pc4" not in linked(leader.api.snapshot())
        stack.env["MAHE_JOIN"] = leader.join_string()
        stack.up()
        leader.until(lambda state: "pc4" in linked(state), "it to join with a new join string")


def test_an_expired_one_is_refused(leader: Leader, expiring: tuple[str, float]) -> None:
    text, at = expiring
    time.sleep(max(0.0, at - time.monotonic()))
    with other(text) as stack:
        stack.compose("up", "--detach")
        stack.until_log("worker", "this join string has expired; get a new one from the page")
