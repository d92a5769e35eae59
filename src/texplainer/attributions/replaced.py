"""Rows with one cell replaced, and the reference values that replace it.

The reference values of a column are evenly spaced quantiles; a missing cell is one more value. Replaced rows are
predicted in pieces of bounded size, or their predictions come from an engine that knows them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from texplainer.attributions.attribution import ExplainContext
from texplainer.background.summary import Background, block_of, of_equal_count
from texplainer.models.predictor import Predictor
from texplainer.types import Array

QUANTILES = 16


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
