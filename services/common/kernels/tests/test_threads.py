"""Kernels and threads: several callers at once, one call in pieces, and a process that forks."""

import os
import subprocess
import sys
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import pytest

from services.common import kernels
from services.common.errors import KernelError
from services.common.kernels import Threads
from services.common.kernels.cases import CASES, same_bits
from services.common.kernels.library import OK, OVERLAP
from services.common.kernels.paths import SOURCE_FOLDER
from services.common.kernels.selftest import drawn
from services.common.kernels.threads import PIECE_STEP, SPLIT_MIN, Piece

LARGE = SPLIT_MIN + 1237


def test_eight_threads_do_not_disturb_one_another() -> None:
    def once(turn: int) -> bool:
        name = list(CASES)[turn % len(CASES)]
        with np.errstate(all="ignore"):
            ours, expected = CASES[name](20_011, drawn(turn))
        return all(same_bits(*pair).all() for _ in range(3) for pair in zip(ours(), expected, strict=True))

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(once, range(2 * len(CASES))))


def test_kernels_work_in_a_forked_process() -> None:
    code = (
        "import os, sys, numpy as np\n"
        "from services.common.kernels import reduce_add\n"
        "a, b = np.ones(1000, np.float32), np.ones(1000, np.float32)\n"
        "reduce_add(a, b, 1.0)\n"
        "child = os.fork()\n"
        "reduce_add(a, b, 1.0)\n"
        "right = bool((a == 3).all())\n"
        "if child == 0: os._exit(0 if right else 1)\n"
        "assert right and os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0\n"
    )
    if not hasattr(os, "fork"):
        return
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=SOURCE_FOLDER.parent, capture_output=True, text=True, check=False, timeout=50,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("n", [1, PIECE_STEP, 3 * PIECE_STEP + 5, 100_000])
@pytest.mark.parametrize("count", [1, 2, 3, 8])
@pytest.mark.parametrize("step", [PIECE_STEP, 65536])
def test_pieces_cover_everything_once_at_multiples_of_the_step(n: int, count: int, step: int) -> None:
    threads, seen = Threads(count), []

    def piece(start: int, size: int) -> int:
        seen.append((start, start + size))
        return OK

    assert threads.run(piece, n, step) == OK
    threads.close()
    seen.sort()
    assert (seen[0][0], seen[-1][1]) == (0, n)
    assert len(seen) <= count
    assert all(end == start and end % step == 0 for (_, end), (start, _) in pairwise(seen))


def test_a_piece_that_is_refused_is_heard_of() -> None:
    threads = Threads(3)
    assert threads.run(lambda start, _: OVERLAP if start else OK, 3 * PIECE_STEP, PIECE_STEP) == OVERLAP
    threads.close()


def test_no_piece_runs_any_more_when_another_has_raised() -> None:
    threads, started, ended = Threads(2), threading.Event(), threading.Event()

    def piece(start: int, _: int) -> int:
        if start == 0:
            assert started.wait(20)
            raise ValueError("a piece that fails")
        started.set()
        ended.wait(0.2)  # nobody sets it: this piece is still at work when the other raises
        ended.set()
        return OK

    with pytest.raises(ValueError, match="a piece that fails"):
        threads.run(piece, 2 * PIECE_STEP, PIECE_STEP)
    assert ended.is_set()
    threads.close()


def test_no_piece_runs_any_more_when_the_pool_takes_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    threads, ended = Threads(3), threading.Event()
    submit = ThreadPoolExecutor.submit

    def once(pool: ThreadPoolExecutor, piece: Piece, start: int, size: int) -> Future[int]:
        if start > PIECE_STEP:
            raise RuntimeError("can't start new thread")
        return submit(pool, piece, start, size)

    def piece(_start: int, _size: int) -> int:
        time.sleep(0.2)
        ended.set()
        return OK

    monkeypatch.setattr(ThreadPoolExecutor, "submit", once)
    with pytest.raises(RuntimeError, match="new thread"):
        threads.run(piece, 3 * PIECE_STEP, PIECE_STEP)
    assert ended.is_set()
    threads.close()


@pytest.mark.usefixtures("tier")
def test_a_split_call_has_the_same_bits() -> None:
    draw = drawn(2)
    a, b, c, d = (draw(LARGE) for _ in range(4))
    acc, half = np.arange(LARGE, dtype=np.int64), np.zeros(LARGE, np.uint16)
    numbers = kernels.AdamWNumbers(1e-3, 0.9, 0.999, 1e-8, 0.01)
    codes8, codes4 = np.zeros(LARGE, np.int8), np.zeros(kernels.q4_codes_size(LARGE), np.uint8)
    block = 96
    scales = np.zeros(kernels.scales_size(LARGE, block), np.float32)

    def all_of_them(threads: Threads | None) -> list[bytes]:
        w, x, y, z, s = a.copy(), b.copy(), np.abs(c), d.copy(), acc.copy()
        kernels.reduce_add(w, x, 0.3, threads=threads)
        kernels.sgd_update(w, x, 0.3, threads=threads)
        kernels.fold(s, w, 2.0**40, threads=threads)
        kernels.adamw(w, x, y, z, numbers, 2, threads=threads)
        kernels.momentum(z, x, z, 0.5, 0.9, threads=threads)
        kernels.nesterov(z, x, w, 0.5, 0.9, threads=threads)
        kernels.bf16_from_f32(half, z, threads=threads)
        kernels.f32_from_bf16(y, half, threads=threads)
        kernels.quantise_q8(codes8, scales, z, w, z, block, threads=threads)
        kernels.dequantise_q8(x, codes8, scales, block, threads=threads)
        kernels.dequantise_add_q8(w, codes8, scales, 0.5, block, threads=threads)
        kernels.fold_q8(s, codes8, scales, 2.0**30, block, threads=threads)
        found = [array.tobytes() for array in (w, x, y, z, s, codes8, scales)]
        kernels.quantise_q4(codes4, scales, z, w, None, block, threads=threads)
        kernels.dequantise_q4(x, codes4, scales, block, threads=threads)
        kernels.dequantise_add_q4(w, codes4, scales, 0.5, block, threads=threads)
        kernels.fold_q4(s, codes4, scales, 2.0**30, block, threads=threads)
        return found + [array.tobytes() for array in (w, x, z, s, codes4, scales)]

    threads = Threads(3)
    assert all_of_them(threads) == all_of_them(None)
    threads.close()


def test_overlap_that_no_single_piece_sees_is_refused_before_anything_is_written() -> None:
    threads, room = Threads(2), np.zeros(2 * LARGE, np.float32)
    room[:] = 1
    with pytest.raises(KernelError, match="src overlaps dst in memory"):
        kernels.reduce_add(room[:LARGE], room[LARGE - 5 : 2 * LARGE - 5], 1.0, threads=threads)
    threads.close()
    assert (room == 1).all()
