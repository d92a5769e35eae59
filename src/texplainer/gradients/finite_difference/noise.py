"""How noisy a model's outputs are, and whether they are steps: both seen once, on background rows.

ECnoise (Moré & Wild 2011): differences of order k of equally spaced values annihilate the smooth part of f
and leave its noise, magnified by a known factor; orders that agree with each other have found it. It is
looked for at several distances: rounding in float64 shows at once, float32 inside the model only at distances
that float32 can tell apart. A kink under the probe looks like noise, so that most of several places must
agree, and they lie between background rows: kernel machines have kinks at the rows themselves. All probes
stay inside the background's range.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import factorial

from texplainer.models.predictor import Predictor
from texplainer.types import Array

PLACES = 9  # background rows that are probed
LENGTHS = (1e-13, 1e-10, 1e-7, 1e-5, 1e-4)  # distances of the probe's values, in SDs
ORDERS = (4, 5, 6)
AGREE = 4.0  # factor within which the noise levels of these orders must lie
TINY = {8: 1e-5, 4: 1e-3}  # a move, in SDs, that every smooth model answers, by its float width
STEPPED = 0.9  # share of rows that do not answer it


@dataclass(frozen=True)
class Noise:
    """The standard deviation of a model's noise, and the outputs it was seen beside.

    `level` and `typical` are (outputs,): the noise, and the outputs' median size where it was seen.
    `floor` is the rounding of the float width, relative to f; `relative` the noise over the outputs' SD.
    """

    level: Array
    typical: Array
    floor: float
    relative: float

    def at(self, f0: Array) -> Array:
        """Bound of the noise of predictions f0 (rows, outputs); larger outputs are taken to be noisier."""
        size = np.abs(f0)
        grown = np.maximum(1.0, size / np.maximum(self.typical, np.finfo(float).tiny))
        return np.maximum(self.floor * size, 2 * self.level * np.minimum(grown, 10.0))


def noise_of(predictor: Predictor, background: Array, sigma: Array) -> Noise:
    """See what noise the model has beyond the rounding of its float width."""
    outputs, floor = len(predictor.outputs), 2 * predictor.unit
    sample = complete(background, 64)
    if not len(sample):
        return Noise(np.zeros(outputs), np.ones(outputs), floor, 0.0)
    f = np.abs(predictor(sample))
    typical, apart = np.median(f, axis=0), np.std(predictor(sample), axis=0)
    centres = between(sample, predictor.schema.numeric)[:: max(1, len(sample) // PLACES)][:PLACES]
    centres = inner_rows(
        centres, background, np.where(predictor.schema.numeric, 3 * LENGTHS[-1] * sigma, 0.0)
    )
    level = np.zeros(outputs)
    for length in LENGTHS:
        if length >= 64 * predictor.unit:
            level = np.maximum(level, _level(predictor, centres, length * sigma))
    rough = max(
        float(np.max(np.divide(level, apart, out=np.zeros(outputs), where=apart > 0))), predictor.unit
    )
    return Noise(level, typical, floor, rough)


def _level(predictor: Predictor, centres: Array, step: Array) -> Array:
    """The noise at one distance, (outputs,): the median over places, 0 where most of them show none."""
    moves = np.arange(-3, 4)[:, None] * step * irrational_direction(predictor)
    points = (centres[:, None] + moves).reshape(-1, centres.shape[1])
    table = predictor(points).reshape(len(centres), 7, -1)
    levels = []
    for order in range(1, 7):
        table = np.diff(table, axis=1)
        if order in ORDERS:
            gamma = factorial(order) ** 2 / factorial(2 * order)
            levels.append(np.sqrt(gamma * np.mean(table**2, axis=1)))  # (places, outputs)
    most, least = np.max(levels, axis=0), np.min(levels, axis=0)
    settled = np.where((most <= AGREE * least) & np.isfinite(most), most, 0.0)
    return np.median(settled, axis=0)


def is_step_function(predictor: Predictor, background: Array, sigma: Array) -> bool:
    """Whether hardly any row answers a tiny move of all its numbers, though the predictions vary."""
    sample = complete(background, 64)
    if len(sample) < 2:
        return False
    move = np.where(irrational_direction(predictor) == 0, 0.0, TINY[predictor.dtype.itemsize] * sigma)
    move = np.maximum(move, 64 * np.spacing(np.abs(sample).max(axis=0).astype(predictor.dtype)) * (move > 0))
    sample = inner_rows(sample, background, move)
    f = predictor(sample)
    if not np.any(np.ptp(f, axis=0) > 0):
        return False
    move *= np.sign(irrational_direction(predictor))
    still = np.all((predictor(sample + move) == f) & (predictor(sample - move) == f), axis=1)
    return bool(still.mean() >= STEPPED)


def complete(background: Array, count: int) -> Array:
    """Some evenly spaced rows without missing cells."""
    rows = background[np.all(np.isfinite(background), axis=1)]
    return rows[:: max(1, len(rows) // count)][:count]


def between(rows: Array, numeric: np.ndarray) -> Array:
    """Places on the ways between rows and others: categories stay those of the row."""
    return np.where(numeric, rows + 0.382 * (np.roll(rows, len(rows) // 2, axis=0) - rows), rows)


def inner_rows(rows: Array, background: Array, margin: Array) -> Array:
    """Rows drawn inside the background's range by a margin, where a range is wide enough for one."""
    low, high = np.nanmin(background, axis=0) + margin, np.nanmax(background, axis=0) - margin
    return np.where(low < high, np.clip(rows, low, np.maximum(low, high)), rows)


def irrational_direction(predictor: Predictor) -> Array:
    """A fixed direction with irrational ratios, so that no two coordinates move in step."""
    numeric = predictor.schema.numeric
    return np.where(numeric, np.cos(np.sqrt(2) * np.arange(1, len(numeric) + 1)), 0.0)
