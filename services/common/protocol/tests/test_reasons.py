"""Reasons: an English sentence for each code, the same after a way through JSON, no error for what is unknown."""

import json

from services.common.protocol.reasons import Reason, because, heard, is_known, read, said, told

LOST = because("OF_WORKER", worker="ada", why=because("SILENT", seconds=15))


def test_a_reason_is_its_sentence_with_the_values_in_it() -> None:
    assert because("FINISHED", rounds=30).text == "finished: all 30 rounds are closed"
    assert LOST.text == f"{LOST}" == "ada nothing heard for 15 s"
    assert because("WORKERS_READY", n=2).text == "2 workers ready"
    assert because("WORKERS_READY", n=1).text == "1 worker ready"
    assert said("the disk is full {n}").text == "the disk is full {n}"


def test_reasons_are_equal_by_code_and_values() -> None:
    assert because("SILENT", seconds=15) == because("SILENT", seconds=15)
    assert because("SILENT", seconds=15) != because("SILENT", seconds=16)
    assert because("OF_WORKER", worker="ada", why=because("SILENT", seconds=15)) == LOST


def test_what_is_told_is_read_again() -> None:
    assert told(None) is None
    assert told(LOST) == {
        "code": "OF_WORKER",
        "values": {"worker": "ada", "why": {"code": "SILENT", "values": {"seconds": 15}}},
    }
    assert read(json.loads(json.dumps(told(LOST))), LOST.text) == LOST


def test_what_is_not_known_here_is_its_text() -> None:
    text = said("as it was said")
    of_later = {"code": "OF_LATER", "values": {}}
    for other in (
        None,
        "SILENT",
        {"code": "SILENT"},
        {"code": "SILENT", "values": {}},
        {"code": "SILENT", "values": {"seconds": None}},
        of_later,
        {"code": "OF_WORKER", "values": {"worker": "ada", "why": of_later}},
    ):
        assert read(other, "as it was said") == text, other
    for number in (float("nan"), float("inf"), 2**53 + 1, 10**5000):
        assert not is_known(because("SILENT", seconds=number))
    assert not is_known(because("SILENT", seconds=1, more=2))
    assert not is_known(Reason("OF_WORKER", {"worker": "ada", "why": Reason("OF_LATER")}))


def test_a_message_is_believed_when_its_reason_makes_its_text() -> None:
    silent = because("SILENT", seconds=15)
    assert heard(silent.text, silent) == silent
    assert heard("nothing heard for 16 s", silent) == said("nothing heard for 16 s")
    assert heard("paused", None) == said("paused")
    assert heard("paused", Reason("OF_LATER")) == said("paused")
