"""What the trees of a Pipeline see: its transformed columns, and the raw column each is made from.

Which column comes from which is found by changing one raw column at a time, and proven on mixtures of
background rows: a mixture must transform to the mixture. Numbers outside the background's range and missing values
are tried, too: a small background does not hold all that the rows to explain may hold.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from texplainer.errors import ModelError, Unsupported
from texplainer.gradients.trees.readers.table import cells_of
from texplainer.limits import CELLS
from texplainer.models.libraries import absent_value
from texplainer.models.predictor import Predictor
from texplainer.tables import native
from texplainer.types import Array

PROBE_ROWS = 64  # background rows in which columns are changed
MIXTURES = 256  # of background rows, on which the transformers are proven
CHECK_ROWS = 256
BEYOND = (1.0, 100.0, 1e9)  # ranges of a column: how far outside of it numbers are tried
REFUSALS = (
    ModelError,
    ValueError,
    TypeError,
    KeyError,
    IndexError,
)  # of values that a transformer does not take


def inputs_of(
    predictor: Predictor,
    transformers: list[Any],
    rows: Array,
    codes: Sequence[tuple[int, dict[Any, float]]] = (),
) -> Array:
    """What the trees see of rows, (rows, inputs), as float64."""
    if not transformers and not predictor.schema.groups:
        if predictor.schema.levels:
            return cells_of(predictor.schema, rows, codes)
        table: Any = predictor.schema.write(rows.copy())
    else:
        table = predictor.schema.write(rows.copy())
        for transformer in transformers:
            table = transformer.transform(table)
    if native.is_sparse(table):
        table = native.dense(table, absent_value(predictor.model))
    try:
        return np.ascontiguousarray(np.asarray(table), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise Unsupported(f"its trees see columns that are not numbers ({error}).") from None


def owners_of(inputs: Callable[[Array], Array], background: Array, predictor: Predictor) -> np.ndarray:
    """The raw feature every input is made from, -1 where none of the tried values changes it."""
    outside = _outside(background, predictor.schema.numeric)
    with warnings.catch_warnings(), np.errstate(all="ignore"):  # of values outside the background
        warnings.simplefilter("ignore")
        depends = _dependences(inputs, background, predictor, outside)
        several = np.flatnonzero(depends.sum(axis=0) > 1)
        if len(several):
            names = [predictor.schema.names[j] for j in np.flatnonzero(depends[:, several[0]])[:3]]
            raise Unsupported(f"a column its trees see is made from several columns ({', '.join(names)}).")
        owner = np.where(depends.any(axis=0), depends.argmax(axis=0), -1)
        _prove(inputs, background, owner, outside)
    return owner


def _dependences(
    inputs: Callable[[Array], Array], background: Array, predictor: Predictor, outside: Sequence[Array]
) -> np.ndarray:
    """Which input changes with which raw feature alone, (features, inputs)."""
    count = background.shape[1]
    rows = background[:: max(1, len(background) // PROBE_ROWS)][:PROBE_ROWS]
    plain = inputs(rows)
    depends = np.zeros((count, plain.shape[1]), bool)
    others = [np.roll(rows, shift, axis=0) for shift in (1, max(1, len(rows) // 2))]
    together = max(1, CELLS // max(1, rows.size))
    for other in others:
        for first in range(0, count, together):
            columns = range(first, min(first + together, count))
            depends[list(columns)] |= _changed(inputs, rows, plain, other, columns)
    for j, levels in predictor.schema.levels.items():  # categories that the probing rows do not hold
        codes = np.arange(len(levels), dtype=float)
        depends[j] |= _changed_by(inputs, rows[:1], plain[:1], j, codes)
    for j in range(count):
        depends[j] |= _changed_by(inputs, rows[:1], plain[:1], j, np.unique(background[:, j])[:CHECK_ROWS])
    for other in (np.full(count, np.nan), *outside):
        for first in range(0, count, together * len(rows)):
            columns = range(first, min(first + together * len(rows), count))
            depends[list(columns)] |= _changed_if_taken(inputs, rows[:1], plain[:1], other[None], columns)
    return depends


def beyond(values: Array) -> list[tuple[float, float]]:
    """Numbers below and above a column's own, further and further away."""
    known = values[np.isfinite(values)]
    low, high = (known.min(), known.max()) if len(known) else (0.0, 0.0)
    width = float((high - low) or abs(low) or 1.0)
    return [(float(low - far * width), float(high + far * width)) for far in BEYOND]


def _outside(background: Array, numeric: np.ndarray) -> list[Array]:
    """Rows of numbers that no background row may hold: missing, small, large; their categories are the first row's."""
    ends = np.array([beyond(column) for column in background.T]).reshape(len(numeric), -1).T
    return [np.where(numeric, other, background[0]) for other in (np.nan, *ends)]


def _changed(
    inputs: Callable[[Array], Array], rows: Array, plain: Array, other: Array, columns: range
) -> np.ndarray:
    """Which inputs change with each of some columns taken from other rows, (columns, inputs)."""
    points = np.repeat(rows[None], len(columns), axis=0)  # (columns, rows, features)
    for i, j in enumerate(columns):
        points[i, :, j] = other[:, j]
    found = inputs(points.reshape(-1, rows.shape[1])).reshape(len(columns), *plain.shape)
    return np.atleast_2d(_differ(found, plain).any(axis=1))


def _changed_if_taken(
    inputs: Callable[[Array], Array], rows: Array, plain: Array, other: Array, columns: range
) -> np.ndarray:
    """The same where transformers may refuse the values: those of a column that is refused change nothing."""
    try:
        return _changed(inputs, rows, plain, other, columns)
    except REFUSALS:
        if len(columns) == 1:
            return np.zeros((1, plain.shape[1]), bool)
    half = len(columns) // 2
    parts = [_changed_if_taken(inputs, rows, plain, other, part) for part in (columns[:half], columns[half:])]
    return np.concatenate(parts)


def _changed_by(
    inputs: Callable[[Array], Array], row: Array, plain: Array, column: int, values: Array
) -> np.ndarray:
    """Which inputs change with a column's values in one row, (inputs,); a value the model refuses is none."""
    points = np.repeat(row, len(values), axis=0)
    points[:, column] = values
    try:
        return np.atleast_1d(_differ(inputs(points), plain).any(axis=0))
    except REFUSALS:
        return np.zeros(plain.shape[1], bool)


def _prove(
    inputs: Callable[[Array], Array], background: Array, owner: np.ndarray, outside: Sequence[Array]
) -> None:
    """Check that mixtures of rows transform to the mixtures of their transforms, in and outside of the background."""
    count = np.arange(MIXTURES)
    first, second = background[count % len(background)], background[(count * 7 + 3) % len(background)]
    wrong = _mixed_up(inputs, first, second, owner)
    for other in outside:
        try:
            wrong |= _mixed_up(inputs, first[:PROBE_ROWS], np.tile(other, (PROBE_ROWS, 1)), owner)
        except REFUSALS:
            continue
    if wrong:
        raise Unsupported("the columns its trees see are not each made from one column.")


def _mixed_up(inputs: Callable[[Array], Array], first: Array, second: Array, owner: np.ndarray) -> bool:
    """Whether mixtures of rows do not transform to the mixtures of their transforms."""
    count, features = first.shape
    turns = np.arange(1, count + 1)[:, None] * np.sqrt(2.0) + np.arange(1, features + 1) ** 2 * np.sqrt(3.0)
    chosen = turns % 1.0 < 0.5  # (mixtures, features)
    expected = np.where(chosen[:, np.maximum(owner, 0)], inputs(first), inputs(second))
    return bool(_differ(inputs(np.where(chosen, first, second)), expected).any())


def owners_by_row(
    inputs: Callable[[Array], Array], base: Array, row: Array, columns: np.ndarray
) -> np.ndarray:
    """The features that some inputs of a row are made from: each is changed by one of them alone."""
    points = np.where(np.eye(len(row), dtype=bool), row, base)
    changed = _differ(inputs(points), inputs(base[None]))[:, columns]  # (features, columns)
    if (changed.sum(axis=0) != 1).any():
        raise ModelError("a column that the trees use depends on several columns of the table for this row.")
    return changed.argmax(axis=0)


def _differ(a: Array, b: Array) -> np.ndarray:
    return (a != b) & ~(np.isnan(a) & np.isnan(b))
