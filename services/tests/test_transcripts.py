"""Every transcript in transcripts/ is played through the real coordinator and must come out as it is written.

`MAHE_REWRITE=1 pytest services/tests/test_transcripts.py` writes them anew; commit only changes that you understand.
"""

import os
from pathlib import Path

import pytest

from services.tests.story import Story

FOLDER = Path(__file__).parent / "transcripts"
TRANSCRIPTS = sorted(FOLDER.glob("*.txt"))


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_transcript(path: Path) -> None:
    written = path.read_text(encoding="utf-8")
    played = Story().play(written)
    if os.environ.get("MAHE_REWRITE") == "1":
        path.write_text(played, encoding="utf-8")
        return
    assert played == written


def test_a_wrong_transcript_is_noticed() -> None:
    path = FOLDER / "01_two_workers.txt"
    written = path.read_text(encoding="utf-8").replace("750 samples", "751 samples")
    assert Story().play(written) != written
