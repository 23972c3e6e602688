"""Synthetic classification data, drawn anew on every machine from a seed: nothing is sent but the descriptor.

Every coordinate is rounded to a multiple of 2^-12, because sin, cos and log differ in the last bit between CPUs.
Example i has class i mod classes, so classes are balanced. All points are in the plane.
"""

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from services.common.learning.bits import Purpose, raw_bits, unit_uniforms
from services.common.learning.parameters import Floats, Ints

Doubles = npt.NDArray[np.float64]
Generator = Callable[[int, int], tuple[Floats, Ints]]
"""(seed, n) -> x float32[n, 2], y int64[n], both owned by the caller."""

GRID = 2.0**-12

SPIRAL_ARMS = 3
SPIRAL_TURN_RADIANS = 4.0
SPIRAL_NOISE_RADIANS = 0.2
GAUSS_CENTRES = 3
GAUSS_RADIUS = 1.0
GAUSS_SIGMA = 0.4
RINGS = 4
RING_SPACING = 0.5
RING_SIGMA = 0.09


def spiral3(seed: int, n: int) -> tuple[Floats, Ints]:
    """Three arms from the centre outwards, each turning by 4 radians, with Gaussian noise on the angle."""
    y = _balanced_labels(n, SPIRAL_ARMS)
    radius = np.sqrt(_uniforms(seed, 0, n))
    noise = SPIRAL_NOISE_RADIANS * _normals(seed, n)[0]
    angle = y * (2 * math.pi / SPIRAL_ARMS) + SPIRAL_TURN_RADIANS * radius + noise
    return _on_grid(radius * np.cos(angle), radius * np.sin(angle)), y


def gauss3(seed: int, n: int) -> tuple[Floats, Ints]:
    """Three round Gaussians, sigma 0.4, whose centres stand evenly on the unit circle; they overlap a little."""
    y = _balanced_labels(n, GAUSS_CENTRES)
    angle = y * (2 * math.pi / GAUSS_CENTRES)
    first, second = _normals(seed, n)
    return (
        _on_grid(
            GAUSS_RADIUS * np.cos(angle) + GAUSS_SIGMA * first,
            GAUSS_RADIUS * np.sin(angle) + GAUSS_SIGMA * second,
        ),
        y,
    )


def rings4(seed: int, n: int) -> tuple[Floats, Ints]:
    """Four rings around one centre with radii 0.5, 1, 1.5 and 2, Gaussian noise of sigma 0.09 on the radius."""
    y = _balanced_labels(n, RINGS)
    radius = RING_SPACING * (y + 1) + RING_SIGMA * _normals(seed, n)[0]
    angle = 2 * math.pi * _uniforms(seed, 0, n)
    return _on_grid(radius * np.cos(angle), radius * np.sin(angle)), y


GENERATORS: dict[str, Generator] = {"gauss3": gauss3, "rings4": rings4, "spiral3": spiral3}


def _balanced_labels(n: int, classes: int) -> Ints:
    return np.arange(n, dtype=np.int64) % classes


def _uniforms(seed: int, stream: int, n: int) -> Doubles:
    return unit_uniforms(raw_bits(Purpose.GENERATOR, seed, stream, 0, n))


def _normals(seed: int, n: int) -> tuple[Doubles, Doubles]:
    """Two independent standard normals per example (Box & Muller, 1958)."""
    radius = np.sqrt(-2.0 * np.log(1.0 - _uniforms(seed, 1, n)))  # 1 - u lies in (0, 1]
    angle = 2 * math.pi * _uniforms(seed, 2, n)
    return radius * np.cos(angle), radius * np.sin(angle)


def _on_grid(first: Doubles, second: Doubles) -> Floats:
    points = np.stack([first, second], axis=1)
    return (np.rint(points / GRID) * GRID).astype(np.float32)
