"""Finite Taylor effects: what the displacements that the data really makes do to f.

A derivative speaks of moves too small to matter. A finite effect replaces one feature by other values
its column holds, seen from several places between x and the data. For i = 1..m, with M_i rows that
stand for the background, base points b_i = x + t_i (M_i - x), t_i spread evenly over (0, tau), and
reference values r_ij, evenly spaced quantiles of column j in a fixed order of its own:

    a_ij = f(b_i) - f(b_i with feature j set to r_ij)

    effect_j = the root mean square of a_ij over i, with the sign of the slope sum_i a_ij (b_ij - r_ij)

Any model will do, at m(n + 1) evaluations a row; nothing is random. The additive sibling swaps feature
j between x and M_i while the others stand on the way between them,

    c_ij = f(b_i with x_j) - f(b_i with M_ij),

at Gauss nodes t_i of the whole way (0, 1). Summed over j it telescopes to f(x) - f(M_i) up to
interactions of four features or more, so the weighted mean over i shares out f(x) - E f.

A category keeps its own level at every base point, and its references are levels.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from texplainer.background import Background
from texplainer.prediction import Predictor
from texplainer.representatives import representatives
from texplainer.signatures import Array

POINTS = 32
REACH = 0.5  # tau
NODES = 2  # Gauss nodes on the way to each representative


@dataclass(frozen=True)
class Moves:
    """Where base points lie and what features are set to: towards (m, features), t (m,), weights (m,)."""

    towards: Array
    t: Array
    weights: Array
    references: Array  # (m, features)


def finite_effects(rows: Array, predictor: Predictor, background: Background, columns: np.ndarray) -> Array:
    """Signed root-mean-square effects of the given columns, (rows, features, outputs); 0 elsewhere."""
    moves = scattered(background, predictor.schema.numeric)
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
    """Additive effects of the given columns, (rows, features, outputs), which sum to nearly f(x) - E f."""
    moves = paths(background, predictor.schema.numeric)
    values = np.zeros((*rows.shape, len(predictor.outputs)))
    for part in _parts(len(rows), len(moves.t) * 2 * len(columns), predictor):
        base = between(rows[part], moves, predictor.schema.numeric)
        points = np.repeat(base[:, :, None, :], 2 * len(columns), axis=2)
        own, other = np.arange(len(columns)), np.arange(len(columns)) + len(columns)
        points[:, :, own, columns] = rows[part, None, columns]
        points[:, :, other, columns] = moves.references[:, columns]
        f = _predict(predictor, points)
        values[part, columns] = np.einsum("rmco,m->rco", f[:, :, own] - f[:, :, other], moves.weights)
    return values


def scattered(
    background: Background, numeric: np.ndarray, count: int = POINTS, reach: float = REACH
) -> Moves:
    """Base points spread towards the background, and quantile references in a fixed order per feature."""
    centres, _ = representatives(background.rows, background.sigma, count, numeric)
    t = (_order(count, 0) + 0.5) / count * reach
    levels = (np.arange(count) + 0.5) / count
    references = np.empty((count, background.rows.shape[1]))
    for j, column in enumerate(background.rows.T):
        known = column[np.isfinite(column)]
        # a level must be one that exists; between two numbers there are others
        method = "linear" if numeric[j] else "inverted_cdf"
        spaced = np.quantile(known, levels, method=method) if len(known) else np.zeros(count)
        references[:, j] = spaced[_order(count, j + 1)]
    towards = centres[np.arange(count) % max(1, len(centres))] if len(centres) else references
    return Moves(towards, t, np.full(count, 1 / count), references)


def paths(background: Background, numeric: np.ndarray, count: int = POINTS // NODES) -> Moves:
    """Gauss nodes on the straight ways to representative rows, with their weights."""
    centres, weights = representatives(background.rows, background.sigma, count, numeric)
    nodes, shares = np.polynomial.legendre.leggauss(NODES)
    towards = np.repeat(centres, NODES, axis=0)
    t = np.tile((nodes + 1) / 2, len(centres))
    return Moves(towards, t, np.repeat(weights, NODES) * np.tile(shares / 2, len(centres)), towards)


def between(rows: Array, moves: Moves, numeric: np.ndarray) -> Array:
    """Base points (rows, m, features); categories and missing cells stay the row's own."""
    away = np.where(numeric, moves.towards - rows[:, None, :], 0.0)
    return rows[:, None, :] + moves.t[:, None] * np.nan_to_num(away)


@lru_cache(maxsize=1024)
def _order(count: int, stream: int) -> np.ndarray:
    """A fixed shuffle, one for each feature, so that no two features' references move together."""
    return np.random.default_rng([20240101, stream]).permutation(count)


def _predict(predictor: Predictor, points: Array) -> Array:
    return predictor(points.reshape(-1, points.shape[-1])).reshape(*points.shape[:-1], -1)


def _parts(rows: int, cost: int, predictor: Predictor) -> list[slice]:
    """Blocks of rows that fill one batch of the model, at `cost` evaluations a row."""
    size = max(1, predictor.batch_rows // max(1, cost))
    return [slice(i, i + size) for i in range(0, rows, size)]
