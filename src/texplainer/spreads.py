"""What a background tells of each column: its spread, its range, whether it varies at all."""

from __future__ import annotations

import numpy as np

from texplainer.signatures import Array


def spread(background: Array) -> Array:
    """Each feature's scale: IQR / 1.349, else the standard deviation, else the range, else 1."""
    with np.errstate(invalid="ignore"):
        finite = np.where(np.isfinite(background), background, np.nan)
        out = np.ones(background.shape[1])
        for j, column in enumerate(finite.T):
            column = column[~np.isnan(column)]
            if not len(column):
                continue
            low, high = np.quantile(column, [0.25, 0.75])
            candidates = ((high - low) / 1.349, column.std(), np.ptp(column))
            # a spread lost in the rounding of the values themselves is no spread
            floor = 8 * np.finfo(float).eps * np.abs(column).max()
            out[j] = next((float(s) for s in candidates if s > floor), 1.0)
    return out


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
