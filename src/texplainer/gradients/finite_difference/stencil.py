"""Derivatives from a three-point stencil: x and two more points on the axis of one feature.

With offsets p and q the derivative of the parabola through f(x), f(x+p) and f(x+q) is

    D = -q/(p(p-q)) f(x+p) + p/(q(p-q)) f(x+q) - (p+q)/(pq) f(x)

which is the centred difference for q = -p (paper, Eq. 7; LeVeque 2007), the clamped one near a bound
and the one-sided one (q = 2p) at it, all with an error of O(h²). Offsets are what the model really
sees: the difference of the two inputs after rounding to its float width. Only one coordinate of a
row ever moves.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from texplainer.models.predictor import Predictor
from texplainer.types import Array


@dataclass(frozen=True)
class Stencil:
    """Two more coordinates per (row, feature) entry and their offsets from x, all (entries,)."""

    first: Array
    second: Array
    p: Array
    q: Array

    def derivative(self, f0: Array, f1: Array, f2: Array) -> Array:
        """Combine the values at x, x+p, x+q, each (entries, outputs).

        Differences to f0 are taken first, so that a flat function gives exactly 0.
        """
        p, q = self.p[:, None], self.q[:, None]
        return (p / q * (f2 - f0) - q / p * (f1 - f0)) / (p - q)


def fit_to_bounds(x: Array, step: Array, low: Array, high: Array, dtype: np.dtype) -> Stencil:
    """Place the stencil of every entry inside [low, high]: centred, clamped or one-sided.

    A row outside the range keeps its own value as the edge. A side with less than a quarter of the
    step is not used: dividing by it would amplify the model's rounding.
    """
    low, high = np.minimum(low, x), np.maximum(high, x)
    step = np.minimum(step, np.where(np.isfinite(high - low), (high - low) / 4, np.inf))
    step = np.maximum(step, 4 * np.spacing(np.abs(x).astype(dtype)).astype(float))
    down, up = np.minimum(step, x - low), np.minimum(step, high - x)
    p = np.where(up >= step / 4, up, -step)
    q = np.where(up >= step / 4, -down, -2 * step)
    right = (down < step / 4) & (up >= step / 4)
    p, q = np.where(right, step, p), np.where(right, 2 * step, q)
    seen = x.astype(dtype)
    first, second = (x + p).astype(dtype).astype(float), (x + q).astype(dtype).astype(float)
    return Stencil(first, second, first - seen, second - seen)


def evaluate_stencil(
    predictor: Predictor, rows: Array, row: np.ndarray, column: np.ndarray, at: Array
) -> Array:
    """Predict with one coordinate replaced per entry, (entries, points) -> (entries, points, outputs)."""
    points = at.shape[1]
    out = np.empty((len(row), points, len(predictor.outputs)))
    chunk = max(1, predictor.piece(rows.shape[1]) // points)
    for start in range(0, len(row), chunk):
        part = slice(start, start + chunk)
        moved = rows[np.repeat(row[part], points)]
        moved[np.arange(len(moved)), np.repeat(column[part], points)] = at[part].reshape(-1)
        out[part] = predictor(moved).reshape(-1, points, out.shape[2])
    return out


def entries(rows: Array, numeric: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Row and column indices of the cells a derivative makes sense for."""
    row, column = np.nonzero(np.isfinite(rows) & numeric[None, :])
    return row, column


def differences(
    predictor: Predictor, rows: Array, f0: Array, step: Array, bounds: tuple[Array, Array] | None
) -> tuple[Array, Array]:
    """The derivative at given steps (rows, features), and the steps really taken."""
    row, column = entries(rows, predictor.schema.numeric)
    stencil = place(predictor, rows, row, column, step[row, column], bounds)
    f = evaluate_stencil(predictor, rows, row, column, np.stack([stencil.first, stencil.second], axis=1))
    values = np.zeros((*rows.shape, f.shape[2]))
    values[row, column] = stencil.derivative(f0[row], f[:, 0], f[:, 1])
    taken = np.full(rows.shape, np.nan)
    taken[row, column] = np.maximum(np.abs(stencil.p), np.abs(stencil.q))
    return values, taken


def place(
    predictor: Predictor,
    rows: Array,
    row: np.ndarray,
    column: np.ndarray,
    step: Array,
    bounds: tuple[Array, Array] | None,
) -> Stencil:
    """The stencils of some entries, inside the bounds if there are any."""
    low, high = (
        (np.full(rows.shape[1], -np.inf), np.full(rows.shape[1], np.inf)) if bounds is None else bounds
    )
    return fit_to_bounds(rows[row, column], step, low[column], high[column], predictor.dtype)
