"""The summary of a background: standard deviation, mean, range, mean prediction."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Hashable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from texplainer.background.discrete import (
    DIGITS,
    DiscreteColumns,
    block_of,
    find_discrete,
    of_equal_count,
    ranges_without_codes,
)
from texplainer.errors import BackgroundWarning, InputError, ModelError
from texplainer.models.predictor import Predictor
from texplainer.support.messages import some
from texplainer.tables.schema import Schema
from texplainer.types import Array

TAIL = 0.025  # winsorised at each end, so that outliers do not set the scale
NORMAL = 0.9555  # the standard deviation of a standard normal distribution winsorised in this way
ROUNDING = 1e-9  # of the largest value: a column that varies less is constant


def robust_sd(background: Array) -> Array:
    """Compute each feature's winsorised standard deviation; if that is 0 the plain one, otherwise 1.

    2.5% are winsorised on each side, and the result is consistent for the normal distribution. It varies
    little between samples, even for columns with few distinct values, unlike the interquartile range. A column
    of two values is not winsorised: it does not have outliers, and its rarer value may lie entirely in the
    tail. Codes such as -999, far from all other values, do not count: otherwise the SD would depend on
    whether a sample holds 2% or 3% of them.
    """
    out = np.ones(background.shape[1])
    size = block_of(len(background))
    for start in range(0, len(out), size):
        columns = np.ascontiguousarray(background.T[start : start + size], dtype=float)  # (features, rows)
        low, high = ranges_without_codes(columns)
        for which, known in of_equal_count(columns, (columns >= low[:, None]) & (columns <= high[:, None])):
            out[start + which] = _sd_of(known)
    return out


def _sd_of(known: Array) -> Array:
    """The same for columns without missing values and codes, (columns, rows)."""
    low, high = known.min(axis=1, keepdims=True), known.max(axis=1, keepdims=True)
    where = np.round((known - low) / np.maximum(high - low, np.finfo(float).tiny), DIGITS)
    two_values = np.all((where == 0) | (where == 1), axis=1)  # up to round-off
    usual = known.std(axis=1)
    tails = np.quantile(known, [TAIL, 1 - TAIL], axis=1)[:, :, None]
    drawn_in = np.clip(known, *tails).std(axis=1) / NORMAL
    floor = ROUNDING * np.abs(known).max(axis=1)
    return np.select([~two_values & (drawn_in > floor), usual > floor], [drawn_in, usual], 1.0)


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


# ---------------------------------------------------------------- the summary


LARGEST = 1e150  # of a prediction: its square must not overflow


@dataclass(frozen=True)
class Background:
    """The background rows and their summary.

    Attributes
    ----------
    rows
        (background rows, features).
    sigma, mean
        (features,), each feature's SD and mean (of codes, for a categorical one).
    unit
        (features,), the SD, and 0 for a column that never varies.
    base, output_sd
        (outputs,), phi_0: the mean prediction over the background; and its standard deviation.
    bounds
        The range perturbations stay in, or None.
    discrete
        The numeric columns whose slope is a difference between neighbouring values.
    """

    rows: Array
    sigma: Array
    unit: Array
    mean: Array
    base: Array
    output_sd: Array
    bounds: tuple[Array, Array] | None
    discrete: DiscreteColumns = field(default_factory=DiscreteColumns)
    _derived: dict[Hashable, Any] = field(default_factory=dict, repr=False, compare=False)

    def cached(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """Return what `make` computes from this background; computed once and cached."""
        if key not in self._derived:
            self._derived[key] = make()
        return self._derived[key]


def summarise(
    rows: Array,
    predictor: Predictor,
    bounds: tuple[Array, Array] | None,
    bandwidth: float = 0.0,
    continuous: Collection[int] = (),
) -> Background:
    """Summarise a background; the model must give it finite predictions.

    Columns that are discrete at this bandwidth (in SDs) are found, but for those known to be `continuous`.
    """
    predictions = predictor(rows)
    bad = ~np.all(np.isfinite(predictions), axis=1)
    if bad.any():
        first = int(np.nonzero(bad)[0][0])
        raise ModelError(
            f"the model returned {predictions[first].tolist()} for background row {first} "
            f"({int(bad.sum())} of {len(rows)} rows in all); expected finite numbers. "
            "Drop or correct these rows of the background."
        )
    size = float(np.abs(predictions).max(initial=0.0))
    if size > LARGEST:
        raise ModelError(
            f"the model returned numbers of up to {size:.3g}; expected at most {LARGEST:g}, because their squares "
            "overflow. Divide its output by a constant, or explain its logarithm."
        )
    finite = np.ma.masked_invalid(rows)
    mean = np.asarray(finite.mean(axis=0).filled(np.nan), dtype=float)
    sigma = robust_sd(rows)
    unit = np.where(varying_columns(rows), sigma, 0.0)
    columns = set(np.flatnonzero(predictor.schema.numeric).tolist()) - set(continuous)
    discrete = find_discrete(rows, sigma, bandwidth, sorted(columns)) if bandwidth else DiscreteColumns()
    base, output_sd = predictions.mean(axis=0), predictions.std(axis=0)
    return Background(rows, sigma, unit, mean, base, output_sd, bounds, discrete)


def check(rows: Array, schema: Schema) -> None:
    """Warn about a background that is too small or has constant columns."""
    if np.isinf(rows).any():
        row, column = (int(i[0]) for i in np.nonzero(np.isinf(rows)))
        raise InputError(
            f"background row {row} holds {rows[row, column]} in column {schema.names[column]!r}; "
            "expected finite numbers. Clip or drop it."
        )
    if len(rows) == 1 or bool((rows == rows[0]).all()):
        what = "one row" if len(rows) == 1 else f"{len(rows)} copies of one row"
        warnings.warn(
            f"the background is {what}: standard deviations are set to 1 and ranges are unbounded. Pass a "
            "few hundred rows of the training data.",
            BackgroundWarning,
            stacklevel=4,
        )
        return
    constant = [schema.names[j] for j in np.nonzero(constant_columns(rows))[0]]
    if constant:
        warnings.warn(
            f"background columns {some(constant)} are constant (first value "
            f"{rows[0, schema.names.index(constant[0])]}): their SD is 0, so their "
            "slope is 0. Pass a background in which they vary, or leave them out of the model.",
            BackgroundWarning,
            stacklevel=4,
        )


def resolve_bounds(bounds: object, rows: Array) -> tuple[Array, Array] | None:
    """`bounds` as the user gave it -> (low, high) arrays or None."""
    if bounds is None:
        return None
    if isinstance(bounds, str):
        if bounds == "background":
            return data_bounds(rows)
        raise InputError(f"bounds={bounds!r} is unknown; expected 'background', None or (low, high).")
    try:
        low, high = bounds  # type: ignore[misc]
        low = np.broadcast_to(np.asarray(low, dtype=float), rows.shape[1:]).copy()
        high = np.broadcast_to(np.asarray(high, dtype=float), rows.shape[1:]).copy()
    except (TypeError, ValueError):
        raise InputError(
            f"bounds={bounds!r} is not a pair (low, high) of numbers or of {rows.shape[1]} numbers each."
        ) from None
    if np.any(low >= high):
        j = int(np.nonzero(low >= high)[0][0])
        raise InputError(
            f"bounds of feature {j} are empty: low {low[j]} >= high {high[j]}; expected low < high."
        )
    return low, high
