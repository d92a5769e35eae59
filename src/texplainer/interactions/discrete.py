"""Interactions of discrete columns: how slopes differ between the neighbouring observed values.

A 0/1 column or a count has no second derivative. As its slope is the difference of f between the neighbouring
values, per unit, its interaction with feature k is that difference of feature k's slope,

    sigma_j sigma_k (slope_k(x with the value above) - slope_k(x with the value below)) / (above - below).

For another discrete column this is a double difference of predictions. The term with itself is the second
divided difference over the three nearest observed values; two values have none. All are 0 for a linear model,
and do not depend on the engine.
"""

from __future__ import annotations

import numpy as np

from texplainer.attributions.attribution import ExplainContext
from texplainer.attributions.differences import slopes_and_differences
from texplainer.attributions.replaced import noise_floor, replaced
from texplainer.interactions.second_order import SecondOrder
from texplainer.types import Array

ROUNDINGS = 64  # of the steepest slope: below it there is no response


def with_discrete(found: SecondOrder, context: ExplainContext) -> SecondOrder:
    """The answer with the rows and columns of every discrete feature in place."""
    columns = context.background.discrete.columns
    if not columns:
        return found
    values, error, cost = found.values.copy(), found.error.copy(), found.evaluations
    values[:, columns] = values[:, :, columns] = error[:, columns] = error[:, :, columns] = 0.0
    for j in columns:
        value, bound, spent = _slope_difference(context, j)
        for array, part in ((values, value), (error, bound)):
            array[:, j] = array[:, :, j] = part
        cost = cost + spent
    for j in columns:
        values[:, j, j], error[:, j, j] = _curvature(context, j)
    return SecondOrder(values, error, cost + 2 * len(columns))


def _slope_difference(context: ExplainContext, column: int) -> tuple[Array, Array, np.ndarray]:
    """Column j against all features, (rows, features, outputs), its bound, and the evaluations (rows,)."""
    low, high = context.background.discrete.neighbours(context.rows, column)
    gap = np.nan_to_num(high - low)
    ends = [context.rows.copy(), context.rows.copy()]
    for rows, cell in zip(ends, (low, high), strict=True):
        rows[:, column] = cell
    (below, first, cost), (above, second, spent) = (slopes_and_differences(context, rows) for rows in ends)
    change = above - below
    sigma, numeric = context.background.sigma, context.predictor.schema.numeric
    change[np.abs(change) <= _rounding(context, above, below)] = 0.0
    # both ends see the same points: of what they miss, little is left in the difference
    bound = np.where(change == 0, 0.0, np.hypot(first, second))
    per_unit = np.divide(sigma[column], gap, out=np.zeros_like(gap), where=gap > 0)
    unit = per_unit[:, None, None] * np.where(numeric, sigma, 0.0)[:, None]
    return change * unit, bound * unit, cost + spent


def _rounding(context: ExplainContext, above: Array, below: Array) -> Array:
    """What rounding alone may make of a difference of two slopes, (rows, features, outputs)."""
    background, engine = context.background, context.engine
    sigma = background.sigma[:, None]
    steepest = np.maximum(np.abs(above), np.abs(below)) * sigma
    floor = ROUNDINGS * context.predictor.unit * steepest.max(axis=1, keepdims=True, initial=0.0)
    predicted = background.discrete.mask(len(sigma)) | (not engine.exact)  # slopes from predictions
    noise = noise_floor(context.predictor, context.predictions, background.output_sd)[:, None]
    return (floor + np.where(predicted[:, None], 2 * noise / engine.width, 0.0)) / sigma


def _curvature(context: ExplainContext, column: int) -> tuple[Array, Array]:
    """The second divided difference of a column, (rows, outputs), and its bound."""
    rows, outputs = context.rows, len(context.predictor.outputs)
    values, error = np.zeros((2, len(rows), outputs))
    cells = _three_nearest(context, column)
    which = np.flatnonzero(np.all(np.diff(cells, axis=0) > 0, axis=0))
    cells = cells[:, which]
    f = replaced(
        context.predictor, rows, np.tile(which, 3), np.full(3 * len(which), column), cells.reshape(-1)
    ).reshape(3, len(which), outputs)
    floor = noise_floor(context.predictor, context.predictions, context.background.output_sd)[which]
    gap = np.diff(cells, axis=0)[:, :, None]
    slopes = np.diff(f, axis=0) / gap
    across = 2 * context.background.sigma[column] ** 2 / (cells[2] - cells[0])[:, None]
    second, bound = (slopes[1] - slopes[0]) * across, floor * (1 / gap).sum(axis=0) * across
    values[which] = np.where(np.abs(second) <= bound, 0.0, second)
    error[which] = np.where(values[which] == 0, 0.0, bound)
    return values, error


def _three_nearest(context: ExplainContext, column: int) -> Array:
    """The row's own value between its neighbours, at an edge the next two, (3, rows); not rising without."""
    discrete, own = context.background.discrete, context.rows[:, column]
    low, high = discrete.neighbours(context.rows, column)
    outer = []
    for side, cell in enumerate((low, high)):
        rows = context.rows.copy()
        rows[:, column] = cell
        outer.append(discrete.neighbours(rows, column)[side])
    inner = np.stack([low, own, high])
    lowest, highest = np.stack([own, high, outer[1]]), np.stack([outer[0], low, own])
    return np.where(low == own, lowest, np.where(high == own, highest, inner))
