"""What the trees of a Pipeline see: its transformed columns, and the raw column each is made from.

Which column comes from which is found by changing one raw column at a time, and proven on mixtures of
background rows: a mixture must transform to the mixture.
"""

from __future__ import annotations

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
    for j in range(count):  # and a missing value
        depends[j] |= _changed_by(inputs, rows[:1], plain[:1], j, np.array([np.nan]))
    for j in range(count):
        depends[j] |= _changed_by(inputs, rows[:1], plain[:1], j, np.unique(background[:, j])[:CHECK_ROWS])
    several = np.flatnonzero(depends.sum(axis=0) > 1)
    if len(several):
        names = [predictor.schema.names[j] for j in np.flatnonzero(depends[:, several[0]])[:3]]
        raise Unsupported(f"a column its trees see is made from several columns ({', '.join(names)}).")
    owner = np.where(depends.any(axis=0), depends.argmax(axis=0), -1)
    _prove(inputs, background, owner)
    return owner


def _changed(
    inputs: Callable[[Array], Array], rows: Array, plain: Array, other: Array, columns: range
) -> np.ndarray:
    """Which inputs change with each of some columns taken from other rows, (columns, inputs)."""
    points = np.repeat(rows[None], len(columns), axis=0)  # (columns, rows, features)
    for i, j in enumerate(columns):
        points[i, :, j] = other[:, j]
    found = inputs(points.reshape(-1, rows.shape[1])).reshape(len(columns), *plain.shape)
    return np.atleast_2d(_differ(found, plain).any(axis=1))


def _changed_by(
    inputs: Callable[[Array], Array], row: Array, plain: Array, column: int, values: Array
) -> np.ndarray:
    """Which inputs change with a column's values in one row, (inputs,); a value the model refuses is none."""
    points = np.repeat(row, len(values), axis=0)
    points[:, column] = values
    try:
        return np.atleast_1d(_differ(inputs(points), plain).any(axis=0))
    except (ModelError, ValueError, TypeError, KeyError, IndexError):
        return np.zeros(plain.shape[1], bool)


def _prove(inputs: Callable[[Array], Array], background: Array, owner: np.ndarray) -> None:
    """Check that mixtures of background rows transform to the mixtures of their transforms."""
    count, features = MIXTURES, background.shape[1]
    first = background[np.arange(count) % len(background)]
    second = background[(np.arange(count) * 7 + 3) % len(background)]
    turns = np.arange(1, count + 1)[:, None] * np.sqrt(2.0) + np.arange(1, features + 1) ** 2 * np.sqrt(3.0)
    chosen = turns % 1.0 < 0.5  # (mixtures, features)
    expected = np.where(chosen[:, np.maximum(owner, 0)], inputs(first), inputs(second))
    if _differ(inputs(np.where(chosen, first, second)), expected).any():
        raise Unsupported("the columns its trees see are not each made from one column.")


def owners_by_row(
    inputs: Callable[[Array], Array], base: Array, row: Array, columns: np.ndarray
) -> np.ndarray:
    """The features that some inputs of a row are made from: those that change them alone."""
    points = np.where(np.eye(len(row), dtype=bool), row, base)
    changed = _differ(inputs(points), inputs(base[None]))[:, columns]  # (features, columns)
    if (changed.sum(axis=0) > 1).any():
        raise ModelError("a column that the trees use depends on several columns of the table for this row.")
    return np.where(changed.any(axis=0), changed.argmax(axis=0), -1)


def _differ(a: Array, b: Array) -> np.ndarray:
    return (a != b) & ~(np.isnan(a) & np.isnan(b))
