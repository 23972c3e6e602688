"""Raw Philox bits against a second implementation from the paper."""

import numpy as np
import pytest

from services.common.learning.bits import SEED_MAX, Purpose, raw_bits, shuffled, unit_uniforms

MASK = 2**64 - 1


def philox_4x64_10(counter: list[int], key: list[int]) -> list[int]:
    """One block, after Salmon et al. 2011, section 3.3, in plain integers."""
    c, k = list(counter), list(key)
    for _ in range(10):
        first, second = 0xD2E7470EE14C6C93 * c[0], 0xCA5A826395121157 * c[2]
        c = [(second >> 64) ^ c[1] ^ k[0], second & MASK, (first >> 64) ^ c[3] ^ k[1], first & MASK]
        k = [(k[0] + 0x9E3779B97F4A7C15) & MASK, (k[1] + 0xBB67AE8584CAA73B) & MASK]
    return c


def test_the_second_implementation_gives_the_published_known_answers() -> None:
    zeros = [0x16554D9ECA36314C, 0xDB20FE9D672D0FDC, 0xD7E772CEE186176B, 0x7E68B68AEC7BA23B]
    assert philox_4x64_10([0] * 4, [0] * 2) == zeros
    ones = [0x87B092C3013FE90B, 0x438C3C67BE8D0224, 0x9CC7D7C69CD777B6, 0xA09CAEBF594F0BA0]
    assert philox_4x64_10([MASK] * 4, [MASK] * 2) == ones


@pytest.mark.parametrize(("seed", "a", "b"), [(0, 0, 0), (7, 3, 12), (SEED_MAX, SEED_MAX, SEED_MAX)])
def test_raw_bits_are_philox_of_purpose_seed_a_and_b(seed: int, a: int, b: int) -> None:
    words = raw_bits(Purpose.BATCHES, seed, a, b, 10).tolist()
    expected = [w for block in (1, 2, 3) for w in philox_4x64_10([block, 0, a, b], [seed, int(Purpose.BATCHES)])]
    assert words == expected[:10]


def test_streams_differ_by_purpose_seed_a_and_b() -> None:
    named = [(p, s, a, b) for p in Purpose for s in (0, 1) for a in (0, 1) for b in (0, 1)]
    assert len({tuple(raw_bits(*name, 4).tolist()) for name in named}) == len(named)


def test_shuffled_keeps_the_order_of_equal_words() -> None:
    assert shuffled(np.array([5, 1, 5, 1, 0], dtype=np.uint64)).tolist() == [4, 1, 3, 0, 2]


def test_uniforms_lie_in_the_half_open_unit_interval() -> None:
    ends = unit_uniforms(np.array([0, MASK], dtype=np.uint64))
    assert ends.tolist() == [0.0, 1.0 - 2.0**-53]
