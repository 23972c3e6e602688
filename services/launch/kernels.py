"""`mahe kernels`: which numeric kernels are in use, whether they are right, and building them.

All of it in other processes, as this floor loads none.
"""

import os
import subprocess
import sys

from services.launch.lines import say, say_error
from services.launch.processes import python_env

ASK_S = 60.0
_ASK = "from services.common.kernels import kernel_impl; print(kernel_impl())"
_SELFTEST = "services.common.kernels.selftest"


def run_kernels(*, build: bool, compiler: str | None, no_asm: bool) -> int:
    """Build if asked to, then print what is in use and the verdict of the self-test; 1 if there is none or it fails."""
    if build or compiler or no_asm:
        options = [*(["--compiler", compiler] if compiler else []), *(["--no-asm"] if no_asm else [])]
        code = subprocess.run(
            [sys.executable, "-m", "services.common.kernels.build", *options],
            env=os.environ | python_env(),
            check=False,
        ).returncode
        if code != 0:
            return 1
    try:
        answer = _run_python("-m", _SELFTEST)
    except subprocess.TimeoutExpired:
        say_error(f"the self-test of the kernels gave no answer within {ASK_S:.0f} s: run `make kernels`")
        return 1
    for line in answer.stdout.splitlines():
        say("KERNELS", line)
    if answer.returncode != 0:
        ended = f"the self-test of the kernels ended with code {answer.returncode}: set MAHE_KERNEL=scalar"
        say_error((answer.stderr.strip().splitlines() or [ended])[-1])
        return 1
    return 0


def kernel_impl() -> tuple[bool, str]:
    """(True, the implementation in use), or (False, why there is none and what to do)."""
    ok, text = ask_python(_ASK)
    return ok, text if ok else text.rpartition("KernelError: ")[2]


def ask_python(program: str) -> tuple[bool, str]:
    """Run a few lines in a Python of their own: (it went well, its output or the last line of its error)."""
    try:
        answer = _run_python("-c", program)
    except subprocess.TimeoutExpired:
        return False, f"no answer within {ASK_S:.0f} s"
    if answer.returncode == 0:
        return True, answer.stdout.strip()
    return False, (answer.stderr.strip().splitlines() or [f"ended with code {answer.returncode}"])[-1]


def _run_python(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *words],
        capture_output=True,
        text=True,
        timeout=ASK_S,
        env=os.environ | python_env(),
        check=False,
    )
