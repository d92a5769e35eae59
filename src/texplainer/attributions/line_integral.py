"""Line integrals of exact gradients: from background rows to x on straight lines.

    T_j(x; b) = (x_j - b_j) * integral over t in [0, 1] of df/dx_j at b + t (x - b)

The mean over the background ("expected gradients", Aumann-Shapley values; Sundararajan et al. 2017, Erion et
al. 2021) is an estimate of the Shapley value: on networks of three tables it lay 9 to 14% from it. All
background rows are taken up to `POINTS`; few rows get several places each. The places of one row are
in the middle of equal parts of [0, 1], moved by the golden section from row to row, so that all places
together cover the interval evenly.

Categories and values that are missing at either end cannot be followed along a line. They are changed one
after the other, at x after the numbers have moved for half of the paths, at the background row before they
move for the others.
"""

from __future__ import annotations

import numpy as np

from texplainer.attributions.attribution import ExplainContext
from texplainer.attributions.background_sample import BackgroundSample, PathContributions, sample_background
from texplainer.attributions.replaced import predict_points
from texplainer.gradients.engine import BATCH
from texplainer.types import Array

POINTS = 192  # gradients a row
GOLDEN = (5**0.5 - 1) / 2


def sample_of(context: ExplainContext) -> BackgroundSample:
    """The background rows, several times each where they are few."""
    return sample_background(context, POINTS)


def places_of(context: ExplainContext, sample: BackgroundSample) -> Array:
    """The place of every path on its line, (paths,)."""
    total = len(context.background.rows)
    repeats = max(1, round(POINTS / total)) if total < POINTS else 1
    turn = ((sample.number % total + 0.5) * GOLDEN) % 1.0
    return (sample.number // total % repeats + turn) / repeats if repeats > 1 else turn


def contributions(context: ExplainContext, sample: BackgroundSample) -> PathContributions:
    """One gradient on the line from every background row of the sample to every row."""
    together = max(1, BATCH // len(sample.rows))
    stepped = ~context.predictor.schema.numeric | np.isnan(sample.rows).any(axis=0) | np.isnan(context.rows)
    sums = np.zeros((len(context.rows), sample.count, context.rows.shape[1], len(context.predictor.outputs)))
    belongs = (sample.groups == np.arange(sample.count)[:, None]) * sample.weight  # (groups, paths)
    uncertain = np.ones((len(context.rows), 1, sums.shape[3]))
    for first in range(0, len(context.rows), together):
        part = slice(first, first + together)
        found = _gradients(context, sample, context.rows[part], stepped[part])
        for i, one in enumerate(found, first):  # (paths, features, outputs); a product a row
            sums[i] = (belongs @ one.reshape(len(one), -1)).reshape(sums[i].shape)
            if sample.whole:
                uncertain[i, 0] = _uncertain(one.sum(axis=1), context.predictions[i] - sample.predictions)
    steps = stepped.sum(axis=1)  # (rows,)
    return PathContributions(sums, len(sample.rows) * (1 + steps + (steps > 0)), uncertain)


def _uncertain(found: Array, expected: Array) -> Array:
    """The part of the scatter of paths' sums (paths, outputs) that is error: what their integrals are known to miss."""
    missed, scatter = ((found - expected) ** 2).mean(axis=0), found.var(axis=0)
    ratio = np.divide(missed, scatter, out=np.ones_like(missed), where=scatter > 0)
    return np.sqrt(np.minimum(1.0, ratio))


def _gradients(context: ExplainContext, sample: BackgroundSample, rows: Array, stepped: np.ndarray) -> Array:
    """The contribution of every feature on every path, (rows, paths, features, outputs).

    `stepped` (rows, features): a row's own gaps, whatever is missing in the others.
    """
    t = places_of(context, sample)
    late = (sample.number % 2 == 0)[:, None]  # stepped features change after the numbers have moved
    along = ~stepped[:, None, :]
    x, b = rows[:, None, :], sample.rows
    away = np.where(along, x - b, 0.0)  # (rows, paths, features)
    points = np.where(along, b + t[:, None] * away, np.where(late, b, x))
    slopes = context.engine.gradient(points.reshape(-1, rows.shape[1])).values
    found = away[..., None] * slopes.reshape(*away.shape, -1)
    some = stepped.any(axis=1)
    if some.any():
        before = np.where(along & late, x, b)[
            some
        ]  # numbers at x or still at the background row, the others there
        steps = found[some]
        _take_steps(context, sample.number, before, rows[some], stepped[some], steps)
        found[some] = steps
    return found


def _take_steps(
    context: ExplainContext, number: np.ndarray, state: Array, rows: Array, stepped: np.ndarray, found: Array
) -> None:
    """Change the stepped features one by one, forwards on half of the paths, backwards on the others."""
    forwards = (number // 2) % 2 == 0
    last = predict_points(context.predictor, state)
    columns = np.flatnonzero(stepped.any(axis=0))
    for ahead, behind in zip(columns, columns[::-1], strict=True):
        column = np.where(forwards, ahead, behind)  # (paths,)
        row, start = np.nonzero(stepped[:, column])
        at = column[start]
        state[row, start, at] = rows[row, at]
        there = context.predictor(state[row, start])
        found[row, start, at] = there - last[row, start]
        last[row, start] = there
