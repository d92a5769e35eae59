"""Effect: how much hangs on a feature's value.

    effect_j = root mean square over q of f(x with x_j = r_jq) - f(x)

with r_jq the evenly spaced quantiles of column j, all of them, at x itself: nothing is random and nothing is
chosen. A missing cell counts as one more value of its column. A category's effect is the same over its
levels, weighed by their frequency. There is no sign: other values may do either.
"""

from __future__ import annotations

import numpy as np

from texplainer.readings.reading import Found, Place
from texplainer.readings.references import References, references_of
from texplainer.readings.replaced import noise_floor, replaced
from texplainer.readings.wobble import MOVES, expected_change, moved
from texplainer.types import Array

TRIED = [1, 5, 10, 14, 16]  # the few references by which the wobble is judged


def effect(place: Place) -> Found:
    """Root-mean-square effects of the numeric features; 0 elsewhere."""
    references = references_of(place.background)
    columns = np.flatnonzero(place.predictor.schema.numeric)
    delta, weights = _deltas(place.rows, place.predictions, place, references, columns)
    values = np.zeros((*place.rows.shape, delta.shape[-1]))
    values[:, columns] = _rms(delta, weights)
    floor = noise_floor(place.predictor, place.predictions, place.background.output_spread)
    error = np.where(values > 0, floor[:, None, :], 0.0)
    wobble, spent = _wobble(place, references, columns, delta, weights)
    cost = (weights > 0).sum() + spent
    return Found(values, error, wobble, np.full(len(place.rows), cost))


def _deltas(
    rows: Array, f0: Array, place: Place, references: References, columns: np.ndarray
) -> tuple[Array, Array]:
    """f(x with a reference) - f(x), (rows, references, columns, outputs), and the references' weights."""
    weights = references.weights[:, columns]
    at, which = np.nonzero(weights > 0)
    count = len(rows)
    found = replaced(
        place.predictor,
        rows,
        np.repeat(np.arange(count), len(at)),
        np.tile(columns[which], count),
        np.tile(references.values[at, columns[which]], count),
    ).reshape(count, len(at), -1)
    found -= f0[:, None, :]
    found[np.abs(found) <= noise_floor(place.predictor, f0, place.background.output_spread)[:, None, :]] = 0.0
    delta = np.zeros((count, *weights.shape, found.shape[-1]))
    delta[:, at, which] = found
    return delta, weights


def _rms(delta: Array, weights: Array) -> Array:
    return np.sqrt(np.einsum("rqco,qc->rco", delta**2, weights))


def _wobble(
    place: Place, references: References, columns: np.ndarray, delta: Array, weights: Array
) -> tuple[Array, int]:
    """How much the effects change under small moves, by a few of the references."""
    few = References(references.values[TRIED], references.weights[TRIED])
    here = _rms(delta[:, TRIED], few.weights[:, columns])
    changes = []
    for rows in moved(place):
        there, _ = _deltas(rows, place.predictor(rows), place, few, columns)
        changes.append(_rms(there, few.weights[:, columns]) - here)
    size = np.sqrt((here**2).sum(axis=1))
    return (
        expected_change(changes, size, place.background.output_spread),
        MOVES * int((few.weights[:, columns] > 0).sum() + 1),
    )
