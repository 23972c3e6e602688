"""The API's description: committed, so that every change of it is seen, and complete, so that programs can rely on it.

`MAHE_REWRITE=1 pytest services/tests/test_openapi.py` writes docs/openapi.json anew.
"""

import copy
import os
import re
from collections.abc import Iterator
from typing import Any

import pytest

from services.console.openapi import TAGS
from services.console.problems import MEDIA_TYPE, ProblemBody
from services.tests.docs import facts
from services.tests.tidy.source import ROOT

FILE = ROOT / "docs" / "openapi.json"
SCHEMAS = "#/components/schemas/"
BARE = {"RunSpec", "RunRequest", "Preset", "DatasetCard", "InitCheck", "SupportBundle"}  # models, values … are data
FREE = {"/healthz", "/readyz", "/metrics"}  # of the token


def operations(schema: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """(method and path, path, operation)"""
    for path, methods in schema["paths"].items():
        for method, operation in methods.items():
            yield f"{method.upper()} {path}", path, operation


def faults(schema: dict[str, Any]) -> list[str]:
    """What a program that reads the description would miss."""
    found = []
    seen: set[str] = set()
    for name, path, operation in operations(schema):
        number = operation["operationId"]
        if not re.fullmatch(r"[a-z]+([A-Z][a-z]+)+", number) or number in seen:
            found.append(f"{name}: the operation id {number} is not one of ours, or not its own")
        seen.add(number)
        found += [f"{name}: no {part}" for part in ("summary", "description", "tags") if not operation.get(part)]
        found += [f"{name}: the tag {tag} is not explained" for tag in operation["tags"] if tag not in _tags()]
        if ("security" in operation) == (path in FREE):
            found.append(f"{name}: with a token, or without")
        for status, answer in operation["responses"].items():
            found += [f"{name}: {status}: {fault}" for fault in _faults_of(status, answer)]
    for name, one in schema["components"]["schemas"].items():
        if name not in BARE:
            fields = one.get("properties", {})
            found += [f"{name}.{field} may be anything" for field, facts_ in fields.items() if _is_bare(facts_)]
    return found


def _tags() -> set[str]:
    return {tag["name"] for tag in TAGS}


def _is_bare(schema: dict[str, Any]) -> bool:
    anything = schema.get("type") in (None, "object") and schema.get("additionalProperties") in (None, True)
    return anything and not set(schema) - {"title", "description", "default", "additionalProperties", "type"}


def _faults_of(status: str, answer: dict[str, Any]) -> Iterator[str]:
    if not re.fullmatch(r"[2345]\d\d", status):
        yield "not a status"
    if not answer["description"] or not answer["content"]:
        yield "says nothing"
    for media_type, content in answer["content"].items():
        schema = content["schema"]
        if media_type == MEDIA_TYPE and schema != {"$ref": f"{SCHEMAS}{ProblemBody.__name__}"}:
            yield "a problem of another shape"
        if media_type == "application/json" and "$ref" not in schema and "anyOf" not in schema:
            yield "no model"
        if status >= "400" and media_type != MEDIA_TYPE and "Readiness" not in str(schema):
            yield "an error that is no problem"


def dangling(node: Any, schema: dict[str, Any]) -> Iterator[str]:
    """References that lead nowhere."""
    if isinstance(node, dict):
        reference = node.get("$ref")
        if isinstance(reference, str) and reference.removeprefix(SCHEMAS) not in schema["components"]["schemas"]:
            yield reference
        for one in node.values():
            yield from dangling(one, schema)
    elif isinstance(node, list):
        for one in node:
            yield from dangling(one, schema)


def test_the_committed_description_is_that_of_the_application() -> None:
    if os.environ.get("MAHE_REWRITE") == "1":
        FILE.write_text(facts.openapi_file(), "utf-8")
    assert FILE.read_text("utf-8") == facts.openapi_file(), (
        "the API is not as docs/openapi.json has it: if that is meant, run this test with MAHE_REWRITE=1 and commit it"
    )


def test_the_description_is_complete() -> None:
    assert faults(facts.openapi()) == []
    assert list(dangling(facts.openapi(), facts.openapi())) == []


@pytest.mark.parametrize(
    "where, value",
    [
        (("paths", "/healthz", "get", "operationId"), "get_healthz_get"),
        (("paths", "/healthz", "get", "operationId"), "listRuns"),
        (("paths", "/healthz", "get", "summary"), ""),
        (("paths", "/healthz", "get", "tags"), ["default"]),
        (("paths", "/healthz", "get", "security"), [{"token": []}]),
        (("paths", "/healthz", "get", "responses", "default"), {"description": "x", "content": {}}),
        (("paths", "/api/v1/runs", "get", "responses", "200", "content", "application/json", "schema"), {}),
        (("paths", "/api/v1/runs", "get", "responses", "422", "content", MEDIA_TYPE, "schema"), {}),
        (("components", "schemas", "State", "properties", "snapshot"), {"type": "object"}),
    ],
)
def test_faults_are_found(where: tuple[str, ...], value: Any) -> None:
    schema = copy.deepcopy(facts.openapi())
    node = schema
    for name in where[:-1]:
        node = node[name]
    node[where[-1]] = value
    assert faults(schema)


def test_a_lost_model_is_found() -> None:
    schema = copy.deepcopy(facts.openapi())
    del schema["components"]["schemas"]["ProblemBody"]
    assert list(dangling(schema, schema))
