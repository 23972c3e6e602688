"""`mahe kernels`: facts and the verdict of the self-test, or one sentence with the next step."""

import pytest

from services.launch.kernels import kernel_impl, run_kernels


def test_it_prints_what_is_in_use_and_that_it_is_right(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_kernels(build=False, compiler=None, no_asm=False) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in lines] == [
        ["[KERNELS]", "tier"],
        ["[KERNELS]", "CPU"],
        ["[KERNELS]", "library"],
        ["[KERNELS]", "self-test:"],
    ]
    ok, tier = kernel_impl()
    assert ok
    assert lines[0].startswith(f"[KERNELS] tier {tier}; this CPU and this build can run: scalar")


def test_kernels_that_cannot_be_used_are_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MAHE_KERNEL", "sse")
    assert run_kernels(build=False, compiler=None, no_asm=False) == 1
    sentence = "MAHE_KERNEL is 'sse'; allowed: scalar, avx2, neon, auto; set it to auto"
    assert capsys.readouterr().err == f"[ERROR] {sentence}\n"
    assert kernel_impl() == (False, sentence)
