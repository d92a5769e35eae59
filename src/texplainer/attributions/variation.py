"""Variation: how much the prediction depends on a feature.

    variation_j = root mean square over q of f(x with x_j = r_jq) - f(x), weighted

with r_jq sixteen values of column j and their weights (`replaced.References`), all of them at x itself: nothing is
random. A missing cell counts as one more value of its column. A category's variation is the same over its
categories, weighted by their frequency. There is no sign: other values may do either.
"""

from __future__ import annotations

import numpy as np

from texplainer.attributions.attribution import (
    MOVES,
    AttributionResult,
    ExplainContext,
    expected_change,
    moved,
)
from texplainer.attributions.replaced import References, noise_floor, references_of
from texplainer.gradients.moves import replaced
from texplainer.types import Array


def variation(context: ExplainContext) -> AttributionResult:
    """Root-mean-square effects of the numeric features; 0 elsewhere."""
    references = references_of(context.background)
    columns = np.flatnonzero(context.predictor.schema.numeric)
    floor = noise_floor(context.predictor, context.predictions, context.background.output_sd)[:, None]
    delta, weights = _deltas(context.rows, context.predictions, context, references, columns)
    values, error = (np.zeros((*context.rows.shape, delta.shape[-1])) for _ in range(2))
    values[:, columns] = _rms(delta, weights, floor)
    error[:, columns] = np.where((delta != 0).any(axis=1), floor, 0.0)  # round-off may hide an effect
    relative_change, spent = _relative_change(context, references, columns, delta, floor)
    cost = (weights > 0).sum() + spent
    return AttributionResult(values, error, relative_change, np.full(len(context.rows), cost))


def _deltas(
    rows: Array, f0: Array, context: ExplainContext, references: References, columns: np.ndarray
) -> tuple[Array, Array]:
    """f(x with a reference) - f(x), (rows, references, columns, outputs), and the references' weights."""
    weights = references.weights[:, columns]
    at, which = np.nonzero(weights > 0)
    count = len(rows)
    found = replaced(
        context.predictor,
        rows,
        np.repeat(np.arange(count), len(at)),
        np.tile(columns[which], count),
        np.tile(references.values[at, columns[which]], count),
    ).reshape(count, len(at), f0.shape[1])
    found -= f0[:, None, :]
    delta = np.zeros((count, *weights.shape, found.shape[-1]))
    delta[:, at, which] = found
    return delta, weights


def _rms(delta: Array, weights: Array, floor: Array) -> Array:
    """Root mean squares (rows, columns, outputs); what round-off may be, `floor` (rows, 1, outputs), counts as 0."""
    squares = np.where(np.abs(delta) <= floor[:, None], 0.0, delta**2)
    return np.sqrt(np.einsum("rqco,qc->rco", squares, weights))


def _relative_change(
    context: ExplainContext, references: References, columns: np.ndarray, delta: Array, floor: Array
) -> tuple[Array, int]:
    """How much the values change under small moves, by a few of the references."""
    which, few = references.few()
    weights = few.weights[:, columns]
    here = _rms(np.take_along_axis(delta, which[None, :, columns, None], axis=1), weights, floor)
    changes = []
    for rows in moved(context):
        there, _ = _deltas(rows, context.predictor(rows), context, few, columns)
        changes.append(_rms(there, weights, floor) - here)
    size = np.sqrt((here**2).sum(axis=1))
    return (
        expected_change(changes, size, context.background.output_sd),
        MOVES * int((weights > 0).sum() + 1),
    )
