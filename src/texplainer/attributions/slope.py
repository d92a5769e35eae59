"""Slopes: what the model reacts to, here (`slope`), and the derivative at the point (`gradient`).

    slope_j = sigma_j x slope of f along feature j, averaged over a small neighbourhood of x
    gradient_j    = df/dx_j at x, the paper's; with step="paper" by its Algorithm 1

A category has no "more": its value is f(x) - sum_c pi_c f(x with level c), what this level does compared with
the average one, in the unit of sigma x slope. A missing cell is one more level of its column: present against
missing.
"""

from __future__ import annotations

import numpy as np

from texplainer.attributions.attribution import AttributionResult, ExplainContext
from texplainer.attributions.references import references_of
from texplainer.attributions.replaced import noise_floor, replacement_effects
from texplainer.attributions.stability import expected_change, moved, relative
from texplainer.types import Array


def slope(context: ExplainContext) -> AttributionResult:
    """sigma_j x the averaged slope: the change of f for one SD more."""
    return _slopes(context, context.background.unit)


def gradient(context: ExplainContext) -> AttributionResult:
    """The derivative itself: the change of f per unit of the feature."""
    return _slopes(context, np.ones(context.rows.shape[1]))


def _slopes(context: ExplainContext, unit: Array) -> AttributionResult:
    gradient = context.engine.gradient(context.rows)
    sd = context.background.unit[:, None]
    size = np.sqrt(((gradient.values * sd) ** 2).sum(axis=1))  # (rows, outputs)
    cost = np.array(gradient.evaluations, dtype=np.int64)
    if gradient.change is not None:
        relative_change = relative(gradient.change, size, context.background.output_sd)
    else:
        relative_change, spent = _probed(context, gradient.values, size)
        cost += spent
    values, error = gradient.values * unit[:, None], gradient.error * unit[:, None]
    cost += _fill_missing(context, values, error)
    arrays = {"step": gradient.step, "flags": gradient.flags, **gradient.extras}
    return AttributionResult(values, error, relative_change, cost, gradient.values, arrays)


def _probed(context: ExplainContext, here: Array, size: Array) -> tuple[Array, np.ndarray]:
    """The slopes taken again at moved rows; once where each costs many evaluations."""
    sd, changes, cost = context.background.unit[:, None], [], np.zeros(len(here), dtype=np.int64)
    for rows in moved(context)[: None if context.engine.exact else 1]:
        there = context.engine.gradient(rows)
        changes.append((there.values - here) * sd)
        cost += there.evaluations
    return expected_change(changes, size, context.background.output_sd), cost


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
