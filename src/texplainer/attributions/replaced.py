"""Rows with one cell replaced, and the reference values that replace it.

The reference values of a column are evenly spaced quantiles; a missing cell is one more value. Replaced rows are
predicted in pieces of bounded size, or their predictions come from an engine that knows them. A category is replaced
by every other one (`categories/swaps`); `with_categories` puts the values that follow beside those of the numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from texplainer.attributions.attribution import (
    Attribution,
    AttributionResult,
    ExplainContext,
    moved,
    relative,
)
from texplainer.background.summary import Background, block_of, of_equal_count
from texplainer.categories.detect import Categories
from texplainer.categories.swaps import Swap
from texplainer.gradients.moves import replaced
from texplainer.models.predictor import Predictor
from texplainer.types import Array

QUANTILES = 16


def predict_points(predictor: Predictor, points: Array) -> Array:
    """Predict points of any leading shape, (..., features) -> (..., outputs)."""
    return predictor(points.reshape(-1, points.shape[-1])).reshape(*points.shape[:-1], -1)


def replacement_effects(
    context: ExplainContext, row: np.ndarray, column: np.ndarray, values: Array
) -> tuple[Array, int]:
    """What f gains with each of the column's `values` (values, features) in some cells, and the predictions.

    The gains are (cells, values, outputs), the predictions those of one cell: none where the engine can tell.
    """
    if context.engine.replaced is not None:
        return context.engine.replaced(context.rows, row, column, values), 0
    count = len(values)
    cells = values[:, column].T.reshape(-1)
    there = replaced(context.predictor, context.rows, np.repeat(row, count), np.repeat(column, count), cells)
    return there.reshape(len(row), count, -1) - context.predictions[row][:, None, :], count


def noise_floor(predictor: Predictor, predictions: Array, output_sd: Array) -> Array:
    """What a difference of two predictions may be by rounding alone, (rows, outputs)."""
    return 8 * predictor.unit * (np.abs(predictions) + output_sd)


@dataclass(frozen=True)
class References:
    """Values (references, features) and their weights, which sum to 1 for every feature.

    The last reference is the missing cell, with the share of the background that misses it as its weight.
    """

    values: Array
    weights: Array


def references_of(background: Background) -> References:
    """The references of every column, made once."""
    return background.cached("references", lambda: _references(background.rows))


def values_of(background: Background) -> Array:
    """The references of every column between its smallest and its largest number, (values, features)."""

    def make() -> Array:
        finite = np.ma.masked_invalid(background.rows)
        ends = [np.ma.filled(end, np.nan) for end in (finite.min(axis=0), finite.max(axis=0))]
        return np.vstack([ends[0], references_of(background).values[:-1], ends[1]])

    return background.cached("values", make)


def _references(rows: Array) -> References:
    levels = (np.arange(QUANTILES) + 0.5) / QUANTILES
    values = np.full((QUANTILES + 1, rows.shape[1]), np.nan)
    weights = np.zeros_like(values)
    size = block_of(len(rows))
    for start in range(0, rows.shape[1], size):
        table = rows.T[start : start + size]  # (columns, rows)
        for which, known in of_equal_count(table, np.isfinite(table)):
            values[:-1, start + which] = np.quantile(known, levels, axis=1)
    present = np.isfinite(rows).sum(axis=0) / len(rows)
    weights[:-1], weights[-1] = present / QUANTILES, 1.0 - present
    return References(values, weights)


# ---------------------------------------------------------------- other categories


def with_categories(
    found: AttributionResult,
    context: ExplainContext,
    categories: Categories,
    swaps: Sequence[Swap],
    spec: Attribution,
) -> AttributionResult:
    """The answer with every categorical feature's own value in place, by the attribution's formula for categories.

    How much the categories' values change under a small move of the numbers is seen at one moved row.
    """
    formula, scale = spec.category, spec.comparable(context)
    if formula is None:
        return found
    columns = [feature.column for feature in categories.features]
    values = categories.fill(found.values, swaps, formula)
    error = np.array(found.error, dtype=float)
    floor = noise_floor(context.predictor, context.predictions, context.background.output_sd)
    error[:, columns] = np.where(values[:, columns] == 0, 0.0, floor[:, None, :])
    sd = context.background.output_sd
    numeric = _size(found.values, scale)
    change = found.relative_change * numeric
    cost = found.evaluations
    if context.predictor.schema.numeric.any():
        there = moved(context)[0]
        other = categories.fill(values, categories.swaps(there, context.predictor(there)), formula)
        change = np.sqrt(change**2 + ((other - values)[:, columns] ** 2).sum(axis=1))
        cost = cost + categories.evaluations + 1
    relative_change = relative(change, _size(values, scale), sd)
    return replace(found, values=values, error=error, relative_change=relative_change, evaluations=cost)


def _size(values: Array, scale: Array) -> Array:
    return np.sqrt(((values * scale[:, None]) ** 2).sum(axis=1))
