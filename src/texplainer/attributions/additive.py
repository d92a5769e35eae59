"""Closed form of the Shapley values of additive models: f(x) = sum of functions of one feature each.

Then v(S) is additive as well and phi_j = g_j(x_j) - mean over the background of g_j(b_j), whatever the
functions are: linear models, also behind encoders and splines, GAMs. That f is additive is tested on all background
rows, on pairs of rows, and on pairs of the row and others: a row that fails, or whose values do not sum up, is given
to another method. Few rows show an interaction between large or small values of two columns, so that the rows of
these pairs hold many columns' ends (`_with_ends`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from texplainer.attributions.attribution import ExplainContext
from texplainer.attributions.replaced import predict_points
from texplainer.gradients.moves import replaced
from texplainer.models.predictor import Predictor
from texplainer.types import Array

#: pairs on which additivity is tested, of background rows and of rows with many ends: few of them show some steps
FEW, MANY = 16, 240
LEAST_ROWS = 8  # different ones: fewer show too little, and the other methods take each of them
OTHERS = 8  # rows with which a row is tested
ROUNDINGS = 64.0
NEGLIGIBLE = 1e-6  # of the SD of f: an interaction at the ends, or round-off of large log-odds
#: evaluations that the means over the background may cost, by whether the engine is exact (and so cheap)
AFFORDABLE = {True: 2_000_000, False: 20_000}


@dataclass(frozen=True)
class AdditiveParts:
    """The mean of every feature's function over the background, measured from one of its rows."""

    base: Array  # (features,) the row
    prediction: Array  # (outputs,) f there
    mean: Array  # (features, outputs) of g_j(b_j), with g_j(base_j) = 0
    tolerance: Array  # (outputs,) what sums may be off by round-off
    others: Array  # (others, features) rows with which a row is tested
    known: Array  # (others, outputs) f there
    negligible: Array  # (outputs,) what a row's test may be off by; the bound includes it
    hidden: Array  # (features, outputs) what round-off may hide in a 0; 0 for unused features

    @property
    def evaluations(self) -> int:
        """Evaluations a row."""
        return len(self.base)

    @property
    def test_evaluations(self) -> int:
        """Evaluations of the test of a row."""
        return 2 * len(self.others)

    def gap(self, predictor: Predictor, rows: Array, predictions: Array) -> Array:
        """How far f is from additive, as exchanges of values with some other rows show, (rows, outputs)."""
        taken = np.random.default_rng(self.others.shape).random(self.others.shape) < 0.5
        one, other = (
            predict_points(predictor, np.where(kept, rows[:, None], self.others)) for kept in (taken, ~taken)
        )
        return np.abs(one + other - predictions[:, None] - self.known).max(axis=1)

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
    distinct = [np.unique(column, return_inverse=True) for column in rows.T]
    cost = sum(len(values) for values, _ in distinct)
    if len(np.unique(rows, axis=0)) < LEAST_ROWS or cost > AFFORDABLE[context.engine.exact]:
        return None
    tolerance = (
        ROUNDINGS
        * predictor.unit
        * features
        * (np.abs(context.background.base) + 3 * context.background.output_sd)
    )
    negligible = np.maximum(tolerance, NEGLIGIBLE * context.background.output_sd)
    if not _additive(predictor, rows, tolerance, negligible):
        return None
    base = rows[0]
    prediction = predictor(base[None])[0]
    column = np.repeat(np.arange(features), [len(values) for values, _ in distinct])
    cells = np.concatenate([values for values, _ in distinct])
    effect = replaced(predictor, base[None], np.zeros(cost, dtype=int), column, cells) - prediction
    mean, rest = np.zeros((features, len(prediction))), context.background.predictions - prediction
    hidden = np.zeros(mean.shape)
    for j, (_, place) in enumerate(distinct):
        each = effect[column == j][place]  # (rows, outputs)
        mean[j], rest = each.mean(axis=0), rest - each
        hidden[j] = np.where((each != 0).any(axis=0), tolerance / features, 0.0)
    if not (np.abs(rest) <= tolerance).all():
        return None
    others = _with_ends(rows[(np.arange(OTHERS) * len(rows)) // OTHERS], rows)
    return AdditiveParts(base, prediction, mean, tolerance, others, predictor(others), negligible, hidden)


def _additive(predictor: Predictor, rows: Array, tolerance: Array, negligible: Array) -> bool:
    """Whether f(a) + f(b) stays the same when rows a and b exchange some of their values."""
    rng = np.random.default_rng(rows.shape)
    few, many = (rows[rng.integers(len(rows), size=2 * pairs)] for pairs in (FEW, MANY))
    moved = np.zeros(len(tolerance))
    for some, most in ((few, tolerance), (_with_ends(many, rows), negligible)):
        a, b = np.split(some, 2)
        taken = rng.random(a.shape) < 0.5
        here, there = predictor(a), predictor(b)
        one, other = (predictor(np.where(kept, a, b)) for kept in (taken, ~taken))
        if not (np.abs(one + other - here - there) <= most).all():
            return False
        moved = np.maximum(moved, np.abs(here - there).max(axis=0))
    return bool((moved > tolerance).any())


def _with_ends(some: Array, rows: Array) -> Array:
    """Rows of which a quarter takes a column's smallest value and a quarter its largest, in each column other ones."""
    order = np.tile(np.arange(len(some))[:, None], rows.shape[1])
    place = 4 * np.random.default_rng(some.shape).permuted(order, axis=0) // len(some)
    return np.select([place == 0, place == 3], [np.fmin.reduce(rows), np.fmax.reduce(rows)], some)
