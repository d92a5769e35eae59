"""Two-level designs of resolution V: signs from which every pair's product can be told apart.

In the full factorial of k signs all products of columns are orthogonal. More columns are had from fewer runs
if any four of them are independent: then no product of two equals one of one or two others. Such columns are
those of a code that corrects two errors (Bose, Ray-Chaudhuri and Hocquenghem): with a a primitive element of
GF(2^m), the 2m bits of (a^i, a^3i) for i < 2^m - 1. So 7 features take 64 runs, 31 take 1,024, 255 take
65,536: about two runs a pair.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from texplainer.errors import InputError
from texplainer.types import Array

FACTORIAL = 6  # up to so many features all combinations
#: degree m -> a primitive polynomial over GF(2), its bits
PRIMITIVE = {3: 0b1011, 4: 0b10011, 5: 0b100101, 6: 0b1000011, 7: 0b10001001, 8: 0b100011101, 9: 0b1000010001}


def runs(features: int) -> int:
    """The number of runs for so many features."""
    return 2 ** (features if features <= FACTORIAL else 2 * _degree(features))


def contrast_signs(features: int, first: int, last: int, shift: int = 0) -> Array:
    """Runs first to last, (runs, features); `shift` chooses other columns of the same code."""
    masks = _masks(features, shift)
    bits = np.arange(first, last, dtype=np.uint32)[:, None] & masks
    for half in (16, 8, 4, 2, 1):  # the parity of the bits, in the last of them
        bits ^= bits >> np.uint32(half)
    return np.where(bits & np.uint32(1), -1.0, 1.0)


@lru_cache(maxsize=64)
def _masks(features: int, shift: int) -> np.ndarray:
    """For every feature the bits of the run's number whose parity is its sign."""
    if features <= FACTORIAL:
        return np.uint32(1) << np.arange(features, dtype=np.uint32)
    degree = _degree(features)
    power = _powers(degree)
    order = len(power)
    at = (np.arange(features) + shift) % order
    return (power[at] | (power[3 * at % order] << degree)).astype(np.uint32)


def _degree(features: int) -> int:
    fitting = [m for m in PRIMITIVE if 2**m - 1 >= features]
    if not fitting:
        raise InputError(
            f"the model has {features} features; interactions of a black box are estimated for at most "
            f"{2 ** max(PRIMITIVE) - 1}. Use an engine with exact slopes, or group the features."
        )
    return fitting[0]


def _powers(degree: int) -> np.ndarray:
    """The powers of the primitive element, 2^m - 1 of them."""
    found, value = [], 1
    for _ in range(2**degree - 1):
        found.append(value)
        value <<= 1
        if value >> degree:
            value ^= PRIMITIVE[degree]
    return np.array(found, dtype=np.int64)
