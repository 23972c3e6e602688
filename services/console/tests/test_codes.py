"""The codes of errors: every one that can be answered is known, and the page has a sentence for it in each language."""

import pytest

from services.console.codes import CODES
from services.console.problems import TITLES
from services.tests.docs.codes import TEXT, TEXT_ZH, find, in_source, sentences
from services.tests.tidy.source import Source

OF_THE_PAGE = {"OFFLINE"}  # there is no answer that could have a code
NOT_ANSWERED = {
    "it is no error": {"OK"},
    "workers are told": {
        *("AUTH_EXPIRED", "AUTH_KEY", "AUTH_RATE_LIMITED", "AUTH_REVOKED", "AUTH_USED_UP", "CLUSTER_FULL"),
        *("DELTA_CHUNK", "DELTA_MALFORMED", "DELTA_NOT_FINITE", "ENROL_ONLY", "JOIN_STRING", "PROTO_VERSION"),
        *("REMOVED", "WORKER_TWICE"),
    },
    "a service does not start": {
        *("BIND_ADDRESS", "BIND_FAILED", "BIND_NEEDS_HOSTS", "CONSOLE_RUNNING", "DATA_DIR_LOCKED"),
        *("DATA_DIR_UNUSABLE", "FILE_LIMIT", "JOURNAL", "KERNEL", "NO_FILE_LOCKS", "PORT_IN_USE", "SETTINGS"),
        "ZEROMQ_TOO_OLD",
    },
    "its sentence is in BAD_SPEC, or the reason of a run": {"BAD_SPECIFICATION", "DATASET", "DATASET_DIGEST"},
    "its sentence is the reason of a run": {"CHECKPOINT_NOT_READ", "DATA_BLOB"},
    "no route takes rows yet": {"DATA_ROW"},
    "the connection is cut": {"BROKEN_TRANSFER"},
    "the console sends no payload": {"FRAME_CRC"},
    "it is not known to which command it belongs": {"HEADER_NOT_JSON"},
    "every error that is raised has one of its own": {"BAD_MESSAGE", "ERROR"},
}


def test_every_code_in_the_source_is_known_or_is_never_answered() -> None:
    """A new one goes into codes.py and both tables of the page, or, with the reason, into NOT_ANSWERED."""
    never = set[str]().union(*NOT_ANSWERED.values())
    found = in_source()
    assert {code: path for code, path in found.items() if code not in CODES and code not in never} == {}
    assert (set(CODES) | never) - set(found) == set(), "nothing answers these any more"
    assert set(CODES) & never == set()


def test_every_code_has_a_status_with_a_title() -> None:
    assert {code: known.status for code, known in CODES.items() if known.status not in TITLES} == {}
    assert {known.status for known in CODES.values()} == set(TITLES)


def test_the_page_says_in_english_what_is_meant_here() -> None:
    meanings = {code: known.meaning for code, known in CODES.items()}
    assert {code: said for code, said in sentences(TEXT).items() if code not in OF_THE_PAGE} == meanings


def test_the_page_says_it_in_chinese_too() -> None:
    said = sentences(TEXT_ZH)
    assert set(said) == set(CODES) | OF_THE_PAGE
    assert [code for code, text in said.items() if text.isascii()] == []


@pytest.mark.parametrize(
    "line",
    [
        'raise Problem("no", code="NEW_CODE")',
        'raise Problem("no", code="NEW_CODE" if late else "OTHER")',
        'NEW = "NEW_CODE"\nraise Problem("no", code=NEW)',
        'class Bad(Exception):\n    code = "NEW_CODE"',
        'code = {404: "NEW_CODE"}.get(status, "HTTP")',
        'def refuse(text, *, code="NEW_CODE"): ...',
        'ctx.answer(event.cmd_id, "NEW_CODE", text)',
        'faults = [Fault("lr", "NEW_CODE", text)]',
    ],
)
def test_a_new_code_is_found(line: str) -> None:
    assert find([Source("services/console/new.py", line)])["NEW_CODE"] == "services/console/new.py"
