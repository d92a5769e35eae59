"""What a background tells of each column: its SD, its range, whether it varies at all."""

from __future__ import annotations

import numpy as np

from texplainer.types import Array

TAIL = 0.025  # of either end, drawn in: an outlier must not set the scale
NORMAL = 0.9555  # what drawing in such tails leaves of a normal distribution's standard deviation
ROUNDING = 1e-9  # of the largest value: a column that varies less is constant
DIGITS = 9  # of a column's range: values that agree to so many are one value


def robust_sd(background: Array) -> Array:
    """Each feature's scale: its standard deviation with the tails drawn in, else the plain one, else 1.

    It changes little from one sample to another, also where a column holds few different values, as the
    distance between quartiles does not. A column of two values has no outliers, and its rarer value may be
    all tail: its tails are left alone.
    """
    out = np.ones(background.shape[1])
    for j, column in enumerate(background.T):
        known = column[np.isfinite(column)]
        if not len(known):
            continue
        floor = ROUNDING * np.abs(known).max()
        candidates = (known.std(),) if _two_values(known) else (_drawn_in(known), known.std())
        out[j] = next((float(s) for s in candidates if s > floor), 1.0)
    return out


def _drawn_in(known: Array) -> float:
    return np.clip(known, *np.quantile(known, [TAIL, 1 - TAIL])).std() / NORMAL


def _two_values(known: Array) -> bool:
    """Whether a column holds two values, rounding aside."""
    low, high = known.min(), known.max()
    where = np.round((known - low) / max(high - low, np.finfo(float).tiny), DIGITS)
    return bool(np.all((where == 0) | (where == 1)))


def varying_columns(background: Array) -> np.ndarray:
    """Mask of the columns that have an SD; of one row, or copies of it, nothing is known: all have."""
    varying = ~constant_columns(background)
    return varying if varying.any() else ~varying


def constant_columns(background: Array) -> np.ndarray:
    """Mask of the columns that hold one value only."""
    with np.errstate(invalid="ignore"):
        first = background[0]
        return np.all((background == first) | np.isnan(background), axis=0)


def data_bounds(background: Array) -> tuple[Array, Array]:
    """The background's range; columns without one (constant or empty) are left free."""
    masked = np.ma.masked_invalid(background)
    low = np.asarray(masked.min(axis=0).filled(-np.inf), dtype=float)
    high = np.asarray(masked.max(axis=0).filled(np.inf), dtype=float)
    free = low == high
    return np.where(free, -np.inf, low), np.where(free, np.inf, high)
