"""Reasons everywhere: each that is made has its sentence and just its values, each sentence is in both tables."""

import ast
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from services.common.protocol.reasons import parameters
from services.common.protocol.sentences import SENTENCES

SERVICES = Path(__file__).parents[1]
I18N = SERVICES / "console" / "static" / "i18n"


def table(language: str) -> dict[str, str]:
    """The page's sentences of reasons, by code."""
    found = json.loads((I18N / f"{language}.json").read_text("utf-8"))
    return {key.removeprefix("reason."): text for key, text in found.items() if key.startswith("reason.")}


def made() -> Iterator[tuple[str, str, set[str] | None]]:
    """(place, code, names of the values or None where they are not written out) of each reason made in the code."""
    for path in sorted(SERVICES.rglob("*.py")):
        if "tests" in path.parts:
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or not node.args:
                continue
            code = node.args[0]
            if node.func.id not in ("because", "Reason") or not isinstance(code, ast.Constant):
                continue
            names = {str(one.arg) for one in node.keywords} if node.func.id == "because" else None
            yield f"{path.relative_to(SERVICES)}:{node.lineno}", str(code.value), names


def test_each_reason_that_is_made_has_its_sentence_and_its_values() -> None:
    found = list(made())
    assert len(found) > 60
    for place, code, names in found:
        assert code in SENTENCES, (place, code)
        assert names is None or names == parameters(SENTENCES[code]), (place, code, names)


def test_each_code_is_made_somewhere() -> None:
    written = "".join(
        path.read_text("utf-8")
        for path in SERVICES.rglob("*.py")
        if "tests" not in path.parts and path.name != "sentences.py"
    )
    assert [code for code in SENTENCES if "." not in code and f'"{code}"' not in written] == []


def test_the_page_has_the_english_sentences_as_they_are() -> None:
    assert table("en") == SENTENCES


@pytest.mark.parametrize("language", ["en", "zh-CN"])
def test_the_page_has_a_sentence_for_each_code_with_the_same_values(language: str) -> None:
    sentences = table(language)
    assert [code for code in SENTENCES if "." not in code and code not in sentences] == []
    for code, sentence in sentences.items():
        plain = parameters(SENTENCES[code.removesuffix(".one")])
        if code.endswith(".one"):
            assert parameters(sentence) | {"n"} == plain | {"n"}, code
        else:
            assert parameters(sentence) == plain, code
