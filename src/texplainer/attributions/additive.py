"""Closed form of the Shapley values of additive models: f(x) = sum of functions of one feature each.

Then v(S) is additive as well and phi_j = g_j(x_j) - mean over the background of g_j(b_j), whatever the
functions are: linear models, also behind encoders and splines, GAMs. That f is additive is tested on pairs of
background rows; and a row whose values do not sum up is given to another method.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from texplainer.attributions.attribution import ExplainContext
from texplainer.gradients.moves import replaced
from texplainer.models.predictor import Predictor
from texplainer.types import Array

PAIRS = 8  # of background rows on which additivity is tested
ROUNDINGS = 64.0
#: evaluations that the means over the background may cost, by whether the engine is exact (and so cheap)
AFFORDABLE = {True: 2_000_000, False: 20_000}


@dataclass(frozen=True)
class AdditiveParts:
    """The mean of every feature's function over the background, measured from one of its rows."""

    base: Array  # (features,) the row
    prediction: Array  # (outputs,) f there
    mean: Array  # (features, outputs) of g_j(b_j), with g_j(base_j) = 0
    tolerance: Array  # (outputs,) what sums may be off by round-off

    @property
    def evaluations(self) -> int:
        """Evaluations a row."""
        return len(self.base)

    def __call__(self, predictor: Predictor, rows: Array) -> Array:
        """Shapley values, (rows, features, outputs)."""
        count, features = rows.shape
        row = np.zeros(count * features, dtype=int)
        column = np.tile(np.arange(features), count)
        found = replaced(predictor, self.base[None], row, column, rows.reshape(-1))
        effect = found.reshape(count, features, -1) - self.prediction - self.mean
        effect[np.abs(effect) <= self.tolerance / features] = 0.0
        return effect


def parts_of(context: ExplainContext) -> AdditiveParts | None:
    """The parts of an additive model, None for others; found once."""
    return context.background.cached("additive parts", lambda: _parts(context))


def _parts(context: ExplainContext) -> AdditiveParts | None:
    predictor, rows = context.predictor, context.background.rows
    features = rows.shape[1]
    distinct = [np.unique(column, return_counts=True) for column in rows.T]
    cost = sum(len(values) for values, _ in distinct)
    if len(rows) < 2 or cost > AFFORDABLE[context.engine.exact]:
        return None
    tolerance = (
        ROUNDINGS
        * predictor.unit
        * features
        * (np.abs(context.background.base) + 3 * context.background.output_sd)
    )
    if not _additive(predictor, rows, tolerance):
        return None
    base = rows[0]
    prediction = predictor(base[None])[0]
    column = np.repeat(np.arange(features), [len(values) for values, _ in distinct])
    cells = np.concatenate([values for values, _ in distinct])
    effect = replaced(predictor, base[None], np.zeros(cost, dtype=int), column, cells) - prediction
    weight = np.concatenate([counts for _, counts in distinct]) / len(rows)
    mean = np.zeros((features, len(prediction)))
    np.add.at(mean, column, weight[:, None] * effect)
    return AdditiveParts(base, prediction, mean, tolerance)


def _additive(predictor: Predictor, rows: Array, tolerance: Array) -> bool:
    """Whether the single changes from one row to another add up to the whole change."""
    first = rows[(np.arange(PAIRS) * len(rows)) // PAIRS]
    second = rows[((np.arange(PAIRS) * len(rows)) // PAIRS + len(rows) // 2 + 1) % len(rows)]
    count, features = first.shape
    row, column = np.repeat(np.arange(count), features), np.tile(np.arange(features), count)
    here, there = predictor(first), predictor(second)
    single = replaced(predictor, first, row, column, second.reshape(-1)).reshape(count, features, -1)
    gap = there - here - (single - here[:, None]).sum(axis=1)
    moved = np.abs(there - here).max(axis=0)
    return bool((np.abs(gap) <= tolerance).all() and (moved > tolerance).any())
