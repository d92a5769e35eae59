"""Statistics of the background's columns: standard deviation, range, and whether a column is constant."""

from __future__ import annotations

import numpy as np

from texplainer.types import Array

TAIL = 0.025  # winsorised at each end, so that outliers do not set the scale
NORMAL = 0.9555  # the standard deviation of a standard normal distribution winsorised in this way
ROUNDING = 1e-9  # of the largest value: a column that varies less is constant
APART = (
    5  # ranges of the other values: a value further away than that stands for something else, as -999 does
)
DIGITS = 9  # of a column's range: values that agree to so many are one value


def robust_sd(background: Array) -> Array:
    """Compute each feature's winsorised standard deviation; if that is 0 the plain one, otherwise 1.

    2.5% are winsorised on each side, and the result is consistent for the normal distribution. It varies
    little between samples, even for columns with few distinct values, unlike the interquartile range. A column
    of two values is not winsorised: it does not have outliers, and its rarer value may lie entirely in the
    tail. Codes such as -999, far from all other values, do not count: otherwise the SD would depend on
    whether a sample holds 2% or 3% of them.
    """
    out = np.ones(background.shape[1])
    for j, column in enumerate(background.T):
        known = without_codes(column[np.isfinite(column)])
        if not len(known):
            continue
        floor = ROUNDING * np.abs(known).max()
        candidates = (known.std(),) if _two_values(known) else (_drawn_in(known), known.std())
        out[j] = next((float(s) for s in candidates if s > floor), 1.0)
    return out


def without_codes(known: Array) -> Array:
    """The values of a column without extreme ones far from all others, such as -999 among counts."""
    while len(known):
        observed = np.unique(known)
        if len(observed) < 3:
            return known
        low = observed[1] - observed[0] > observed[-1] - observed[-2]  # the side that may be a code
        rest = observed[1:] if low else observed[:-1]
        gap, width = (rest[0] - observed[0] if low else observed[-1] - rest[-1]), rest[-1] - rest[0]
        if gap <= APART * width or width <= 10.0**-DIGITS * gap:  # of two values neither is a code
            return known
        known = known[known > observed[0]] if low else known[known < observed[-1]]
    return known


def _drawn_in(known: Array) -> float:
    return np.clip(known, *np.quantile(known, [TAIL, 1 - TAIL])).std() / NORMAL


def _two_values(known: Array) -> bool:
    """Return whether a column has two distinct values, up to round-off."""
    low, high = known.min(), known.max()
    where = np.round((known - low) / max(high - low, np.finfo(float).tiny), DIGITS)
    return bool(np.all((where == 0) | (where == 1)))


def varying_columns(background: Array) -> np.ndarray:
    """Mask of the columns that vary; if all rows are equal, every column counts as varying."""
    varying = ~constant_columns(background)
    return varying if varying.any() else ~varying


def constant_columns(background: Array) -> np.ndarray:
    """Mask of the constant columns."""
    with np.errstate(invalid="ignore"):
        first = background[0]
        return np.all((background == first) | np.isnan(background), axis=0)


def data_bounds(background: Array) -> tuple[Array, Array]:
    """Return the background's range; constant and empty columns are unbounded."""
    masked = np.ma.masked_invalid(background)
    low = np.asarray(masked.min(axis=0).filled(-np.inf), dtype=float)
    high = np.asarray(masked.max(axis=0).filled(np.inf), dtype=float)
    free = low == high
    return np.where(free, -np.inf, low), np.where(free, np.inf, high)
