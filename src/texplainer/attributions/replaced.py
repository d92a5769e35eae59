"""Rows with one cell replaced: predicted in pieces of bounded size, or told by an engine that knows."""

from __future__ import annotations

import numpy as np

from texplainer.attributions.attribution import ExplainContext
from texplainer.models.predictor import Predictor
from texplainer.types import Array


def predict_points(predictor: Predictor, points: Array) -> Array:
    """Predict points of any leading shape, (..., features) -> (..., outputs)."""
    return predictor(points.reshape(-1, points.shape[-1])).reshape(*points.shape[:-1], -1)


def replaced(predictor: Predictor, rows: Array, row: np.ndarray, column: np.ndarray, cells: Array) -> Array:
    """F of rows[row] with the cell in `column` replaced, (entries, outputs)."""
    out = np.empty((len(row), len(predictor.outputs)))
    size = predictor.piece(rows.shape[1])
    for first in range(0, len(row), size):
        part = slice(first, first + size)
        points = rows[row[part]]
        points[np.arange(len(points)), column[part]] = cells[part]
        out[part] = predictor(points)
    return out


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
