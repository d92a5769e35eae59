"""Slopes of discrete columns: differences of predictions between neighbouring observed values.

    slope_j = (f(x with the next value above) - f(x with the next value below)) / (above - below)

At an edge, and for two values, one of them is the row's own: 0/1 gives f(1) - f(0). The same for every
engine, so that it does not matter how a model is given.
"""

from __future__ import annotations

import numpy as np

from texplainer.attributions.attribution import ExplainContext
from texplainer.attributions.replaced import noise_floor
from texplainer.gradients.moves import replaced
from texplainer.types import Array


def discrete_slopes(context: ExplainContext, rows: Array, predictions: Array) -> tuple[Array, Array, int]:
    """Slopes per unit of the discrete columns, (rows, columns, outputs), their errors, evaluations a row.

    Differences within the model's round-off are exactly 0: so is the slope of an unused feature, with its error.
    """
    discrete, outputs = context.background.discrete, predictions.shape[1]
    shape = (len(rows), len(discrete.columns), outputs)
    ends = np.zeros((2, *shape))  # f below and above
    gap = np.zeros(shape[:2])
    row, column, cell, where = [], [], [], []
    for position, j in enumerate(discrete.columns):
        low, high = discrete.neighbours(rows, j)
        gap[:, position] = np.nan_to_num(high - low)
        for side, at in enumerate((low, high)):
            ends[side, :, position] = predictions
            other = np.flatnonzero((at != rows[:, j]) & ~np.isnan(at))
            row.append(other)
            column.append(np.full(len(other), j))
            cell.append(at[other])
            where.append((side, other, position))
    found = replaced(context.predictor, rows, *(np.concatenate(part) for part in (row, column, cell)))
    for (side, other, position), part in zip(
        where, np.split(found, np.cumsum([len(r) for r in row])[:-1]), strict=True
    ):
        ends[side, other, position] = part
    change = ends[1] - ends[0]
    floor = noise_floor(context.predictor, predictions, context.background.output_sd)[:, None]
    known = gap[:, :, None] > 0
    used = known & (change != 0)  # round-off may hide an effect
    change[np.abs(change) <= floor] = 0.0
    per_unit = np.divide(1.0, gap[:, :, None], out=np.zeros((*shape[:2], 1)), where=known)
    return change * per_unit, np.where(used, floor * per_unit, 0.0), 2 * shape[1]
