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

from texplainer.gradients.engine import BATCH
from texplainer.readings.reading import Place
from texplainer.readings.replaced import predict_points
from texplainer.readings.starts import Starts, Ways, calibrated
from texplainer.types import Array

PAIRS = 64  # a multiple of the groups of starts; twice as many depend on the sample as much, within a tenth
GOLDEN = (5**0.5 - 1) / 2


def contributions(place: Place, starts: Starts) -> Ways:
    """Pairs of every row with every start, a few rows at a time."""
    together = max(1, BATCH // len(starts.rows))
    parts = [slice(i, i + together) for i in range(0, len(place.rows), together)]
    stepped = np.flatnonzero(
        ~place.predictor.schema.numeric | np.isnan(starts.rows).any(axis=0) | np.isnan(place.rows).any(axis=0)
    )
    groups = int(starts.groups.max()) + 1
    sums = np.zeros((len(place.rows), groups, place.rows.shape[1], len(place.predictor.outputs)))
    correction = np.zeros((len(place.rows), *sums.shape[2:]))
    spread, base = place.background.output_spread, starts.weights @ starts.predictions
    for part in parts:
        found = _pairs(place, starts, place.rows[part], stepped)  # (rows, starts, features, outputs)
        weighted = found * starts.weights[:, None, None]
        sums[part] = weighted.reshape(len(found), -1, *sums.shape[1:]).sum(axis=1)  # starts take turns
        target = place.predictions[part] - base
        tilt = calibrated(starts.weights, found.sum(axis=2), target, spread) - starts.weights
        moved = tilt[:, None, :] @ found.reshape(
            *found.shape[:2], -1
        )  # a product a row: its bits in any company
        correction[part] = moved.reshape(correction[part].shape)
    steps = len(stepped) + 1 if len(stepped) else 0
    return Ways(sums, correction, len(starts.rows) * (1 + steps))


def _pairs(place: Place, starts: Starts, rows: Array, stepped: np.ndarray) -> Array:
    """The contribution of every feature on every way, (rows, starts, features, outputs)."""
    t = ((starts.number + 0.5) * GOLDEN) % 1.0
    late = (starts.number % 2 == 0)[:, None]  # stepped features change after the numbers have moved
    along = np.ones(rows.shape[1], bool)
    along[stepped] = False
    x, b = rows[:, None, :], starts.rows
    away = np.where(along, x - b, 0.0)  # (rows, starts, features)
    points = np.where(along, b + t[:, None] * away, np.where(late, b, x))
    slopes = place.engine.gradient(points.reshape(-1, rows.shape[1])).values
    found = away[..., None] * slopes.reshape(*away.shape, -1)
    if len(stepped):
        before = np.where(along & late, x, b)  # numbers at x or still at the start, the others at the start
        _take_steps(place, starts.number, np.broadcast_to(before, away.shape).copy(), rows, stepped, found)
    return found


def _take_steps(
    place: Place, number: np.ndarray, state: Array, rows: Array, stepped: np.ndarray, found: Array
) -> None:
    """Change the stepped features one by one, forwards on half of the starts, backwards on the others."""
    forwards = (number // 2) % 2 == 0
    last = predict_points(place.predictor, state)
    starts = np.arange(state.shape[1])
    for ahead, behind in zip(stepped, stepped[::-1], strict=True):
        column = np.where(forwards, ahead, behind)  # (starts,)
        state[:, starts, column] = rows[:, column]
        there = predict_points(place.predictor, state)
        found[:, starts, column] = there - last
        last = there
