"""Slopes: what a small change would do (`slope`), and the derivative at the point (`gradient`).

    slope_j    = SD_j x (mean of f over moves of x_j upwards - mean of f over moves downwards)
                 / (mean move up - mean move down), all other features as in the row
    gradient_j = df/dx_j at x, the paper's; with step="paper" by its Algorithm 1

Moves are uniform over sqrt(6) `smoothing` SDs (0.61 SD by default) on either side, inside the data's range: the
derivative averaged over a triangular kernel of `smoothing` SDs (0.25), the same for every model and engine
(`gradients/moves`). The slope of a discrete column is the difference of f between the neighbouring observed
values, per unit (`differences`).

A category has no slope: its value is f(x) - sum_c pi_c f(x with category c), what this category does compared
with the average one. A missing value is one more category of its column: present against missing.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from texplainer.attributions.attribution import (
    MOVES,
    AttributionResult,
    ExplainContext,
    moved,
    normally_moved,
    relative,
)
from texplainer.attributions.differences import discrete_slopes
from texplainer.attributions.replaced import noise_floor, references_of, replacement_effects, values_of
from texplainer.gradients.engine import Gradient, Settings
from texplainer.gradients.moves import MOST, TREE_MOVES, AveragedDifferences, moves_of, rounded
from texplainer.types import Array

ZERO = 1e-6  # of a row's largest slope per SD
FEW = [0, 6, 11, 17]  # of the other values of a column: its ends and two quantiles


def slope(context: ExplainContext) -> AttributionResult:
    """SD_j x the averaged slope: per SD, averaged over a quarter SD around the row."""
    return _slopes(context, context.background.unit)


def gradient(context: ExplainContext) -> AttributionResult:
    """The derivative itself: the change of f per unit of the feature."""
    return _slopes(context, np.ones(context.rows.shape[1]))


def _slopes(context: ExplainContext, unit: Array) -> AttributionResult:
    found = context.engine.gradient(context.rows)
    change, cost = _change(context, found)  # (rows, outputs)
    found = _asked_of_fractions(context, found)
    slopes, error = found.values, np.array(found.error, dtype=float)
    cost = cost + found.evaluations
    averaged = context.engine.width and not context.engine.linear  # a plane's differences are its gradient
    columns = context.background.discrete.columns if averaged else []
    if columns:
        slopes = slopes.copy()
        slopes[:, columns], error[:, columns], each = discrete_slopes(
            context, context.rows, context.predictions
        )
        sd, squares = context.background.unit[columns, None], []
        moves = moved(context)[: MOVES if context.engine.exact else 1]
        for rows in moves:
            there = discrete_slopes(context, rows, context.predictor(rows))[0]
            squares.append((((there - slopes[:, columns]) * sd) ** 2).sum(axis=1))
        change = np.sqrt(change**2 + np.mean(squares, axis=0))
        cost += each + len(moves) * (each + 1)
    size = np.sqrt(((slopes * context.background.unit[:, None]) ** 2).sum(axis=1))  # (rows, outputs)
    values, error = slopes * unit[:, None], error * unit[:, None]
    flat, spent = _flat(context, slopes)
    cost += spent + _fill_missing(context, values, error)
    arrays = {"step": found.step, "flags": found.flags, "flat": flat, **found.extras}
    relative_change = relative(change, size, context.background.output_sd)
    return AttributionResult(values, error, relative_change, cost, slopes, arrays)


def _asked_of_fractions(context: ExplainContext, found: Gradient) -> Gradient:
    """The slopes of trees, from predictions for rows with a fraction in a column of whole numbers.

    Trees move their thresholds on such a column to the middle between two whole numbers: a fraction may lie between.
    """
    cells = context.rows[:, list(context.background.discrete.integers)]
    odd = np.isfinite(cells) & (cells != rounded(cells))
    at = np.flatnonzero(odd.any(axis=1) & (found.evaluations == 0))
    if not context.engine.averages or not len(at):
        return found
    settings = Settings("auto", context.engine.width, context.bounds, discrete=context.background.discrete)
    asked = moves_of(context.predictor, context.background.rows, settings)
    slopes = AveragedDifferences(context.predictor, asked, context.background.sigma, MOST, steps=True)
    there = slopes(context.rows[at])
    values, error, evaluations = found.values.copy(), np.array(found.error, float), found.evaluations.copy()
    values[at], error[at], evaluations[at] = there.values, there.error, there.evaluations
    return replace(found, values=values, error=error, evaluations=evaluations)


def _change(context: ExplainContext, found: Gradient) -> tuple[Array, np.ndarray]:
    """How much the continuous features' values change, (rows, outputs), and the evaluations spent on it.

    As the engine tells, or from the slopes at moved rows: trees at some of several lengths, which their steps
    need, others at one.
    """
    cost = np.zeros(len(found.values), dtype=np.int64)
    if found.change is not None:
        return found.change, cost
    sd, lengths = context.background.unit[:, None], []
    for rows in normally_moved(context, TREE_MOVES) if context.engine.averages else moved(context)[:1]:
        there = context.engine.gradient(rows)
        lengths.append(np.sqrt((((there.values - found.values) * sd) ** 2).sum(axis=1)))
        cost += there.evaluations
    return np.mean(lengths, axis=0), cost


def _flat(context: ExplainContext, slopes: Array) -> tuple[np.ndarray, np.ndarray]:
    """Where a slope is 0 but other values of the column change f, (rows, features, outputs); evaluations.

    The other values are the column's ends and quantiles: all of them where the trees tell at once, otherwise a few.
    """
    cost, flat = np.zeros(len(slopes), dtype=np.int64), np.zeros(slopes.shape, bool)
    size = np.abs(slopes) * context.background.unit[:, None]
    zero = size <= ZERO * size.max(axis=1, keepdims=True, initial=0.0)
    values = values_of(context.background)
    asked = zero.any(axis=2) & np.isfinite(context.rows) & context.predictor.schema.numeric
    asked &= (np.isfinite(values)[:, None] & (values[:, None] != context.rows)).any(axis=0)
    # the derivative at a point says nothing of its surroundings, that of a plane all
    if not context.engine.width or context.engine.linear or not asked.any():
        return flat, cost
    floor = noise_floor(context.predictor, context.predictions, context.background.output_sd)
    if context.engine.replaced is None:
        values = values[FEW]
        cost += len(FEW) * asked.any(axis=1)
        asked &= _react_together(context, asked, values, floor)[:, None]
    row, column = np.nonzero(asked)
    if not len(row):
        return flat, cost
    delta, count = replacement_effects(context, row, column, values)  # (cells, values, outputs)
    flat[row, column] = (np.abs(delta) > floor[row, None]).any(axis=1)
    return flat & zero, cost + count * asked.sum(axis=1)


def _react_together(context: ExplainContext, asked: np.ndarray, values: Array, floor: Array) -> np.ndarray:
    """Rows whose f changes as all cells asked for take other values at once: most have none to look for."""
    rows, features = np.flatnonzero(asked.any(axis=1)), np.arange(asked.shape[1])
    out = np.zeros(len(asked), bool)
    for shift in range(len(values)):
        other = values[(shift + features) % len(values), features]
        there = context.predictor(np.where(asked[rows], other, context.rows[rows]))
        out[rows] |= (np.abs(there - context.predictions[rows]) > floor[rows]).any(axis=1)
    return out


def _fill_missing(context: ExplainContext, values: Array, error: Array) -> np.ndarray:
    """Give missing cells their value: f(x) against the mean of f over the column's values."""
    cost = np.zeros(len(values), dtype=np.int64)
    missing = np.isnan(context.rows) & context.predictor.schema.numeric
    row, column = np.nonzero(missing)
    if not len(row):
        return cost
    references = references_of(context.background)
    weights = references.weights[:-1, column]  # (references, cells); the cell's own level changes nothing
    delta, count = replacement_effects(
        context, row, column, references.values[:-1]
    )  # (cells, references, outputs)
    floor = noise_floor(context.predictor, context.predictions, context.background.output_sd)[row]
    delta[np.abs(delta) <= floor[:, None, :]] = 0.0
    values[row, column] = 0.0 - np.einsum("eqo,qe->eo", delta, weights)
    error[row, column] = floor
    return cost + count * missing.sum(axis=1)
