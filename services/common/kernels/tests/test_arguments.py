"""What the kernels refuse: each sentence names the argument, its value and what is allowed, and nothing is written."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from services.common import kernels
from services.common.errors import KernelError
from services.common.kernels import AdamWNumbers
from services.common.kernels.cases import CASES

Array = npt.NDArray[Any]
N, BLOCK = 64, 32
NUMBERS = AdamWNumbers(1e-3, 0.9, 0.999, 1e-8, 0.01)


@dataclass(frozen=True)
class Call:
    """A kernel, arguments it takes by name, and which of its arrays are written or may be the same."""

    kernel: Callable[..., Any]
    arrays: dict[str, Callable[[], Array]]
    rest: dict[str, Any]
    written: tuple[str, ...]
    twins: tuple[str, ...] = ()

    def run(self, **changed: Any) -> None:
        """With fresh arrays, but for what is `changed`; then every written array is as it was, if it was refused."""
        made = {name: make() for name, make in self.arrays.items()}
        before = {name: array.copy() for name, array in made.items()}
        try:
            self.kernel(**(made | self.rest | changed))
        except KernelError:
            assert all(np.array_equal(made[name], before[name]) for name in made)
            raise


def floats() -> Array:
    return np.ones(N, np.float32)


def scales() -> Array:
    return np.ones(N // BLOCK, np.float32)


def of(dtype: type, n: int = N) -> Callable[[], Array]:
    return lambda: np.ones(n, dtype)


CODES = {"q8": of(np.int8), "q4": of(np.uint8, N // 2)}
CALLS = {
    "reduce_add": Call(kernels.reduce_add, {"dst": floats, "src": floats}, {"weight": 1.0}, ("dst",), ("dst", "src")),
    "sgd_update": Call(
        kernels.sgd_update, {"params": floats, "grad": floats}, {"lr": 1.0}, ("params",), ("params", "grad")
    ),
    "fold": Call(kernels.fold, {"acc": of(np.int64), "delta": floats}, {"scale": 1.0}, ("acc",)),
    "absmax": Call(kernels.absmax, {"x": floats}, {}, ()),
    "stats": Call(kernels.stats, {"x": floats}, {}, ()),
    "momentum": Call(
        kernels.momentum,
        {"update": floats, "m": floats, "g": floats},
        {"lr": 1.0, "mu": 0.5},
        ("update", "m"),
        ("update", "g"),
    ),
    "nesterov": Call(
        kernels.nesterov,
        {"update": floats, "m": floats, "g": floats},
        {"lr": 1.0, "mu": 0.5},
        ("update", "m"),
        ("update", "g"),
    ),
    "adamw": Call(
        kernels.adamw,
        {"params": floats, "m": floats, "v": floats, "grad": floats},
        {"numbers": NUMBERS, "t": 1, "lr_scale": 1.0},
        ("params", "m", "v"),
    ),
    "bf16_from_f32": Call(kernels.bf16_from_f32, {"dst": of(np.uint16), "src": floats}, {}, ("dst",)),
    "f32_from_bf16": Call(kernels.f32_from_bf16, {"dst": floats, "src": of(np.uint16)}, {}, ("dst",)),
    "topk": Call(
        kernels.topk,
        {"x": floats, "indices": of(np.uint32, 5), "values": of(np.float32, 5)},
        {"k": 5},
        ("indices", "values"),
    ),
    **{
        f"quantise_{form}": Call(
            kernel,
            {"codes": CODES[form], "scales": scales, "new_residual": floats, "x": floats, "residual": floats},
            {"block": BLOCK},
            ("codes", "scales", "new_residual"),
            ("new_residual", "residual"),
        )
        for form, kernel in (("q8", kernels.quantise_q8), ("q4", kernels.quantise_q4))
    },
    **{
        f"dequantise_{form}": Call(
            kernel, {"x": floats, "codes": CODES[form], "scales": scales}, {"block": BLOCK}, ("x",)
        )
        for form, kernel in (("q8", kernels.dequantise_q8), ("q4", kernels.dequantise_q4))
    },
    **{
        f"dequantise_add_{form}": Call(
            kernel,
            {"dst": floats, "codes": CODES[form], "scales": scales},
            {"weight": 1.0, "block": BLOCK},
            ("dst",),
        )
        for form, kernel in (("q8", kernels.dequantise_add_q8), ("q4", kernels.dequantise_add_q4))
    },
    **{
        f"fold_{form}": Call(
            kernel,
            {"acc": of(np.int64), "codes": CODES[form], "scales": scales},
            {"factor": 1.0, "block": BLOCK},
            ("acc",),
        )
        for form, kernel in (("q8", kernels.fold_q8), ("q4", kernels.fold_q4))
    },
}
ARGUMENTS = [(op, name) for op, call in CALLS.items() for name in call.arrays]
WRITTEN = [(op, name) for op, call in CALLS.items() for name in call.written]
FACTORS = [(op, name) for op, call in CALLS.items() for name in call.rest if name in ("weight", "lr", "mu", "lr_scale")]
DOUBLES = [(op, name) for op, call in CALLS.items() for name in call.rest if name in ("scale", "factor")]
ANY_SIZE = ("absmax", "stats", "topk")
BLOCKS = [op for op, call in CALLS.items() if "block" in call.rest]
PAIRS = [
    (op, to, other)
    for op, call in CALLS.items()
    for i, to in enumerate(call.written)
    for other in (*call.written[i + 1 :], *(name for name in call.arrays if name not in call.written))
]


def refused(op: str, **changed: Any) -> str:
    with pytest.raises(KernelError) as caught:
        CALLS[op].run(**changed)
    return caught.value.sentence


def moved(array: Array, bytes_: int) -> Array:
    """The same values, so many bytes behind a start that is aligned for anything."""
    room = np.zeros(array.nbytes + 64, np.uint8)
    start = -room.ctypes.data % 64 + bytes_
    return room[start : start + array.nbytes].view(array.dtype)


@pytest.mark.parametrize("op", CALLS)
def test_the_arguments_of_this_file_are_taken(op: str) -> None:
    CALLS[op].run()
    assert set(CALLS) | {"axpy_segments"} == set(CASES)


@pytest.mark.parametrize(("op", "name"), ARGUMENTS)
def test_what_is_no_array_of_the_dtype(op: str, name: str) -> None:
    good = CALLS[op].arrays[name]()
    assert refused(op, **{name: good.tolist()}).startswith(f"{name} is a list; allowed: a numpy array of {good.dtype}")
    for other in (np.dtype(np.float64), np.dtype(np.int32), good.dtype.newbyteorder(">")):
        if other == good.dtype:  # one byte has no order
            continue
        expected = f"{name} has dtype {other}; allowed: {good.dtype} in native byte order"
        assert refused(op, **{name: good.astype(other)}) == expected


@pytest.mark.parametrize(("op", "name"), ARGUMENTS)
def test_what_is_not_contiguous(op: str, name: str) -> None:
    good = CALLS[op].arrays[name]()
    assert "; allowed: C-contiguous" in refused(op, **{name: np.repeat(good, 2)[::2]})
    assert "; allowed: C-contiguous" in refused(op, **{name: np.repeat(good, 4).reshape(-1, 4).T[:1]})


@pytest.mark.parametrize(("op", "name"), ARGUMENTS)
def test_what_is_not_aligned(op: str, name: str) -> None:
    good = CALLS[op].arrays[name]()
    if good.itemsize == 1:
        CALLS[op].run(**{name: moved(good, 1)})
        return
    assert f"; allowed: aligned to {good.itemsize} bytes" in refused(op, **{name: moved(good, good.itemsize // 2)})
    CALLS[op].run(**{name: moved(good, good.itemsize)})


@pytest.mark.parametrize(("op", "name"), [one for one in ARGUMENTS if one[1] != "x" or one[0] not in ANY_SIZE])
def test_another_size_or_shape(op: str, name: str) -> None:
    good = CALLS[op].arrays[name]()
    for other in (good[: good.size // 2].copy(), np.tile(good, 2), good[:0].copy()):
        sentence = refused(op, **{name: other})
        assert "has shape" in sentence or " elements; allowed: " in sentence


@pytest.mark.parametrize(("op", "name"), ARGUMENTS)
def test_read_only_is_refused_only_where_it_is_written(op: str, name: str) -> None:
    array = CALLS[op].arrays[name]()
    array.flags.writeable = False
    if name in CALLS[op].written:
        assert refused(op, **{name: array}).startswith(f"{name} is read-only; allowed: a writable array")
    else:
        CALLS[op].run(**{name: array})


@pytest.mark.parametrize(("op", "to", "other"), PAIRS)
def test_overlap(op: str, to: str, other: str) -> None:
    call = CALLS[op]
    a, b = call.arrays[to](), call.arrays[other]()
    room = np.zeros(a.nbytes + b.nbytes, np.uint8)
    first, last = room[: a.nbytes].view(a.dtype), room[a.nbytes - 8 : a.nbytes - 8 + b.nbytes].view(b.dtype)
    twins = {to, other} <= set(call.twins)
    allowed = f"{other} is {to}, or no common memory" if twins else "no common memory"
    expected = f"{other} overlaps {to} in memory; allowed: {allowed}"
    assert refused(op, **{to: first, other: last}) == expected
    same = room[: b.nbytes].view(b.dtype)
    if twins:
        call.run(**{to: first, other: same})
    else:
        assert refused(op, **{to: first, other: same}) == expected
    call.run(**{to: first, other: room[a.nbytes :].view(b.dtype)})


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, None, "1", True, 1j, 10**400, np.zeros(1)])
@pytest.mark.parametrize(("op", "name"), FACTORS + DOUBLES)
def test_a_factor_that_is_no_finite_number(op: str, name: str, value: Any) -> None:
    sentence = refused(op, **{name: value})
    assert sentence.startswith(f"{name} is ") and sentence.endswith("; allowed: a finite number")


@pytest.mark.parametrize(("op", "name"), FACTORS)
def test_a_factor_beyond_float32(op: str, name: str) -> None:
    expected = f"{name} is 1e+39; allowed: a number in the range of float32, up to 3.403e+38"
    assert refused(op, **{name: 1e39}) == expected
    CALLS[op].run(**{name: np.float32(1e38)})


@pytest.mark.parametrize(("op", "name"), DOUBLES)
def test_a_factor_of_a_fold_is_float64(op: str, name: str) -> None:
    CALLS[op].run(**{name: 1e39})


@pytest.mark.parametrize("value", [0, 31, 33, 48, 65568, -32, 32.0, True, None, "32", 10**400])
@pytest.mark.parametrize("op", BLOCKS)
def test_a_wrong_block(op: str, value: Any) -> None:
    sentence = refused(op, block=value)
    assert sentence.startswith("block is ")
    assert sentence.endswith("; allowed: an integer from 32 to 65536 that is a multiple of 32")


@pytest.mark.parametrize("value", [-1, N + 1, 1.0, True, None])
def test_a_wrong_k(value: Any) -> None:
    assert refused("topk", k=value).endswith(f"; allowed: an integer from 0 to {N}, the elements of x")


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("lr", np.nan, "a finite number"),
        ("lr", 1e39, "a number in the range of float32"),
        ("beta1", 1.0, "a number from 0 to below 1"),
        ("beta1", -0.1, "a number from 0 to below 1"),
        ("beta2", "x", "a finite number"),
        ("beta2", 1, "a number from 0 to below 1"),
        ("eps", -1e-9, "a number that is not negative"),
        ("weight_decay", None, "a finite number"),
    ],
)
def test_wrong_numbers_of_adamw(name: str, value: Any, allowed: str) -> None:
    good: dict[str, Any] = {"lr": 1e-3, "beta1": 0.9, "beta2": 0.999, "eps": 1e-8, "weight_decay": 0.01}
    with pytest.raises(KernelError) as caught:
        AdamWNumbers(**(good | {name: value}))
    assert caught.value.sentence.startswith(f"{name} is {value!r}; allowed: {allowed}")
    assert refused("adamw", numbers=good) == f"numbers is {good}; allowed: AdamWNumbers"


@pytest.mark.parametrize("value", [0, -1, 2**53 + 1, 1.0, True, None])
def test_a_wrong_step_of_adamw(value: Any) -> None:
    allowed = "an integer from 1 to 9007199254740992, the number of this step"
    assert refused("adamw", t=value) == f"t is {value!r}; allowed: {allowed}"


def test_a_learning_rate_of_adamw_that_becomes_too_large() -> None:
    large = AdamWNumbers(2.0, 0.9, 0.999, 1e-8, 0.01)
    sentence = refused("adamw", numbers=large, lr_scale=2e38)
    assert sentence == "lr * lr_scale is 4e+38; allowed: a number in the range of float32, up to 3.403e+38"


@pytest.mark.parametrize(
    ("bad", "sentence"),
    [
        (5, "pairs[1] is 5; allowed: a pair of arrays (dst, src)"),
        ((floats(),), "pairs[1] is (array("),
        ((floats(), floats()[1:]), "pairs[1] src has shape (63,); allowed: the shape of pairs[1] dst, (64,)"),
        ((floats(), [1.0]), "pairs[1] src is a list; allowed: a numpy array of float32"),
        ((floats().astype(int), floats()), "pairs[1] dst has dtype int64; allowed: float32"),
    ],
)
def test_a_wrong_segment_is_named_and_none_is_written(bad: Any, sentence: str) -> None:
    first = floats()
    with pytest.raises(KernelError) as caught:
        kernels.axpy_segments([(first, floats()), bad], 1.0)
    assert caught.value.sentence.startswith(sentence)
    assert (first == 1).all()


def test_a_segment_that_overlaps_itself_is_named() -> None:
    first, room = floats(), np.zeros(16, np.float32)
    with pytest.raises(KernelError) as caught:
        kernels.axpy_segments([(first, floats()), (room[:8], room[1:9])], 1.0)
    allowed = "pairs[1] src is pairs[1] dst, or no common memory"
    assert caught.value.sentence == f"pairs[1] src overlaps pairs[1] dst in memory; allowed: {allowed}"
    assert (first == 1).all()
    kernels.axpy_segments([(room[:8], room[:8]), (room[:8], room[8:])], 1.0)
