"""The support bundle: what is in it, and that no secret is, wherever somebody may have put one."""

import json
import re
from pathlib import Path

import httpx
import pytest

from services.common.host.machine import home
from services.console.app import VERSION
from services.console.control_file import read_place
from services.console.support import HIDDEN, cleaner
from services.console.tests import scripted_cluster as cluster
from services.console.tests.conftest import RunningConsole, wait_until
from services.console.tests.scripted_master import SECRET, ScriptedMaster

BUNDLE = "/api/v1/support-bundle"
BASE64 = "Zm9vYmFyLWJhei1xdXV4LXRva2VuLTEyMzQ1Njc4OTA"


def test_it_holds_state_link_lines_settings_and_versions(
    live: httpx.Client, master: ScriptedMaster, console: RunningConsole
) -> None:
    master.say("ROUND", "round=13 workers=4", cluster.history_row(13))
    wait_until(lambda: live.get("/api/v1/state").json()["seq"] == 1)
    response = live.get(BUNDLE)
    assert response.status_code == 200
    name = re.search(r'^attachment; filename="(.*)"$', response.headers["content-disposition"])
    assert name is not None and re.fullmatch(r"mahe-support-\d{8}-\d{6}\.json", name[1])
    bundle = response.json()
    assert bundle["snapshot"]["run"]["spec"]["k_steps"] == 50
    assert bundle["snapshot"]["history"][-1]["round"] == 13
    assert [one["text"] for one in bundle["events"]] == ["round=13 workers=4"]
    assert bundle["events"][0]["data"]["eval_loss"] == cluster.history_row(13)["eval_loss"]
    assert bundle["link"]["state"] == "live"
    assert bundle["settings"]["bind"] == "127.0.0.1"
    assert bundle["versions"]["mahe"] == VERSION
    assert {"python", "system", "libzmq", "fastapi"} <= bundle["versions"].keys()


def test_it_is_there_before_the_master_is(client: httpx.Client) -> None:
    bundle = client.get(BUNDLE).json()
    assert (bundle["snapshot"], bundle["id"], bundle["events"]) == (None, None, [])
    assert bundle["link"]["state"] == "connecting"
    assert "control.json" in bundle["link"]["reason"]


def test_no_secret_is_in_it_wherever_one_was_put(
    live: httpx.Client,
    master: ScriptedMaster,
    console: RunningConsole,
    control_dir: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    place = read_place(control_dir)
    secrets = [console.token, SECRET.hex(), SECRET.hex().upper(), cluster.JOIN_STRING, cluster.JOIN_STRING.upper()]
    secrets += [place.server_key.decode(), place.secret_key.decode(), BASE64]
    monkeypatch.setenv("MAHE_JOIN", cluster.JOIN_STRING)
    monkeypatch.setenv("MAHE_WORKER_PASSWORD", "swordfish")
    for secret in secrets:
        hostile = f'name "{secret}" <{secret}> x={secret}&y=\n{secret}\u202e'
        master.say("WORKER", hostile, cluster.worker(1, hostile, reason=hostile, **{hostile: {"deep": [[hostile]]}}))
    master.say("WARN", "password: swordfish Authorization: Bearer swordfish", {"api_key": "swordfish"})
    master.say("AUTH", "refused", {"refused": {"count": 1, "last": "swordfish", "join_string": ["swordfish"]}})
    wait_until(lambda: live.get("/api/v1/state").json()["seq"] == len(secrets) + 2)
    text = live.get(BUNDLE).text.replace('"last":"swordfish"', "")  # that place alone is not one for secrets
    assert HIDDEN in text
    for secret in [*secrets, "swordfish"]:
        assert secret not in text
        assert json.dumps(secret)[1:-1] not in text
    assert "lab-pc-02" in text, "what is no secret stays"


def test_user_folders_are_shortened(live: httpx.Client, master: ScriptedMaster, control_dir: Path) -> None:
    lines = {
        "disk full: /home/ann.lee/mahe/run-7": "disk full: ~/mahe/run-7",
        "/Users/ann/Library: no such folder": "~/Library: no such folder",
        r"C:\Users\Ann Lee\AppData\mahe is full": r"~\AppData\mahe is full",
        f"{Path.home()}/x and {home()}": None,
        "/var/lib/mahe/master stays": "/var/lib/mahe/master stays",
    }
    for line in lines:
        master.say("ERROR", line)
    wait_until(lambda: live.get("/api/v1/state").json()["seq"] == len(lines))
    texts = [event["text"] for event in live.get(BUNDLE).json()["events"]]
    assert [text for text, wanted in zip(texts, lines.values(), strict=True) if wanted not in (None, text)] == []
    assert str(Path.home()) not in texts[3].replace("~", "")
    assert texts[3].startswith("~/x and ")


@pytest.mark.parametrize(
    ("value", "clean"),
    [
        ({"token": "short"}, {"token": HIDDEN}),
        ({"tokens_seen": 3, "kernel": "avx2", "k_steps": 50}, {"tokens_seen": 3, "kernel": "avx2", "k_steps": 50}),
        ({"join": None, "MAHE_JOIN_FILE": "/run/join"}, {"join": None, "MAHE_JOIN_FILE": "/run/join"}),
        (["a-run-name-of-ordinary-length", 1.5, True], ["a-run-name-of-ordinary-length", 1.5, True]),
        ("round=13 workers=4 eval_loss=0.2816", "round=13 workers=4 eval_loss=0.2816"),
        ("/srv/ann/mahe", "~/mahe"),
        ("/srv/annabel/mahe", "/srv/annabel/mahe"),
        ("12s3cr3t34", f"12{HIDDEN}34"),
    ],
)
def test_cleaning_hides_secrets_and_leaves_the_rest(value: object, clean: object) -> None:
    assert cleaner(["s3cr3t", ""], Path("/srv/ann"))(value) == clean
