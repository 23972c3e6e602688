"""libkernel on CPUs that are not here, by qemu's user mode: 64-bit Arm, and x86-64 without AVX (`make emulated`).

Needs qemu-user-static, and gcc-aarch64-linux-gnu or the package ziglang. Speed means nothing there.
"""

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import building
import pytest
from mutant import Mutant, Outcome, Workshop, by_rule, written
from test_mutants import expect_noticed

from services.common.kernels import build

TIME_LIMIT_S = 900
REPOSITORY = Path(__file__).resolve().parents[2]
NEON_MUTANTS = [*written("aarch64"), *by_rule("aarch64")]
CHECKS = [name for name in building.CHECKS if name != "huge"]  # 2^29 elements take minutes here

pytestmark = [
    pytest.mark.emulated,
    pytest.mark.timeout(TIME_LIMIT_S),
    pytest.mark.skipif(sys.platform != "linux", reason="qemu's user mode runs on Linux"),
]
needs_x86_64 = pytest.mark.skipif(
    building.this_machine() != "x86_64", reason="runs this machine's own programs on an older CPU"
)

# What a process says of itself: the tier, whether it refuses avx2, and that every module can be imported.
PROGRAM = """
import importlib, pkgutil
import services
from services.common.errors import KernelError
from services.common.kernels import kernel_impl
from services.common.kernels.library import library, set_tier

print("tier", kernel_impl())
try:
    set_tier(library(), "avx2")
except KernelError as error:
    print("refused:", error.sentence)
names = [found.name for found in pkgutil.walk_packages(services.__path__, "services.") if ".tests" not in found.name]
for name in names:
    importlib.import_module(name)
print("imported", *names)
"""


def emulator(machine: str, cpu: str = "") -> list[str]:
    """The command that runs a program on another CPU."""
    for name in (f"qemu-{machine}-static", f"qemu-{machine}"):
        if shutil.which(name):
            return [name, *(["-cpu", cpu] if cpu else [])]
    pytest.skip(f"needs qemu-{machine}: apt install qemu-user-static")


def arm_compiler() -> build.Compiler:
    """A compiler for Linux on 64-bit Arm whose programs need no files of that system."""
    path = shutil.which("aarch64-linux-gnu-gcc")
    if path:
        return build.Compiler("gcc", (path,))
    found = building.zig("aarch64-linux-musl")
    if not found:
        pytest.skip("needs a compiler for 64-bit Arm: apt install gcc-aarch64-linux-gnu")
    return found[0]


@pytest.fixture(scope="module")
def arm(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    return Workshop(arm_compiler(), tmp_path_factory.mktemp("arm"), "-static", runner=emulator("aarch64"))


@pytest.fixture(scope="module")
def neon_outcomes(arm: Workshop) -> dict[str, Outcome | Exception]:
    return arm.outcomes(NEON_MUTANTS)


@pytest.fixture(scope="module")
def native(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    """The check program of this machine; the emulator comes with each run."""
    return Workshop(building.working_compilers()[0], tmp_path_factory.mktemp("native"))


def checked(program: Path, runner: list[str], tiers: tuple[str, ...], names: list[str]) -> str:
    """Runs the checks; what they printed, after looking that each of them passed on each of those tiers."""
    done = building.run_check(program, "1", "all", *names, runner=runner, limit_s=TIME_LIMIT_S)
    assert done.returncode == 0, done.stderr
    for tier in tiers:
        for name in set(names) - set(building.CHECKS_FOR_ALL):
            assert f"ok {tier} {name}\n" in done.stdout
    return done.stdout


def test_every_kernel_on_64_bit_arm(arm: Workshop) -> None:
    said = checked(arm.healthy, list(arm.runner), ("scalar", "neon"), [*building.CHECKS_FOR_ALL, *CHECKS])
    assert "in use: neon; this CPU offers: asimd\n" in said


@pytest.mark.parametrize("mutant", NEON_MUTANTS, ids=lambda mutant: mutant.name)
def test_the_check_notices_on_64_bit_arm(
    mutant: Mutant, arm: Workshop, neon_outcomes: dict[str, Outcome | Exception]
) -> None:
    expect_noticed(mutant, arm, neon_outcomes[mutant.name])


@needs_x86_64
@pytest.mark.parametrize(
    ("cpu", "offers"),
    [
        ("Nehalem", "sse2"),
        ("Haswell,-avx2", "sse2 avx ymm"),
        ("Haswell,-avx", "sse2 avx2"),
        ("Haswell,-xsave", "sse2 avx avx2"),
    ],
)
def test_no_avx2_means_plain_c(native: Workshop, cpu: str, offers: str) -> None:
    names = [*building.CHECKS_FOR_ALL, *(CHECKS if cpu == "Nehalem" else ["reduce_add"])]
    said = checked(native.healthy, emulator("x86_64", cpu), ("scalar",), names)
    assert f"in use: scalar; this CPU offers: {offers}\n" in said
    assert "-- avx2: this CPU cannot run it\n" in said  # that it is also refused when asked for is part of "tiers"


@needs_x86_64
def test_avx2_is_found_where_it_is(native: Workshop) -> None:
    said = checked(native.healthy, emulator("x86_64", "Haswell"), ("avx2",), ["tiers", "reduce_add", "stats"])
    assert "in use: avx2; this CPU offers: sse2 avx avx2 ymm\n" in said


@needs_x86_64
def test_a_wrong_choice_is_noticed(native: Workshop) -> None:
    always = Mutant(
        "takes every CPU for one with AVX2",
        "cpu.c",
        'if (strcmp(table->name, "avx2") == 0)',
        ("return has_avx2();",),
        ("return 1 + 0 * has_avx2();",),
        "avx2",
        "reduce_add",
        "CRASHED",
    )
    old = native.under(emulator("x86_64", "Nehalem"))
    expect_noticed(always, old, old.outcome(always))


@needs_x86_64
@pytest.mark.skipif(platform.python_implementation() != "CPython", reason="the packages come as wheels for CPython")
def test_all_of_mahe_runs_without_avx() -> None:
    build.build(build.find_compilers())
    said = python(PROGRAM)
    assert "tier scalar\n" in said
    assert "refused: " in said
    for name in ("master", "worker", "console"):
        assert f"services.{name}.__main__" in said
    assert "the bits of NumPy" in python("from services.common.kernels import selftest; selftest.main()")


@needs_x86_64
def test_asking_for_avx2_without_avx_is_an_error() -> None:
    build.build(build.find_compilers())
    program = "from services.common.kernels import kernel_impl; kernel_impl()"
    done = run_python(program, MAHE_KERNEL="avx2")
    assert done.returncode == 1
    assert "KernelError" in done.stderr


def python(program: str) -> str:
    done = run_python(program)
    assert done.returncode == 0, done.stderr
    return done.stdout


def run_python(program: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """This Python on a CPU of 2008: SSE4.2, no AVX."""
    unset = {"MAHE_KERNEL", "PYTHONPATH"}
    env = {name: value for name, value in os.environ.items() if name not in unset}
    command = [*emulator("x86_64", "Nehalem"), sys.executable, "-c", program]
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=TIME_LIMIT_S,
        check=False,
        cwd=REPOSITORY,
        env=env | {"PYTHONPATH": str(REPOSITORY)} | variables,
    )
