"""Building and opening the library: every refusal is a sentence that names the next step."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from services.common.errors import KernelError
from services.common.kernels import build
from services.common.kernels.library import ABI_VERSION, library, open_library, set_tier, usable_tiers
from services.common.kernels.paths import HEADER_NAME, LIB_FOLDER, LIBRARY_NAME, SOURCE_FOLDER, STAMP_NAME

ROOT = SOURCE_FOLDER.parent


def run_python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=50,
    )


def edited_sources(folder: Path, old: str, new: str) -> Path:
    """A copy of libkernel whose header reads `new` for `old`."""
    root = folder / "libkernel"
    for part in ("include", "src"):
        shutil.copytree(SOURCE_FOLDER / part, root / part)
    header = root / "include" / HEADER_NAME
    text = header.read_text(encoding="utf-8")
    assert old in text
    header.write_text(text.replace(old, new), encoding="utf-8")
    return root


def test_a_missing_library_says_what_to_run(tmp_path: Path) -> None:
    with pytest.raises(KernelError, match=f"{LIBRARY_NAME} is missing: run `make kernels`"):
        open_library(tmp_path)


def test_a_file_that_is_no_library(tmp_path: Path) -> None:
    (tmp_path / LIBRARY_NAME).write_bytes(b"not a library")
    with pytest.raises(KernelError, match=r"cannot be loaded: .*: run `make kernels`"):
        open_library(tmp_path)


def test_a_header_without_the_block(tmp_path: Path) -> None:
    shutil.copy(LIB_FOLDER / LIBRARY_NAME, tmp_path)
    (tmp_path / HEADER_NAME).write_text("int x;\n", encoding="ascii")
    with pytest.raises(KernelError, match="no block marked for cffi"):
        open_library(tmp_path)


def test_the_header_of_the_checkout_serves_too(tmp_path: Path) -> None:
    shutil.copy(LIB_FOLDER / LIBRARY_NAME, tmp_path)
    opened = open_library(tmp_path)
    assert opened.lib.mahe_abi_version() == ABI_VERSION
    assert opened.compiler() == ""


@pytest.mark.timeout(300)
def test_another_abi_is_refused(tmp_path: Path) -> None:
    root = edited_sources(tmp_path, f"#define MAHE_ABI_VERSION {ABI_VERSION}", "#define MAHE_ABI_VERSION 7")
    build.build(build.find_compilers(), root=root, folder=tmp_path / "lib")
    with pytest.raises(KernelError, match=rf"ABI version 7 .*needs {ABI_VERSION}: run `make kernels`"):
        open_library(tmp_path / "lib")


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("float absmax; ", "double absmax[2]; ", "mahe_stats has 24 bytes, its header says 32"),
        ("    const float *src;\n    uint64_t n;", "    uint64_t n;", "mahe_segment has 24 bytes, its header says 16"),
        ("    float eps;\n", "    double eps;\n", "mahe_adamw has 36 bytes, its header says 48"),
        ("MAHE_API int32_t mahe_abi_version", "MAHE_API int32_t mahe_other(void); int32_t mahe_abi_version", "lacks"),
        ("int32_t mahe_abi_version", "int32_t mahe_no_version", "is not a MAHE kernel library"),
    ],
)
def test_a_header_that_does_not_fit(tmp_path: Path, old: str, new: str, sentence: str) -> None:
    root = edited_sources(tmp_path, old, new)
    shutil.copy(LIB_FOLDER / LIBRARY_NAME, tmp_path)
    shutil.copy(root / "include" / HEADER_NAME, tmp_path)
    with pytest.raises(KernelError, match=sentence):
        open_library(tmp_path)


def test_a_library_from_before_a_function_was_added(tmp_path: Path) -> None:
    root = edited_sources(tmp_path, "MAHE_API int32_t mahe_absmax_f32(const float *x, size_t n, float *out);\n", "")
    shutil.copy(LIB_FOLDER / LIBRARY_NAME, tmp_path)
    shutil.copy(root / "include" / HEADER_NAME, tmp_path)
    opened = open_library(tmp_path)
    opened.function("mahe_stats_f32")
    with pytest.raises(KernelError, match="lacks mahe_absmax_f32: run `make kernels`"):
        opened.function("mahe_absmax_f32")


def test_an_unknown_tier(tmp_path: Path) -> None:
    with pytest.raises(KernelError, match="MAHE_KERNEL is 'sse'; allowed: scalar, avx2, neon, auto; set it to auto"):
        open_library(LIB_FOLDER, tier="sse")


def test_a_tier_this_build_lacks(tmp_path: Path) -> None:
    build.build(build.find_compilers(), folder=tmp_path, asm=False)
    opened = open_library(tmp_path)
    assert (opened.tier(), opened.features(), usable_tiers(opened)) == ("scalar", "", ["scalar"])
    for tier in ("avx2", "neon"):
        with pytest.raises(KernelError, match=f"'{tier}', which this CPU or this build lacks; use auto"):
            open_library(tmp_path, tier=tier)
    assert opened.tier() == "scalar"


def test_asking_which_tiers_can_run_changes_none() -> None:
    before = library().tier()
    for tier in usable_tiers(library()):
        set_tier(library(), tier)
        assert usable_tiers(library())[0] == "scalar"
        assert library().tier() == tier
    set_tier(library(), before)


def test_the_variable_sets_the_tier() -> None:
    show = "from services.common.kernels import kernel_impl; print(kernel_impl())"
    assert run_python(show, MAHE_KERNEL="scalar").stdout.strip() == "scalar"
    assert run_python(show, MAHE_KERNEL="").stdout.strip() == run_python(show, MAHE_KERNEL="auto").stdout.strip()
    assert "allowed: scalar, avx2, neon, auto" in run_python(show, MAHE_KERNEL="fast").stderr


def test_importing_loads_nothing_and_loading_happens_once() -> None:
    code = (
        "from services.common import kernels\n"
        "from services.common.kernels.library import library\n"
        "assert library.cache_info().currsize == 0\n"
        "kernels.kernel_impl()\n"
        "assert library() is library()\n"
    )
    done = run_python(code)
    assert done.returncode == 0, done.stderr


def test_threads_that_come_first_together_open_it_once() -> None:
    code = (
        "import time\n"
        "from concurrent.futures import ThreadPoolExecutor\n"
        "from services.common.kernels import library as module\n"
        "opened, really = [], module.open_library\n"
        "def slow(*words, **names):\n"
        "    opened.append(1)\n"
        "    time.sleep(0.2)\n"
        "    return really(*words, **names)\n"
        "module.open_library = slow\n"
        "with ThreadPoolExecutor(4) as pool:\n"
        "    found = {id(one.result()) for one in [pool.submit(module.library) for _ in range(4)]}\n"
        "assert (len(opened), len(found)) == (1, 1), (opened, found)\n"
    )
    done = run_python(code)
    assert done.returncode == 0, done.stderr


@pytest.mark.timeout(120)
def test_a_changed_header_is_noticed_in_a_folder_named_tests(tmp_path: Path) -> None:
    where = tmp_path / "tests"
    compilers = build.find_compilers()
    root = edited_sources(where, "IEEE 754", "IEEE 754")
    build.build(compilers, root=root, folder=where / "lib", asm=False)
    assert "is up to date" in build.build(compilers, root=root, folder=where / "lib", asm=False)
    header = root / "include" / HEADER_NAME
    header.write_text(header.read_text("utf-8") + "/* changed */\n", "utf-8")
    assert "is up to date" not in build.build(compilers, root=root, folder=where / "lib", asm=False)


def test_a_second_build_has_nothing_to_do(tmp_path: Path) -> None:
    compilers = build.find_compilers()
    assert build.build(compilers, folder=tmp_path).startswith("kernels: built ")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([STAMP_NAME, LIBRARY_NAME, HEADER_NAME])
    assert compilers[0].name in open_library(tmp_path).compiler()
    assert "is up to date" in build.build(compilers, folder=tmp_path)
    assert "is up to date" not in build.build(compilers, folder=tmp_path, asm=False)
    assert "is up to date" not in build.build(compilers, folder=tmp_path, asm=False, force=True)
    (tmp_path / HEADER_NAME).unlink()
    assert "is up to date" not in build.build(compilers, folder=tmp_path, asm=False)


def test_no_compiler_says_what_to_install(tmp_path: Path) -> None:
    with pytest.raises(KernelError, match="no C compiler found\nInstall one and try again: `apt install gcc`"):
        build.build([], folder=tmp_path)


def test_a_compiler_that_fails_gives_way_to_the_next(tmp_path: Path) -> None:
    broken = build.Compiler("broken", (sys.executable, "-c", "raise SystemExit('no toolchain here')"))
    assert "broken" not in build.build([broken, *build.find_compilers()], folder=tmp_path)
    with pytest.raises(KernelError, match="no compiler could build the kernels:\n  broken: no toolchain here"):
        build.build([broken], folder=tmp_path)


def test_the_command_prints_one_line() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "services.common.kernels.build"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=50,
    )
    assert (done.returncode, done.stderr, done.stdout.count("\n")) == (0, "", 1)


def test_a_chosen_compiler_is_the_only_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "some-cc -m64")
    assert build.find_compilers() == [build.Compiler("some-cc -m64", ("some-cc", "-m64"))]
    assert build.find_compilers("other") == [build.Compiler("other", ("other",))]
    assert "-target" in build.find_compilers("zig cc")[0].command
