"""The flat vector and its named views."""

import numpy as np
import pytest
import xxhash

from services.common.learning.parameters import CACHE_LINE_BYTES, aligned_empty, digest, layout_of


def test_views_lie_one_after_another_and_share_the_memory() -> None:
    layout = layout_of([("weight", (2, 3)), ("bias", (3,)), ("scale", ())])
    assert (layout.n, layout.offsets) == (10, (0, 6, 9))
    flat = np.arange(10, dtype=np.float32)
    views = layout.views(flat)
    assert views["weight"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert views["bias"].tolist() == [6, 7, 8]
    assert views["scale"].shape == ()
    views["weight"][1, 0] = 33
    views["scale"][...] = 99
    assert (flat[3], flat[9]) == (33, 99)
    assert all(np.shares_memory(view, flat) for view in views.values())


def test_aligned_arrays_start_at_a_cache_line_and_are_of_the_shape_asked_for() -> None:
    kept = [aligned_empty(*shape) for shape in [(1,), (33,), (5, 7), (1_002_570,)] * 4]
    assert {array.ctypes.data % CACHE_LINE_BYTES for array in kept} == {0}
    assert [array.shape for array in kept[:4]] == [(1,), (33,), (5, 7), (1_002_570,)]
    assert all(array.dtype == np.float32 and array.flags.carray for array in kept)


@pytest.mark.parametrize(
    "flat",
    [np.zeros(9, np.float32), np.zeros(10, np.float64), np.zeros(20, np.float32)[::2]],
    ids=["short", "float64", "strided"],
)
def test_a_vector_that_would_have_to_be_copied_is_refused(flat: np.ndarray) -> None:
    with pytest.raises(AssertionError):
        layout_of([("weight", (10,))]).views(flat)


def test_names_must_differ() -> None:
    with pytest.raises(AssertionError):
        layout_of([("a", (1,)), ("a", (2,))])


def test_digest_is_xxh3_128_of_the_bytes_and_sees_one_bit() -> None:
    vector = np.linspace(-1, 1, 1000, dtype=np.float32)
    assert digest(vector) == xxhash.xxh3_128(vector.tobytes()).hexdigest()
    assert digest(vector[::2]) == digest(vector[::2].copy())
    changed = vector.copy()
    changed[500] = np.nextafter(changed[500], np.float32(2))
    assert digest(changed) != digest(vector)
    assert digest(np.zeros(0, np.float32)) == "99aa06d3014798d86001c324468d497f"  # the published value of no bytes
