"""Second derivatives of a model whose slopes are exact.

*Over a neighbourhood* (`fitted`): the slopes g are evaluated at the balanced pairs of the designed experiment
x + w sigma z_k, x - w sigma z_k, and the slopes of g are read off their halved differences by least squares.
That is Stein's identity, w sigma H sigma = E g z^T, with columns that are orthogonal exactly: the answer is
exact for quadratics, and 0 for additive models, whose g_i moves with z_i alone. It needs no second
derivative at any point, so a network of kinks (ReLU) is as welcome as a smooth one.

*At the point* (`differences`): centred differences with a small step, for the derivative at the row itself
and for trees, whose slopes are averaged over their neighbourhood already and change smoothly with the row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np

from texplainer.gradients.engine import BATCH, Engine
from texplainer.gradients.finite_difference.design import DesignedExperiment
from texplainer.interactions.second_order import SecondOrder, joined_blocks
from texplainer.models.predictor import Predictor
from texplainer.types import Array

MAGNITUDES = 8  # a column, about 16 slopes a feature
TIGHTER = 0.65  # of the design's bound, which is made for slopes of any model: covers 99% of very many points
KNOTS = 2.0**-14  # step in SDs for trees: their slopes are piecewise polynomials, with knots to avoid
CELLS = 2**22  # of the slopes at hand at a time
FLOOR = 64  # in roundings of the steepest slope: below it there is no response


@dataclass(frozen=True)
class _Slopes:
    """sigma times the slopes as a function of the row with features x outputs values."""

    engine: Engine
    sigma: Array
    count: int  # outputs of the model
    unit: float

    @property
    def outputs(self) -> tuple[int, ...]:
        return tuple(range(len(self.sigma) * self.count))

    def __call__(self, rows: Array) -> Array:
        parts = [
            self.engine.gradient(rows[first : first + BATCH]).values for first in range(0, len(rows), BATCH)
        ]
        found = np.concatenate(parts) if parts else np.empty((0, len(self.sigma), self.count))
        return (found * self.sigma[:, None]).reshape(len(rows), -1)


def fitted(
    engine: Engine,
    predictor: Predictor,
    sigma: Array,
    bounds: tuple[Array, Array] | None,
    rows: Array,
) -> SecondOrder:
    """The slopes of the slopes over the engine's neighbourhood, by a designed experiment."""
    numeric, outputs = predictor.schema.numeric, len(predictor.outputs)
    slopes = _Slopes(engine.at_point, np.where(numeric, sigma, 0.0), outputs, predictor.unit)
    move = np.where(numeric, engine.width * sigma, 0.0)
    nothing = np.zeros(len(move), bool)
    # an Experiment asks three things of a predictor: its outputs, its rounding, and to be called
    asked = cast(Predictor, slopes)
    found = DesignedExperiment(
        asked, move, engine.width, bounds, 0.0, nothing, magnitudes=MAGNITUDES
    ).gradient(rows)
    shape = (len(rows), len(sigma), len(sigma), outputs)
    values = (found.values * sigma[:, None]).reshape(shape)
    error = TIGHTER * (found.error * sigma[:, None]).reshape(shape)
    steepest = np.abs(slopes(rows)).reshape(len(rows), -1, outputs).max(axis=1, initial=0.0)
    floor = FLOOR * predictor.unit * steepest / engine.width
    values[np.abs(values) <= floor[:, None, None]] = 0.0
    return SecondOrder(values, error, found.evaluations)


def slope_differences(engine: Engine, predictor: Predictor, sigma: Array, rows: Array) -> SecondOrder:
    """Centred differences of the engine's slopes with a small step."""
    outputs = len(predictor.outputs)
    together = max(1, CELLS // (2 * len(sigma) ** 2 * outputs))
    step = KNOTS if engine.averages else predictor.unit ** (1 / 3)
    chunks = [rows[first : first + together] for first in range(0, len(rows), together)]
    return joined_blocks([_differences(engine, predictor, sigma, step, chunk) for chunk in chunks or [rows]])


def _differences(engine: Engine, predictor: Predictor, sigma: Array, step: float, rows: Array) -> SecondOrder:
    columns = np.flatnonzero(predictor.schema.numeric & (sigma > 0))
    moves = np.zeros((2, len(columns), rows.shape[1]))
    moves[0, np.arange(len(columns)), columns] = step * sigma[columns]
    moves[1] = -moves[0]
    at = rows[None, None] + moves[:, :, None]  # (2, columns, rows, features)
    found, here = engine.gradient(at.reshape(-1, rows.shape[1])), engine.gradient(rows)
    shape = (2, len(columns), *here.values.shape)
    (ahead, behind), error = found.values.reshape(shape), found.error.reshape(shape).max(axis=0)
    way = (at[0] - at[1])[np.arange(len(columns)), :, columns]  # (columns, rows), as represented
    known = np.isfinite(way) & (way > 0)
    per_sd = np.divide(sigma[columns, None], way, out=np.zeros_like(way), where=known)[:, :, None, None]
    unit = per_sd * sigma[:, None]
    second = (ahead - behind) * unit  # (columns, rows, features, outputs)
    # one side against the other: what bends within the step
    bound = (np.abs(ahead + behind - 2 * here.values) + 2 * error) * unit
    full = np.zeros((len(rows), len(sigma), *here.values.shape[1:]))
    bounds = np.zeros(full.shape)
    full[:, columns], bounds[:, columns] = second.transpose(1, 0, 2, 3), bound.transpose(1, 0, 2, 3)
    cost = np.full(len(rows), 2 * len(columns) + 1, dtype=np.int64)
    return SecondOrder(full, bounds, cost)
