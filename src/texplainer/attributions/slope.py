"""Slopes: what the model reacts to, here (`local`), and the derivative at the point (`sensitivity`).

    local_j = sigma_j x slope of f along feature j, averaged over a small neighbourhood of x
    sensitivity_j = df/dx_j at x, the paper's; with step="paper" by its Algorithm 1

A category has no "more": its value is f(x) - sum_c pi_c f(x with level c), what this level does compared with
the average one, in the unit of sigma x slope. A missing cell is one more level of its column: present against
missing.
"""

from __future__ import annotations

import numpy as np

from texplainer.readings.reading import Found, Place
from texplainer.readings.references import references_of
from texplainer.readings.replaced import gains, noise_floor
from texplainer.readings.wobble import expected_change, moved, relative
from texplainer.types import Array


def local(place: Place) -> Found:
    """sigma_j x the averaged slope: the change of f for one spread more."""
    return _slopes(place, place.background.unit)


def sensitivity(place: Place) -> Found:
    """The derivative itself: the change of f per unit of the feature."""
    return _slopes(place, np.ones(place.rows.shape[1]))


def _slopes(place: Place, unit: Array) -> Found:
    gradient = place.engine.gradient(place.rows)
    spread = place.background.unit[:, None]
    size = np.sqrt(((gradient.values * spread) ** 2).sum(axis=1))  # (rows, outputs)
    cost = np.array(gradient.evaluations, dtype=np.int64)
    if gradient.change is not None:
        wobble = relative(gradient.change, size, place.background.output_spread)
    else:
        wobble, spent = _probed(place, gradient.values, size)
        cost += spent
    values, error = gradient.values * unit[:, None], gradient.error * unit[:, None]
    cost += _fill_missing(place, values, error)
    arrays = {"step": gradient.step, "flags": gradient.flags, **gradient.extras}
    return Found(values, error, wobble, cost, gradient.values, arrays)


def _probed(place: Place, here: Array, size: Array) -> tuple[Array, np.ndarray]:
    """The slopes taken again at moved rows; once where each costs many evaluations."""
    spread, changes, cost = place.background.unit[:, None], [], np.zeros(len(here), dtype=np.int64)
    for rows in moved(place)[: None if place.engine.exact else 1]:
        there = place.engine.gradient(rows)
        changes.append((there.values - here) * spread)
        cost += there.evaluations
    return expected_change(changes, size, place.background.output_spread), cost


def _fill_missing(place: Place, values: Array, error: Array) -> np.ndarray:
    """Give missing cells their value: f(x) against the mean of f over the column's values."""
    cost = np.zeros(len(values), dtype=np.int64)
    missing = np.isnan(place.rows) & place.predictor.schema.numeric
    row, column = np.nonzero(missing)
    if not len(row):
        return cost
    references = references_of(place.background)
    weights = references.weights[:-1, column]  # (references, cells); the cell's own level changes nothing
    delta, count = gains(place, row, column, references.values[:-1])  # (cells, references, outputs)
    floor = noise_floor(place.predictor, place.predictions, place.background.output_spread)[row]
    delta[np.abs(delta) <= floor[:, None, :]] = 0.0
    values[row, column] = 0.0 - np.einsum("eqo,qe->eo", delta, weights)
    error[row, column] = floor
    return cost + count * missing.sum(axis=1)
