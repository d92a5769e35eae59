"""Contributions from exact gradients: pairs of a background row and a place on its line to x.

    T_j(x; b) = (x_j - b_j) df/dx_j at b + t_b (x - b)

Every start has its own place t_b, spread by the golden section over the starts, instead of every start the
same grid: many starts matter more than many places (Integrated Gradients averages many places of one start;
Sundararajan et al. 2017; Erion et al. 2021). What the single places miss of a row's sum is put right by
tilting the weights of its pairs.

Categories and cells that are missing at either end cannot be followed along a line. They are changed one
after the other, at x after the numbers have moved for half of the starts, at the start before they move for
the others.
"""

from __future__ import annotations

import numpy as np

from texplainer.attributions.attribution import ExplainContext
from texplainer.attributions.replaced import predict_points
from texplainer.attributions.starts import BackgroundSample, PathContributions, calibrated
from texplainer.gradients.engine import BATCH
from texplainer.types import Array

PAIRS = 64  # a multiple of the groups of starts; twice as many depend on the sample as much, within a tenth
GOLDEN = (5**0.5 - 1) / 2


def contributions(context: ExplainContext, starts: BackgroundSample) -> PathContributions:
    """Pairs of every row with every start, a few rows at a time."""
    together = max(1, BATCH // len(starts.rows))
    parts = [slice(i, i + together) for i in range(0, len(context.rows), together)]
    stepped = ~context.predictor.schema.numeric | np.isnan(starts.rows).any(axis=0) | np.isnan(context.rows)
    groups = int(starts.groups.max()) + 1
    sums = np.zeros((len(context.rows), groups, context.rows.shape[1], len(context.predictor.outputs)))
    correction = np.zeros((len(context.rows), *sums.shape[2:]))
    sd, base = context.background.output_sd, starts.weights @ starts.predictions
    for part in parts:
        found = _pairs(
            context, starts, context.rows[part], stepped[part]
        )  # (rows, starts, features, outputs)
        weighted = found * starts.weights[:, None, None]
        sums[part] = weighted.reshape(len(found), -1, *sums.shape[1:]).sum(axis=1)  # starts take turns
        target = context.predictions[part] - base
        tilt = calibrated(starts.weights, found.sum(axis=2), target, sd) - starts.weights
        moved = tilt[:, None, :] @ found.reshape(
            *found.shape[:2], -1
        )  # a product a row: its bits in any company
        correction[part] = moved.reshape(correction[part].shape)
    steps = stepped.sum(axis=1)  # (rows,)
    return PathContributions(sums, correction, len(starts.rows) * (1 + steps + (steps > 0)))


def _pairs(context: ExplainContext, starts: BackgroundSample, rows: Array, stepped: np.ndarray) -> Array:
    """The contribution of every feature on every way, (rows, starts, features, outputs).

    `stepped` (rows, features): a row's own gaps, whatever is missing in the others.
    """
    t = ((starts.number + 0.5) * GOLDEN) % 1.0
    late = (starts.number % 2 == 0)[:, None]  # stepped features change after the numbers have moved
    along = ~stepped[:, None, :]
    x, b = rows[:, None, :], starts.rows
    away = np.where(along, x - b, 0.0)  # (rows, starts, features)
    points = np.where(along, b + t[:, None] * away, np.where(late, b, x))
    slopes = context.engine.gradient(points.reshape(-1, rows.shape[1])).values
    found = away[..., None] * slopes.reshape(*away.shape, -1)
    some = stepped.any(axis=1)
    if some.any():
        before = np.where(along & late, x, b)[some]  # numbers at x or still at the start, the others there
        steps = found[some]
        _take_steps(context, starts.number, before, rows[some], stepped[some], steps)
        found[some] = steps
    return found


def _take_steps(
    context: ExplainContext, number: np.ndarray, state: Array, rows: Array, stepped: np.ndarray, found: Array
) -> None:
    """Change the stepped features one by one, forwards on half of the starts, backwards on the others."""
    forwards = (number // 2) % 2 == 0
    last = predict_points(context.predictor, state)
    columns = np.flatnonzero(stepped.any(axis=0))
    for ahead, behind in zip(columns, columns[::-1], strict=True):
        column = np.where(forwards, ahead, behind)  # (starts,)
        row, start = np.nonzero(stepped[:, column])
        at = column[start]
        state[row, start, at] = rows[row, at]
        there = context.predictor(state[row, start])
        found[row, start, at] = there - last[row, start]
        last[row, start] = there
