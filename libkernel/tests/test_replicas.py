"""A replica on 64-bit Arm, by qemu, has the digest of one on x86-64 after 50 encoded updates (`make emulated`)."""

import subprocess
import sys
from pathlib import Path

import building
import numpy as np
import pytest
from test_emulated import arm_compiler, emulator

from services.common.kernels import build
from services.common.learning import digest
from services.common.learning.tests import golden

TIME_LIMIT_S = 300

pytestmark = [
    pytest.mark.emulated,
    pytest.mark.timeout(TIME_LIMIT_S),
    pytest.mark.skipif(sys.platform != "linux", reason="qemu's user mode runs on Linux"),
]


@pytest.fixture(scope="module")
def replay(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """replay.c with the kernels, for 64-bit Arm."""
    compiler, program = arm_compiler(), tmp_path_factory.mktemp("replay") / "replay"
    files = [str(path) for path in [*build.sources(), building.TESTS / "replay.c"]]
    build.run_compiler(
        [*compiler.command, *building.check_flags(compiler), "-static", *files, "-o", str(program), "-lm"]
    )
    return program


def replica(program: Path, tier: str, encoding: str, updates: int) -> str:
    """The digest after so many updates, made, encoded, decoded and applied on 64-bit Arm."""
    arrays = [golden.parameters(), *(golden.update_of(i) for i in range(updates))]
    done = subprocess.run(
        [*emulator("aarch64"), str(program), tier, encoding, str(golden.UPDATES_N)],
        input=b"".join(array.tobytes() for array in arrays),
        capture_output=True,
        timeout=TIME_LIMIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return digest(np.frombuffer(done.stdout, np.float32))


@pytest.mark.parametrize("tier", ["scalar", "neon"])
@pytest.mark.parametrize("encoding", golden.DOWN)
def test_it_has_the_digest_of_the_others(replay: Path, encoding: str, tier: str) -> None:
    assert replica(replay, tier, encoding, golden.UPDATES) == golden.read()["replicas"][encoding]


def test_one_update_fewer_gives_another_digest(replay: Path) -> None:
    assert replica(replay, "neon", "int8", golden.UPDATES - 1) != golden.read()["replicas"]["int8"]
