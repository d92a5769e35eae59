"""Finite Taylor effects: what the displacements that the data really makes do to f.

A derivative speaks of moves too small to matter. A finite effect replaces one feature by other values
its column holds, seen from several places between x and the data. For i = 1..m, with M_i rows that
stand for the background, base points b_i = x + t_i (M_i - x), t_i spread evenly over (0, tau), and
reference values r_ij, evenly spaced quantiles of column j in a fixed order of its own:

    a_ij = f(b_i) - f(b_i with feature j set to r_ij)

    effect_j = the root mean square of a_ij over i, with the sign of the slope sum_i a_ij (b_ij - r_ij)

Any model will do, at m(n + 1) evaluations a row; nothing is random. The additive sibling walks from each
M_i to x, one feature after the other, in a fixed order of its own and in the reverse order; feature j is
credited with what its step changes. The steps of a walk sum to f(x) - f(M_i), and the weighted mean over
the walks to f(x) - E f exactly: m walks, m(n + 1) evaluations (Shapley's value, sampled: Castro et al. 2009).

A category keeps its own level at every base point, and its references are levels. The fixed orders belong
to a column's values, not to its place: columns given in another order get the same effects.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from texplainer.background import Background
from texplainer.prediction import Predictor
from texplainer.representatives import calibrated, places_by_content, representatives
from texplainer.signatures import Array

POINTS = 32
REACH = 1.0  # tau


@dataclass(frozen=True)
class Moves:
    """Where base points lie and what features are set to: towards and references (m, features), t (m,)."""

    towards: Array
    t: Array
    references: Array


def finite_effects(rows: Array, predictor: Predictor, background: Background, columns: np.ndarray) -> Array:
    """Signed root-mean-square effects of the given columns, (rows, features, outputs); 0 elsewhere."""
    moves = background.once("moves", lambda: scattered(background, predictor.schema.numeric))
    values = np.zeros((*rows.shape, len(predictor.outputs)))
    for part in _parts(len(rows), len(moves.t) * (len(columns) + 1), predictor):
        base = between(rows[part], moves, predictor.schema.numeric)  # (rows, m, features)
        points = np.repeat(base[:, :, None, :], len(columns) + 1, axis=2)
        points[:, :, np.arange(len(columns)) + 1, columns] = moves.references[:, columns]
        f = _predict(predictor, points)  # (rows, m, 1 + columns, outputs)
        a = f[:, :, :1] - f[:, :, 1:]
        away = np.nan_to_num(base[:, :, columns] - moves.references[:, columns])
        slope = np.einsum("rmco,rmc->rco", a, away)
        lean = np.where(slope == 0, a.sum(axis=1), slope)  # a missing cell has no slope, but a side
        values[part, columns] = np.copysign(np.sqrt(np.mean(a**2, axis=1)), lean)
    return values


def finite_shares(rows: Array, predictor: Predictor, background: Background, columns: np.ndarray) -> Array:
    """Additive effects of the given columns, (rows, features, outputs), which sum to f(x) - E f."""
    walks = background.once(("walks", columns.tobytes()), lambda: walks_from(background, predictor, columns))
    steps = np.arange(len(columns) + 1)
    walked = np.zeros((len(walks.weights), len(steps), rows.shape[1]), bool)  # (m, steps, features)
    walked[:, :, columns] = walks.place[:, None, :] < steps[:, None]
    fixed = np.ones(rows.shape[1], bool)
    fixed[columns] = False
    values = np.zeros((*rows.shape, len(predictor.outputs)))
    for part in _parts(len(rows), len(walks.weights) * len(steps), predictor):
        points = np.where(walked | fixed, rows[part, None, None, :], walks.start[:, None, :])
        gains = np.diff(_predict(predictor, points), axis=2)  # (rows, m, steps, outputs)
        gains = np.take_along_axis(
            gains, walks.place[None, :, :, None], axis=2
        )  # (rows, m, columns, outputs)
        values[part, columns] = np.einsum("rmco,m->rco", gains, walks.weights)
    return values


def scattered(
    background: Background, numeric: np.ndarray, count: int = POINTS, reach: float = REACH
) -> Moves:
    """Base points spread towards the background, and quantile references in a fixed order per feature."""
    centres, _ = representatives(background.rows, background.sigma, count, numeric)
    t = (_order(count, 0) + 0.5) / count * reach
    levels = (np.arange(count) + 0.5) / count
    references = np.empty((count, background.rows.shape[1]))
    stream = np.zeros(len(numeric), dtype=int)
    stream[numeric] = places_by_content(background.rows[:, numeric]) + 1  # codes may be given in any order
    for j, column in enumerate(background.rows.T):
        known = column[np.isfinite(column)]
        # a level must be one that exists; between two numbers there are others
        method = "linear" if numeric[j] else "inverted_cdf"
        spaced = np.quantile(known, levels, method=method) if len(known) else np.zeros(count)
        references[:, j] = spaced[_order(count, int(stream[j]))]
    towards = centres[np.arange(count) % max(1, len(centres))] if len(centres) else references
    return Moves(towards, t, references)


@dataclass(frozen=True)
class Walks:
    """Starts (m, features), weights (m,), and the place of every column in the walk (m, columns)."""

    start: Array
    weights: Array
    place: np.ndarray


def walks_from(
    background: Background, predictor: Predictor, columns: np.ndarray, count: int = POINTS // 2
) -> Walks:
    """Two opposite walks from each of some representative rows, whose mean prediction is the background's."""
    numeric = predictor.schema.numeric
    centres, weights = representatives(background.rows, background.sigma, count, numeric)
    weights = calibrated(weights, predictor(centres), background.base)
    own = places_by_content(background.rows[:, columns])
    there = np.stack([_order(len(columns), i)[own] for i in range(len(centres))])
    place = np.concatenate([there, len(columns) - 1 - there])
    return Walks(np.concatenate([centres, centres]), np.concatenate([weights, weights]) / 2, place)


def between(rows: Array, moves: Moves, numeric: np.ndarray) -> Array:
    """Base points (rows, m, features); categories and missing cells stay the row's own."""
    away = np.where(numeric, moves.towards - rows[:, None, :], 0.0)
    return rows[:, None, :] + moves.t[:, None] * np.nan_to_num(away)


@lru_cache(maxsize=1024)
def _order(count: int, stream: int) -> np.ndarray:
    """A fixed shuffle, another for each stream, so that no two features' references move together."""
    return np.random.default_rng([20240101, stream]).permutation(count)


def _predict(predictor: Predictor, points: Array) -> Array:
    return predictor(points.reshape(-1, points.shape[-1])).reshape(*points.shape[:-1], -1)


def _parts(rows: int, cost: int, predictor: Predictor) -> list[slice]:
    """Blocks of rows that fill one batch of the model, at `cost` evaluations a row."""
    size = max(1, predictor.batch_rows // max(1, cost))
    return [slice(i, i + size) for i in range(0, rows, size)]
