"""Interactions as weighted sums of predictions: the slope of a slope.

A slope is a weighted sum of predictions at moved cells, slope_j = sum_k w_jk f(x with x_j = c_jk): at the mean
over moves upwards less that over moves downwards, per gap. The interaction with feature i is the same sum over
the cells of both,

    s_ij = sum_k sum_l w_ik w_jl f(x with x_i = c_ik, x_j = c_jl),

symmetric by definition, exact for products, and 0 where f adds the two up. The effect of a category,
f(x) - sum_c pi_c f(x^c), is such a sum too, so that one formula serves all kinds of columns. The diagonal is

    s_jj = SD_j^2 x 2 (slope from c up - slope from c down) / (mean square / mean of moves up - the same down),

which is a SD_j^2 for f = a x^2 / 2. Its centre c is the row's cell, shifted inwards at an edge of the range.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from texplainer.attributions.attribution import ExplainContext
from texplainer.attributions.replaced import predict_points
from texplainer.categories.detect import Categories
from texplainer.types import Array

HALF_WIDTH = np.sqrt(6.0)  # of the moves, in bandwidths: their kernel's SD is the bandwidth
ROUNDINGS = 8  # of a prediction
# Error bounds: multiples of the difference between all cells and the outer ones alone, of the pair itself and of
# the row's pairs (root mean square); of the values where there is one move to a side. Chosen on networks,
# Gaussian processes and trees so that 99% of the differences to many moves are covered
COARSE, FINE, OWN = (1.5, 1.5), (1.0, 2.0), (4.0, 4.0)


@dataclass(frozen=True)
class SecondOrder:
    """Interactions of some rows.

    `values` and `error` are (rows, features, features, outputs), `evaluations` (rows,).
    """

    values: Array
    error: Array
    evaluations: np.ndarray


@dataclass(frozen=True)
class Cells:
    """Other cells of a column, all (rows, cells): `weights` of its slope, `rough` those of its outer cells."""

    at: Array
    weights: Array
    rough: Array


def second_differences(
    context: ExplainContext, categories: Categories, bandwidth: float, nodes: int, pairs: np.ndarray
) -> SecondOrder:
    """All `pairs` (pairs, 2) of columns and all curvatures, with `nodes` moves to either side."""
    rows, numeric = context.rows, context.predictor.schema.numeric
    shape = (len(rows), rows.shape[1], rows.shape[1], context.predictions.shape[1])
    values, apart, roundoff = np.zeros((3, *shape))
    columns, cost = _columns(context, categories, bandwidth, nodes), 0
    groups: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for i, j in pairs.tolist():
        if i in columns and j in columns:
            groups.setdefault((columns[i].at.shape[1], columns[j].at.shape[1]), []).append((i, j))
    for (one, two), members in groups.items():
        i, j = np.array(members).T
        for array, part in zip((values, apart, roundoff), _mixed(context, columns, i, j), strict=True):
            array[:, i, j] = array[:, j, i] = part
        cost += one * two * len(members)
    for j in columns:
        if numeric[j]:
            values[:, j, j], apart[:, j, j], roundoff[:, j, j], spent = _curvature(context, j, bandwidth)
            cost += spent
    values[np.abs(values) <= roundoff] = 0.0
    averaged = np.isin(np.arange(shape[1]), list(columns)) & numeric
    averaged &= ~context.background.discrete.mask(shape[1])
    error = roundoff + _misses(values, np.where(apart <= 2 * roundoff, 0.0, apart), averaged, pairs, nodes)
    return SecondOrder(values, error, np.full(len(rows), cost, dtype=np.int64))


def _misses(values: Array, apart: Array, averaged: np.ndarray, pairs: np.ndarray, nodes: int) -> Array:
    """A bound on what few moves miss of the mean over all, where a feature is `averaged`; of the values' shape."""
    out = np.zeros(values.shape)
    i, j = pairs[averaged[pairs].any(axis=1)].T
    k = np.flatnonzero(averaged)
    for first, second, found, (single, common) in (
        (k, k, apart, OWN),
        (i, j, apart if nodes > 1 else np.abs(values), FINE if nodes > 1 else COARSE),
    ):
        if len(first):
            each = found[:, first, second]  # (rows, pairs, outputs)
            mean = np.sqrt(np.mean(each**2, axis=1, keepdims=True))
            out[:, first, second] = out[:, second, first] = np.hypot(single * each, common * mean)
    return out


def _columns(
    context: ExplainContext, categories: Categories, bandwidth: float, nodes: int
) -> dict[int, Cells]:
    """The cells of every column that can be moved, in units of its SD."""
    out: dict[int, Cells] = {}
    for j in np.flatnonzero(context.predictor.schema.numeric & (context.background.unit > 0)):
        out[int(j)] = _slope_cells(context, int(j), bandwidth, nodes)
    for feature in categories.features:
        own = context.rows[:, [feature.column]]
        codes, shares = (np.tile(each, (len(own), 1)) for each in (feature.codes, feature.frequencies))
        at, effect = np.hstack([codes, own]), np.hstack([-shares, np.ones(own.shape)])
        out[feature.column] = Cells(at, effect, effect)
    return out


def _slope_cells(context: ExplainContext, column: int, bandwidth: float, nodes: int) -> Cells:
    """Cells and weights of a numeric column; a missing cell has no slope."""
    own, sd = context.rows[:, column], context.background.sigma[column]
    if column in context.background.discrete.values:
        up, down = (
            side[:, None] for side in context.background.discrete.neighbours(context.rows, column)[::-1]
        )
    else:
        low, high = _limits(context, column)
        reach = HALF_WIDTH * bandwidth * sd
        where = (np.polynomial.legendre.leggauss(nodes)[0] + 1) / 2  # ascending: the outer one is the last
        up = own[:, None] + np.minimum(reach, high - own)[:, None] * where
        down = own[:, None] - np.minimum(reach, own - low)[:, None] * where
        up, down = (_whole(context, column, side) for side in (up, down))
    known = np.isfinite(own)[:, None]
    up, down = np.where(known, up, own[:, None]), np.where(known, down, own[:, None])

    def weights(above: Array, below: Array, outer: bool) -> Array:
        gap = above.mean(axis=1) - below.mean(axis=1)
        each = np.divide(sd, gap, out=np.zeros(len(gap)), where=gap > 0)[:, None] / above.shape[1]
        chosen = np.zeros(up.shape[1])
        chosen[-1 if outer else slice(None)] = 1.0
        return np.concatenate([each * chosen, -each * chosen], axis=1)

    return Cells(
        np.concatenate([up, down], axis=1), weights(up, down, False), weights(up[:, -1:], down[:, -1:], True)
    )


def _limits(context: ExplainContext, column: int) -> tuple[Array, Array]:
    """The range of each row's cells, (rows,) each; a row outside the bounds is its own edge."""
    own = context.rows[:, column]
    if context.bounds is None:
        return np.full(len(own), -np.inf), np.full(len(own), np.inf)
    return np.fmin(context.bounds[0][column], own), np.fmax(context.bounds[1][column], own)


def _whole(context: ExplainContext, column: int, cells: Array) -> Array:
    """Whole numbers where the column holds nothing else."""
    return np.round(cells) if column in context.background.discrete.integers else cells


def _mixed(
    context: ExplainContext, columns: dict[int, Cells], first: np.ndarray, second: np.ndarray
) -> tuple[Array, Array, Array]:
    """Values of some pairs, what outer cells alone tell otherwise, round-off: all (rows, pairs, outputs)."""
    rows, outputs = context.rows, context.predictions.shape[1]
    parts = [[getattr(columns[j], name) for j in which] for which in (first, second) for name in NAMES]
    c, w, r, d, v, q = (np.stack(part, axis=1).reshape(-1, part[0].shape[1]) for part in parts)
    row = np.repeat(np.arange(len(rows)), len(first))
    i, j = np.tile(first, len(rows)), np.tile(second, len(rows))
    found = np.empty((3, len(row), outputs))
    size = max(1, context.predictor.piece(rows.shape[1]) // (c.shape[1] * d.shape[1]))
    for start in range(0, len(row), size):
        part = slice(start, start + size)
        points = np.repeat(rows[row[part], None], c.shape[1] * d.shape[1], axis=1)
        points = points.reshape(-1, c.shape[1], d.shape[1], rows.shape[1])
        pair = np.arange(len(points))
        points[pair, :, :, i[part]] = c[part][:, :, None]
        points[pair, :, :, j[part]] = d[part][:, None, :]
        f = predict_points(context.predictor, points)
        noise = _noise(context, f.reshape(len(points), -1, outputs))
        f -= context.predictions[row[part], None, None]  # the weights sum to 0: nothing but digits changes
        full, *less = (np.einsum("pk,pl,pklo->po", a[part], b[part], f) for a, b in ((w, v), (r, v), (w, q)))
        size_of = np.abs(w[part]).sum(axis=1) * np.abs(v[part]).sum(axis=1)
        found[:, part] = full, sum(np.abs(other - full) for other in less), noise * size_of[:, None]
    full, apart, roundoff = found.reshape(3, len(rows), len(first), outputs)
    return full, apart, roundoff


NAMES = ("at", "weights", "rough")


def _noise(context: ExplainContext, f: Array) -> Array:
    """What rounding may make of one prediction among f (rows, points, outputs), (rows, outputs)."""
    largest = np.abs(f).max(axis=1, initial=0.0) + context.background.output_sd
    return ROUNDINGS * context.predictor.unit * largest


def _curvature(context: ExplainContext, column: int, bandwidth: float) -> tuple[Array, Array, Array, int]:
    """A column's own curvature, what outer cells alone tell otherwise, round-off, and predictions a row."""
    centre, up, down = _three(context, column, bandwidth)
    cells = np.concatenate([centre, up, down], axis=1)
    points = np.repeat(context.rows[:, None], cells.shape[1], axis=1)
    points[:, :, column] = cells
    f = predict_points(context.predictor, points)
    noise = _noise(context, f)
    above, below = f[:, 1 : 1 + up.shape[1]] - f[:, :1], f[:, 1 + up.shape[1] :] - f[:, :1]

    def second(ahead: Array, back: Array, a: Array, b: Array) -> tuple[Array, Array]:
        first, other = ahead.mean(axis=1), -back.mean(axis=1)
        known = (first > 0) & (other > 0)
        first, other = np.where(known, first, 1.0), np.where(known, other, 1.0)
        wide = (ahead**2).mean(axis=1) / first + (back**2).mean(axis=1) / other
        unit = np.divide(
            2 * context.background.sigma[column] ** 2, wide, out=np.zeros_like(wide), where=known
        )
        bent = a.mean(axis=1) / first[:, None] + b.mean(axis=1) / other[:, None]
        return bent * unit[:, None], noise * (unit * 2 * (1 / first + 1 / other))[:, None]

    ahead, back = up - centre, down - centre
    full, roundoff = second(ahead, back, above, below)
    rough, _ = second(ahead[:, -1:], back[:, -1:], above[:, -1:], below[:, -1:])
    return full, np.abs(full - rough), roundoff, cells.shape[1]


def _three(context: ExplainContext, column: int, bandwidth: float) -> tuple[Array, Array, Array]:
    """The centre (rows, 1) and the cells above and below it; all equal where a side has none."""
    own, discrete = context.rows[:, column], context.background.discrete
    if column in discrete.values:
        ends = discrete.neighbours(context.rows, column)
        centre = np.where(ends[0] == own, ends[1], np.where(ends[1] == own, ends[0], own))
        moved = context.rows.copy()
        moved[:, column] = centre
        down, up = (side[:, None] for side in discrete.neighbours(moved, column))
    else:
        low, high = _limits(context, column)
        reach = np.minimum(HALF_WIDTH * bandwidth * context.background.sigma[column], (high - low) / 2)
        centre = _whole(context, column, np.clip(own, low + reach, high - reach))
        where = reach[:, None] * (np.polynomial.legendre.leggauss(2)[0] + 1) / 2
        up, down = (_whole(context, column, centre[:, None] + side * where) for side in (1.0, -1.0))
    known = np.isfinite(own)[:, None]
    centre, own = centre[:, None], own[:, None]
    return np.where(known, centre, own), np.where(known, up, own), np.where(known, down, own)
