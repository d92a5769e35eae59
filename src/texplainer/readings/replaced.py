"""Rows with one cell replaced, predicted in pieces of bounded size."""

from __future__ import annotations

import numpy as np

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


def noise_floor(predictor: Predictor, predictions: Array, output_spread: Array) -> Array:
    """What a difference of two predictions may be by rounding alone, (rows, outputs)."""
    return 8 * predictor.unit * (np.abs(predictions) + output_spread)
