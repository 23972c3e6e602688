"""The compose files agree with each other, with the settings and with this version. No engine is needed."""

from typing import Any

import pytest
import yaml

from services import __version__
from services.tests.docs import facts
from services.tests.tidy.containers import environment, resolved
from services.tests.tidy.source import ROOT

ONE, LEADER, OTHER = facts.COMPOSE_FILES
# A default that is not the setting's own, and why: a container's host name says nothing to people.
DIFFERENT = {"MAHE_WORKER_NAME": "worker"}


def services(path: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / path).read_text("utf-8"))["services"]
    for service in found.values():
        service["build"].pop("context")
    return found


@pytest.mark.parametrize("path", facts.COMPOSE_FILES)
def test_what_a_service_is_given_is_a_setting(path: str) -> None:
    known = {name for one in facts.settings() for name in one.names}
    for name, service in services(path).items():
        assert set(environment(service)) <= known, name


def test_defaults_are_those_of_the_settings() -> None:
    defaults = {name: one.default for one in facts.settings() for name in one.names}
    for name, found in facts.compose_defaults().items():
        if name in defaults and name != "MAHE_ADVERTISE":  # the leader's file asks for it with a sentence
            assert set(found) == {DIFFERENT.get(name, defaults[name])}, name
        else:
            assert name in {*facts.OF_COMPOSE, "MAHE_ADVERTISE"}, (
                f"{name} is read by a compose file and explained nowhere"
            )
    assert set(facts.OF_COMPOSE) <= set(facts.compose_defaults())


def test_master_and_page_are_the_same_on_one_machine_and_on_a_leader() -> None:
    one, leader = services(ONE), services(LEADER)
    assert leader["master"]["environment"].pop("MAHE_ADVERTISE").startswith("${MAHE_ADVERTISE:?")
    assert one["master"]["environment"].pop("MAHE_ADVERTISE") == "${MAHE_ADVERTISE:-}"
    assert set(leader) == {"master", "console"}
    assert leader == {name: one[name] for name in leader}


def test_a_worker_elsewhere_differs_in_what_it_may_use_and_how_it_joins() -> None:
    one, other = services(ONE)["worker"], services(OTHER)["worker"]
    differing = {name for name in {*one, *other} if one.get(name) != other.get(name)}
    assert differing == {"scale", "cpus", "mem_limit", "volumes", "environment"}


@pytest.mark.parametrize("path", facts.COMPOSE_FILES)
def test_images_are_of_this_version(path: str) -> None:
    for service in services(path).values():
        assert resolved(service["image"]).endswith(f":{__version__}")
    assert f'image.version="{__version__}"' in (ROOT / "deploy/Dockerfile").read_text("utf-8")
