"""Rows with one cell replaced, and the reference values that replace it.

The reference values of a column are values that occur in it, weighted by how often they do; a missing cell is one
more value. Replaced rows are predicted in pieces of bounded size, or their predictions come from an engine that knows
them. A category is replaced by every other one (`categories/swaps`); `with_categories` puts the values that follow
beside those of the numbers.
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

REFERENCES = 16  # of a column, beside the missing cell
SAME = 1e-11  # SDs: values so close are one, as those of a column that went through a scaler and back


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
    """Values (references, features) in increasing order and their weights, which sum to 1 for every feature.

    A value that makes up at least a sixteenth of a column stands for itself, with its frequency; so do all values
    of a column of at most 16. The others are represented by evenly spaced ones of them. A reference of weight 0
    repeats its neighbour. The last reference is the missing cell, with the share of the background that misses it
    as its weight.
    """

    values: Array
    weights: Array

    def few(self) -> tuple[np.ndarray, References]:
        """Four of them and the missing cell, and which they are, (5, features).

        Of every four neighbours the one with most weight stands for all.
        """
        quarters = self.weights[:-1].reshape(4, -1, self.weights.shape[1])
        most = quarters.argmax(axis=1) + len(quarters[0]) * np.arange(4)[:, None]
        which = np.vstack([most, np.full(most.shape[1:], REFERENCES)])
        weights = np.vstack([quarters.sum(axis=1), self.weights[-1:]])
        return which, References(np.take_along_axis(self.values, which, axis=0), weights)


def references_of(background: Background) -> References:
    """The references of every column, made once."""
    return background.cached("references", lambda: _references(background.rows, background.sigma))


def values_of(background: Background) -> Array:
    """The references of every column between its smallest and its largest number, (values, features)."""

    def make() -> Array:
        finite = np.ma.masked_invalid(background.rows)
        ends = [np.ma.filled(end, np.nan) for end in (finite.min(axis=0), finite.max(axis=0))]
        return np.vstack([ends[0], references_of(background).values[:-1], ends[1]])

    return background.cached("values", make)


def _references(rows: Array, sd: Array) -> References:
    values = np.full((REFERENCES + 1, rows.shape[1]), np.nan)
    weights = np.zeros_like(values)
    size = block_of(len(rows))
    for start in range(0, rows.shape[1], size):
        table = rows.T[start : start + size]  # (columns, rows)
        for which, known in of_equal_count(table, np.isfinite(table)):
            columns = start + which
            values[:-1, columns], weights[:-1, columns] = _represented(known, sd[columns])
    present = np.isfinite(rows).sum(axis=0) / len(rows)
    weights[:-1] *= present
    weights[-1] = 1.0 - present
    return References(values, weights)


def _represented(known: Array, sd: Array) -> tuple[Array, Array]:
    """The references of columns without missing cells, (columns, rows), and their weights, (references, columns)."""
    known = np.sort(known, axis=1)
    columns, count = known.shape
    close = SAME * sd[:, None] + 4 * np.finfo(float).eps * np.abs(known)
    first = np.diff(known, axis=1, prepend=-np.inf) > close  # of its value
    starts = np.flatnonzero(first)
    repeats = np.diff(np.append(starts, known.size))
    column, distinct = starts // count, first.sum(axis=1)
    itself = (repeats * REFERENCES >= count) | (distinct[column] <= REFERENCES)
    # values that stand for themselves come first, in the order of a column, then those of the rest
    values, weights = np.zeros((columns, REFERENCES)), np.zeros((columns, REFERENCES))
    own = np.bincount(column[itself], minlength=columns)
    slot = np.arange(itself.sum()) - np.repeat(np.cumsum(own) - own, own)
    values[column[itself], slot] = known.ravel()[starts[itself]]
    weights[column[itself], slot] = repeats[itself] / count
    rest = np.sort(np.where(np.repeat(itself, repeats).reshape(known.shape), np.inf, known), axis=1)
    left = np.bincount(column, np.where(itself, 0, repeats), columns)
    for slot in range(REFERENCES):
        some = np.flatnonzero((left > 0) & (own <= slot))
        nodes = REFERENCES - own[some]
        middle = (2 * (slot - own[some]) + 1) * left[some]  # of the node's part of the rest, times 2 nodes
        rank = (middle.astype(int) - 1) // (2 * nodes)
        values[some, slot], weights[some, slot] = rest[some, rank], left[some] / nodes / count
    used = np.where(left > 0, REFERENCES, own)[:, None]
    order = np.argsort(np.where(np.arange(REFERENCES) < used, values, np.inf), axis=1, kind="stable")
    # fewer than 16 are repeated, so that every quarter has some
    place = np.arange(REFERENCES) * used // REFERENCES
    again = np.diff(place, axis=1, prepend=-1) == 0
    order = np.take_along_axis(order, place, axis=1)
    weights = np.where(again, 0.0, np.take_along_axis(weights, order, axis=1))
    return np.take_along_axis(values, order, axis=1).T, weights.T


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
