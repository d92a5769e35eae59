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

from dataclasses import dataclass, replace

import numpy as np

from texplainer.attributions.attribution import ExplainContext
from texplainer.attributions.replaced import predict_points
from texplainer.background.summary import HALF_WIDTH
from texplainer.categories.detect import Categories
from texplainer.gradients.moves import gauss, rounded
from texplainer.types import Array

ROUNDINGS = 8  # of a prediction
# Error bounds: multiples of the difference between all cells and the outer ones alone, of the pair itself and of
# the row's pairs (root mean square); of the values where there is one move to a side. They cover steps; of a smooth
# model a part of them is enough, which is seen on background rows (`calibrated`)
COARSE, FINE, OWN = (1.5, 1.5), (1.0, 2.0), (4.0, 4.0)
MANY, SAMPLE_ROWS, SAMPLE_PAIRS = 6, 4, 16  # moves to a side that stand for all; about 10,000 predictions
SAFETY, LEAST = 2.5, 0.002


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
    context: ExplainContext,
    categories: Categories,
    bandwidth: float,
    nodes: int,
    pairs: np.ndarray,
    own: np.ndarray,
    parts: tuple[float, float] = (1.0, 1.0),
) -> SecondOrder:
    """All `pairs` (pairs, 2) of columns and the curvatures of `own`, with `nodes` moves to either side.

    `parts` of the error bounds are enough, of pairs and of curvatures.
    """
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
    own = np.array([j for j in own.tolist() if j in columns and numeric[j]], dtype=int)
    for j in own.tolist():
        found = _curvature(context, j, bandwidth, max(2, nodes))
        values[:, j, j], apart[:, j, j], roundoff[:, j, j], spent = found
        cost += spent
    values[np.abs(values) <= roundoff] = 0.0
    averaged = np.isin(np.arange(shape[1]), list(columns)) & numeric
    averaged &= ~context.background.discrete.mask(shape[1])
    apart[apart <= 2 * roundoff] = 0.0
    error, k, (i, j) = roundoff.copy(), own[averaged[own]], pairs[averaged[pairs].any(axis=1)].T
    error[:, k, k] += parts[1] * _misses(apart[:, k, k], OWN)
    bound = _misses(apart[:, i, j], FINE) if nodes > 1 else _misses(np.abs(values[:, i, j]), COARSE)
    error[:, i, j] += parts[0] * bound
    error[:, j, i] = error[:, i, j]
    return SecondOrder(values, error, np.full(len(rows), cost, dtype=np.int64))


def _misses(found: Array, factors: tuple[float, float]) -> Array:
    """A bound on what few moves miss of the mean over all, from what is seen of it: both (rows, pairs, outputs)."""
    common = np.sqrt(np.mean(found**2, axis=1, keepdims=True)) if found.shape[1] else 0.0
    return np.hypot(factors[0] * found, factors[1] * common)


def calibrated(
    context: ExplainContext, categories: Categories, bandwidth: float, nodes: int, pairs: np.ndarray
) -> tuple[float, float]:
    """The parts of the bounds that cover the differences to many moves, on background rows; at most 1."""
    rows = context.background.rows[np.isfinite(context.background.rows).all(axis=1)]
    if not len(rows) or not len(pairs):
        return 1.0, 1.0
    rows = rows[:: max(1, len(rows) // SAMPLE_ROWS)][:SAMPLE_ROWS]
    context = replace(context, rows=rows, predictions=context.predictor(rows))
    pairs = pairs[np.sort(np.random.default_rng(0).permutation(len(pairs))[:SAMPLE_PAIRS])]
    few, many = (
        second_differences(context, categories, bandwidth, count, pairs, np.unique(pairs))
        for count in (nodes, MANY)
    )
    apart, diagonal = np.abs(few.values - many.values), np.eye(few.values.shape[1], dtype=bool)
    ratio = np.divide(apart, few.error, out=np.zeros(apart.shape), where=few.error > 0)
    other, own = (float(ratio[:, which].max(initial=0.0)) for which in (~diagonal, diagonal))
    return float(np.clip(SAFETY * other, LEAST, 1.0)), float(np.clip(SAFETY * own, LEAST, 1.0))


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
    own, sd, share = context.rows[:, column], context.background.sigma[column], np.ones(1)
    if column in context.background.discrete.values:
        up, down = (
            side[:, None] for side in context.background.discrete.neighbours(context.rows, column)[::-1]
        )
    else:
        low, high = _limits(context, column)
        reach = HALF_WIDTH * bandwidth * sd
        where, share = gauss(nodes)
        up = own[:, None] + np.minimum(reach, high - own)[:, None] * where
        down = own[:, None] - np.minimum(reach, own - low)[:, None] * where
        up, down = (_whole(context, column, side) for side in (up, down))
    known = np.isfinite(own)[:, None]
    up, down = np.where(known, up, own[:, None]), np.where(known, down, own[:, None])

    def weights(of: Array) -> Array:
        gap = (up - down) @ of
        each = np.divide(sd, gap, out=np.zeros(len(gap)), where=gap > 0)[:, None] * of
        return np.concatenate([each, -each], axis=1)

    outer = (np.arange(len(share)) == len(share) - 1).astype(float)
    return Cells(np.concatenate([up, down], axis=1), weights(share), weights(outer))


def _limits(context: ExplainContext, column: int) -> tuple[Array, Array]:
    """The range of each row's cells, (rows,) each; a row outside the bounds is its own edge."""
    own = context.rows[:, column]
    if context.bounds is None:
        return np.full(len(own), -np.inf), np.full(len(own), np.inf)
    return np.fmin(context.bounds[0][column], own), np.fmax(context.bounds[1][column], own)


def _whole(context: ExplainContext, column: int, cells: Array) -> Array:
    """Whole numbers where the column holds nothing else."""
    return rounded(cells) if column in context.background.discrete.integers else cells


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


def _curvature(
    context: ExplainContext, column: int, bandwidth: float, nodes: int
) -> tuple[Array, Array, Array, int]:
    """A column's own curvature, what outer cells alone tell otherwise, round-off, and predictions a row."""
    centre, up, down, share = _three(context, column, bandwidth, nodes)
    cells = np.concatenate([centre, up, down], axis=1)
    points = np.repeat(context.rows[:, None], cells.shape[1], axis=1)
    points[:, :, column] = cells
    f = predict_points(context.predictor, points)
    noise = _noise(context, f)
    above, below = (part - f[:, :1] for part in np.split(f[:, 1:], 2, axis=1))
    ahead, back = up - centre, centre - down

    def second(of: Array) -> tuple[Array, Array]:
        first, other = ahead @ of, back @ of
        known = (first > 0) & (other > 0)
        first, other = np.where(known, first, 1.0), np.where(known, other, 1.0)
        wide = ahead**2 @ of / first + back**2 @ of / other
        unit = np.divide(
            2 * context.background.sigma[column] ** 2, wide, out=np.zeros_like(wide), where=known
        )
        sides = (np.einsum("rko,k->ro", part, of) for part in (above, below))
        bent = next(sides) / first[:, None] + next(sides) / other[:, None]
        return bent * unit[:, None], noise * (unit * 2 * (1 / first + 1 / other))[:, None]

    full, roundoff = second(share)
    rough, _ = second((np.arange(len(share)) == len(share) - 1).astype(float))
    return full, np.abs(full - rough), roundoff, cells.shape[1]


def _three(
    context: ExplainContext, column: int, bandwidth: float, nodes: int
) -> tuple[Array, Array, Array, Array]:
    """The centre (rows, 1), the cells above and below it, and their weights; all equal where a side has none."""
    own, discrete = context.rows[:, column], context.background.discrete
    if column in discrete.values:
        ends = discrete.neighbours(context.rows, column)
        centre = np.where(ends[0] == own, ends[1], np.where(ends[1] == own, ends[0], own))
        moved = context.rows.copy()
        moved[:, column] = centre
        down, up = (side[:, None] for side in discrete.neighbours(moved, column))
        share = np.ones(1)
    else:
        low, high = _limits(context, column)
        reach = np.minimum(HALF_WIDTH * bandwidth * context.background.sigma[column], (high - low) / 2)
        centre = _whole(context, column, np.clip(own, low + reach, high - reach))
        where, share = gauss(nodes)
        moves = reach[:, None] * where
        up, down = (_whole(context, column, centre[:, None] + side * moves) for side in (1.0, -1.0))
    known = np.isfinite(own)[:, None]
    centre, own = centre[:, None], own[:, None]
    return np.where(known, centre, own), np.where(known, up, own), np.where(known, down, own), share
