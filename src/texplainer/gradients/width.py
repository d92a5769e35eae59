"""How wide a neighbourhood the model itself allows: one number per model, in units of each feature's SD.

The width is the largest at which the averaged model is still the model: R² of averaged against original
predictions on background rows is FAITHFUL there. It is looked for between the values of a grid, by halving,
and then by a straight line through the logarithms of 1 - R² (a power of the width, nearly), so that it is a
continuous function of the data and the model. Outside the grid its ends are taken: a model that is
straight has no largest width, and less than the smallest is a point rather than a neighbourhood.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from texplainer.gradients.engine import Settings
from texplainer.gradients.points import points
from texplainer.models.predictor import Predictor
from texplainer.types import Array

WIDTHS = (0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.55, 0.75, 1.1)
FAITHFUL = 0.9  # R² of the averaged model
TRIAL_ROWS, TRIAL_POINTS = 48, 40
CELLS = 2**20  # of the points at hand at a time


def faithful_width(predictor: Predictor, background: Array, sigma: Array, settings: Settings) -> float:
    """The largest width at which the averaged model explains 90% of the model's variance."""
    sample = background[np.all(np.isfinite(background), axis=1)]
    sample = sample[:: max(1, len(sample) // TRIAL_ROWS)][:TRIAL_ROWS]
    if len(sample) < 2:
        return WIDTHS[0]
    f = predictor(sample)
    variance = np.var(f, axis=0).sum()
    if not variance > 0:
        return WIDTHS[-1]

    def missed(width: float) -> float:
        """1 - R²."""
        apart = averaged(predictor, sample, width * sigma, settings) - f
        share = np.mean(apart**2, axis=0).sum() / variance
        return float(share) if np.isfinite(share) else np.inf

    return _crossing(missed, 1 - FAITHFUL)


def _crossing(missed: Callable[[float], float], allowed: float) -> float:
    """Where a rising function of the width reaches what is allowed, between the ends of the grid."""
    low, high = -1, len(WIDTHS)  # faithful below or at `low`, not so at `high`
    known: dict[int, float] = {}
    while high - low > 1:
        middle = (low + high) // 2
        known[middle] = missed(WIDTHS[middle])
        low, high = (middle, high) if known[middle] <= allowed else (low, middle)
    if low < 0 or high == len(WIDTHS):
        return WIDTHS[0] if low < 0 else WIDTHS[-1]
    if not np.isfinite(known[high]):
        return WIDTHS[low]
    least = max(known[low], 1e-12)  # a width at which nothing is missed says nothing of the power
    part = np.log(allowed / least) / np.log(known[high] / least)
    return float(np.exp(np.log(WIDTHS[low]) * (1 - part) + np.log(WIDTHS[high]) * part))


def averaged(predictor: Predictor, rows: Array, width: Array, settings: Settings) -> Array:
    """The averaged model's predictions, (rows, outputs)."""
    z = points(TRIAL_POINTS, rows.shape[1])
    move = np.where(predictor.schema.numeric, width, 0.0) * np.concatenate([z, -z])
    low, high = limits(rows, settings.bounds)
    together = max(1, CELLS // move.size)
    out = np.empty((len(rows), len(predictor.outputs)))
    for first in range(0, len(rows), together):
        part = slice(first, first + together)
        at = np.clip(rows[part, None] + move, low[part, None], high[part, None])
        out[part] = predictor(at.reshape(-1, rows.shape[1])).reshape(len(at), len(move), -1).mean(axis=1)
    return out


def limits(rows: Array, bounds: tuple[Array, Array] | None) -> tuple[Array, Array]:
    """The range of every row's points, both (rows, features); a row outside it is its own edge."""
    if bounds is None:
        return np.full(rows.shape, -np.inf), np.full(rows.shape, np.inf)
    return np.minimum(bounds[0], rows), np.maximum(bounds[1], rows)
