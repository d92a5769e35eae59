"""The summary of a background: standard deviation, mean, range, mean prediction, discrete columns."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from texplainer.errors import BackgroundWarning, InputError, ModelError
from texplainer.limits import CELLS
from texplainer.models.predictor import Predictor
from texplainer.support.messages import some
from texplainer.tables.schema import Schema
from texplainer.types import Array

TOLERANCE = 1e-5  # of a column's range: scaled integers have lost some digits
FINEST = 8  # tolerances: a finer lattice cannot be told from none
APART = (
    5  # ranges of the other values: a value further away than that stands for something else, as -999 does
)
DIGITS = 9  # of a column's range: values that agree to so many are one value
HALF_WIDTH = 6**0.5  # of the kernel, in units of the bandwidth
WITHIN = 1.5  # steps: in such a half-width an average over rounded moves is the difference of the neighbours
REPEATED = 0.9  # share of the rows beside the most frequent value whose value occurs again
TAIL = 0.025  # winsorised at each end, so that outliers do not set the scale
NORMAL = 0.9555  # the standard deviation of a standard normal distribution winsorised in this way
ROUNDING = 1e-13  # of the largest value: a column that varies less is constant; times in ns keep their SD


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
    """Mask of the columns that do not hold two different numbers."""
    known = np.isfinite(background)
    low = np.where(known, background, np.inf).min(axis=0)
    return low >= np.where(known, background, -np.inf).max(axis=0)


def data_bounds(background: Array) -> tuple[Array, Array]:
    """Return the background's range; constant and empty columns are unbounded."""
    masked = np.ma.masked_invalid(background)
    low = np.asarray(masked.min(axis=0).filled(-np.inf), dtype=float)
    high = np.asarray(masked.max(axis=0).filled(np.inf), dtype=float)
    free = low == high
    return np.where(free, -np.inf, low), np.where(free, np.inf, high)


def ranges_without_codes(columns: Array) -> tuple[Array, Array]:
    """The range of each column, (columns, rows), without extreme values far from all others, such as -999 among counts.

    NaN for a column without any value. Of two distinct values neither is a code.
    """
    known = np.isfinite(columns)
    low = np.where(known, columns, np.inf).min(axis=1)
    high = np.where(known, columns, -np.inf).max(axis=1)
    low[low == np.inf] = high[high == -np.inf] = np.nan
    todo = np.flatnonzero(low < high)
    while len(todo):
        cells, bottom, top = columns[todo], low[todo], high[todo]
        second = np.where(known[todo] & (cells > bottom[:, None]), cells, np.inf).min(axis=1)
        last = np.where(known[todo] & (cells < top[:, None]), cells, -np.inf).max(axis=1)
        at_bottom = second - bottom > top - last  # the side that may be a code
        gap = np.where(at_bottom, second - bottom, top - last)
        width = np.where(at_bottom, top - second, last - bottom)
        code = (second < top) & (gap > APART * width) & (width > 10.0**-DIGITS * gap)
        low[todo] = np.where(code & at_bottom, second, bottom)
        high[todo] = np.where(code & ~at_bottom, last, top)
        todo = todo[code]
    return low, high


def block_of(rows: int) -> int:
    """How many columns of so many rows are worked on at a time, in cache."""
    return max(1, CELLS // (8 * max(1, rows)))


def of_equal_count(table: Array, known: np.ndarray) -> Iterator[tuple[np.ndarray, Array]]:
    """The known cells of columns, (columns, rows), in groups of as many: which columns, and (these, cells)."""
    counts = known.sum(axis=1)
    for count in np.unique(counts[counts > 0]):
        which = np.flatnonzero(counts == count)
        yield which, table[which][known[which]].reshape(len(which), count)


# ---------------------------------------------------------------- discrete columns
#
# Which numeric columns hold so few values that a slope must be a difference between them.
#
# A slope averaged over a quarter SD means nothing for a 0/1 column: no value lies in between. A column is
# *discrete* where its values lie further apart than a move:
#
# - values on a lattice (whole numbers, decimals, scaled integers): the kernel's half-width is below one and a half
#   steps of it (SD below 2.4 steps by default), and nearly all values repeat unless the step is 1. Moves of so much,
#   rounded, reach the neighbouring values only, and their average is the difference between these: nothing depends on
#   how a column near the limit is treated, and so on the sample;
# - other values that nearly all repeat: in the median row the nearest other value is beyond the bandwidth.
#
# The lattice's step is the greatest common divisor of the differences, not the smallest gap seen: it does not
# depend on how many rows the background has, nor on its tails. Codes such as -999, far from all other values, are
# neither counted nor neighbours of a count.
#
# Columns of whole numbers that are wide enough to be averaged over are kept too: no model can be asked about
# half a year, so that tree thresholds belong in the middle between two integers.


@dataclass(frozen=True)
class DiscreteColumns:
    """The discrete columns of a background.

    Attributes
    ----------
    values
        Discrete column -> its observed values, sorted.
    integers
        Columns of whole numbers that are not discrete.
    """

    values: dict[int, Array] = field(default_factory=dict)
    integers: tuple[int, ...] = ()

    @property
    def columns(self) -> list[int]:
        """The discrete columns."""
        return list(self.values)

    def renumbered(self, places: Sequence[int]) -> DiscreteColumns:
        """The same columns of a table in which column j stands at places[j]."""
        values = {int(places[j]): observed for j, observed in self.values.items()}
        return DiscreteColumns(values, tuple(int(places[j]) for j in self.integers))

    def mask(self, features: int) -> np.ndarray:
        """Mark the discrete columns, (features,)."""
        out = np.zeros(features, bool)
        out[self.columns] = True
        return out

    def neighbours(self, rows: Array, column: int) -> tuple[Array, Array]:
        """Nearest observed values below and above each row's own, (rows,) each.

        At an edge it is the row's own value; a missing cell stays missing.
        """
        observed, own = self.values[column], rows[:, column]
        slack = TOLERANCE * (observed[-1] - observed[0])  # a rounded copy of a value is that value
        below = np.searchsorted(observed, own - slack, side="left") - 1
        above = np.searchsorted(observed, own + slack, side="right")
        last = len(observed) - 1
        low = np.where(below >= 0, observed[np.clip(below, 0, last)], own)
        high = np.where(above <= last, observed[np.clip(above, 0, last)], own)
        missing = np.isnan(own)
        return np.where(missing, np.nan, low), np.where(missing, np.nan, high)


def find_discrete(rows: Array, sd: Array, bandwidth: float, columns: Collection[int]) -> DiscreteColumns:
    """Find the discrete ones among some numeric columns; `bandwidth` is in units of `sd` (features,)."""
    values: dict[int, Array] = {}
    integers: list[int] = []
    chosen, size = np.asarray(list(columns), dtype=int), block_of(len(rows))
    for start in range(0, len(chosen), size):
        part = chosen[start : start + size]
        _find(rows.T[part], bandwidth * sd[part], part.tolist(), values, integers)
    return DiscreteColumns(values, tuple(integers))


def _find(
    table: Array, bandwidth: Array, columns: list[int], values: dict[int, Array], integers: list[int]
) -> None:
    """Put the discrete ones of some columns, (columns, rows), into `values`, other whole numbers into `integers`."""
    low, high = ranges_without_codes(table)
    known = (table >= low[:, None]) & (table <= high[:, None])
    table = np.sort(np.where(known, table, np.nan), axis=1)  # what does not count stands last
    known = np.sort(~known, axis=1) == 0
    tolerance = TOLERANCE * (high - low)
    # values closer than the tolerance are one; the distinct values of all columns stand in one array
    apart = np.diff(table, axis=1, prepend=-np.inf) > tolerance[:, None]
    cells, starts = table[known], np.flatnonzero(apart[known])
    observed, counts = cells[starts], np.diff(np.append(starts, len(cells)))
    # many rows may leave no gap between values that differ: such a group is wider than the tolerance, not one value
    group_width = cells[np.append(starts[1:], len(cells)) - 1] - observed
    found = (apart & known).sum(axis=1)
    ends = np.cumsum(found)
    whole = np.all((table == np.round(table)) | ~known, axis=1)
    for i, j in enumerate(columns):
        if not low[i] < high[i]:
            continue
        mine = slice(ends[i] - found[i], ends[i])
        dense = group_width[mine].max() > tolerance[i]
        if not dense and found[i] > 1 and _is_discrete(observed[mine], counts[mine], bandwidth[i]):
            values[j] = observed[mine].copy()
        elif whole[i]:
            integers.append(j)


def _is_discrete(observed: Array, counts: np.ndarray, bandwidth: float) -> bool:
    step = common_step(observed)
    if step:  # few values may have a common step by chance
        return HALF_WIDTH * bandwidth < WITHIN * step and (step == 1 or _repeat(counts))
    gaps = np.diff(observed)
    nearest = np.minimum(np.append(gaps, np.inf), np.append(np.inf, gaps))
    return _repeat(counts) and bool(np.median(np.repeat(nearest, counts)) > bandwidth)


def _repeat(counts: np.ndarray) -> bool:
    """Whether nearly all values beside the most frequent one occur again."""
    most = counts.max()
    again = counts[counts > 1].sum() - (most if most > 1 else 0)
    return bool(again >= REPEATED * (counts.sum() - most))


def common_step(observed: Array) -> float:
    """The greatest common divisor of the differences of sorted values; 0 where they have none.

    Euclid's algorithm, with a tolerance: scaled integers have lost some digits.
    """
    tolerance = TOLERANCE * float(observed[-1] - observed[0])
    step = 0.0
    for gap in np.diff(observed).tolist():
        while gap > tolerance:
            rest = step % gap
            step, gap = gap, 0.0 if gap - rest <= tolerance else rest
        if step <= FINEST * tolerance:
            return 0.0
    return step


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
    predictions
        (background rows, outputs), the model's.
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
    predictions: Array
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

    Finds the columns that are discrete at this bandwidth (in SDs), except those declared `continuous`.
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
    return Background(rows, sigma, unit, mean, predictions, base, output_sd, bounds, discrete)


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
            f"{np.fmin.reduce(rows[:, schema.names.index(constant[0])])}): their SD is 0, so their "
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
