"""Explainers that know nothing, to stand below the line of every table.

A constant explainer is perfectly stable and useless; without it in sight, stability passes for quality.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable

import numpy as np

from texplainer.types import Array


def ones(rows: Array) -> Array:
    """Give every feature of every row the same weight."""
    return np.ones(rows.shape)


def zeros(rows: Array) -> Array:
    """Return zeros for every row."""
    return np.zeros(rows.shape)


def noise(rows: Array, seed: int = 0) -> Array:
    """Draw normal values from a generator seeded by the row, so that equal rows get equal values."""
    values = np.empty(rows.shape)
    for i, row in enumerate(np.ascontiguousarray(rows)):
        values[i] = np.random.default_rng([seed, zlib.crc32(row.tobytes())]).normal(size=len(row))
    return values


CONTROLS: dict[str, Callable[[Array], Array]] = {"constant": ones, "zero": zeros, "random": noise}
