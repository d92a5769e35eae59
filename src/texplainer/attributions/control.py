"""A control variate for walks: a boosted model of the function, whose Shapley values are exact.

Shapley values are linear: those of f are those of a model g and those of f - g. The values of g come from its trees,
those of f - g from walks, and walks find f - g with less error the closer g is to f. g is fitted once per background
to predictions of mixtures of two background rows, so that a row's values do not depend on the rows beside it. It is
used if its residual on other mixtures has at most half the standard deviation of f.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from texplainer.attributions.attribution import ExplainContext
from texplainer.errors import ModelError, Unsupported
from texplainer.gradients.engine import ExactShapley
from texplainer.models import predictor
from texplainer.models.predictor import Predictor
from texplainer.tables.schema import Schema
from texplainer.types import Array

MOST_POINTS = 4000  # evaluations of the function to fit the model
MOST_CELLS = 2**22  # of these points: wide tables must not fill the memory
LEAST_POINTS = 100
MOST_CATEGORIES = 255  # of a column: what scikit-learn allows
MOST_OUTPUTS = 32  # each has a model of its own, which costs more than most functions
LARGEST = 1e30  # of a prediction: scikit-learn adds up squares of float32
HELD_OUT = 8  # every eighth point judges the fit
DIGITS = 20  # binary ones, of the SD
CLOSE = 0.25  # of the variance of f: the most that may be left
#: chosen on seven pairs of model and table; three times as many trees are not better
BOOSTING = {
    "random_state": 0,
    "max_iter": 100,
    "learning_rate": 0.2,
    "max_leaf_nodes": 15,
    "min_samples_leaf": 10,
}


@dataclass(frozen=True)
class ControlVariate:
    """A boosted model for each output; `completes`: the last output is what the others leave of a constant."""

    models: tuple[Predictor, ...]
    exact: tuple[ExactShapley, ...]
    completes: bool

    def __call__(self, rows: Array) -> Array:
        """Predictions, (rows, outputs), up to a constant of each output."""
        return self._all(np.concatenate([model(rows) for model in self.models], axis=1))

    def shapley(self, rows: Array) -> Array:
        """Shapley values, (rows, features, outputs)."""
        return self._all(np.concatenate([values(rows) for values in self.exact], axis=2))

    def _all(self, found: Array) -> Array:
        last = -found.sum(axis=-1, keepdims=True)
        return np.concatenate([found, last], axis=-1) if self.completes else found


def control_variate(context: ExplainContext, points: int) -> ControlVariate | None:
    """The model of the explained function fitted to so many predictions; made once per background.

    None for few predictions, for many outputs, and where no model comes close.
    """
    points = min(points, MOST_POINTS, MOST_CELLS // context.rows.shape[1])
    if points < LEAST_POINTS or len(context.predictor.outputs) > MOST_OUTPUTS:
        return None
    return context.background.cached(("control variate", points), lambda: _fitted(context, points))


def mixtures(rows: Array, count: int) -> Array:
    """Points whose features come from two of the rows, in every proportion alike."""
    rng = np.random.default_rng((count, rows.shape[1]))
    first, second = rng.integers(len(rows), size=(2, count))
    taken = rng.uniform(size=(count, rows.shape[1])) < rng.uniform(size=(count, 1))
    return np.where(taken, rows[first], rows[second])


def _fitted(context: ExplainContext, points: int) -> ControlVariate | None:
    rows = context.background.rows
    X, categories = mixtures(rows, points), ~context.predictor.schema.numeric
    if any(len(np.unique(column)) > MOST_CATEGORIES for column in X.T[categories]):
        return None
    try:
        f = context.predictor(X)
    except ModelError:  # it refuses some mixture
        return None
    if not np.abs(f).max() < LARGEST:  # nor is there a model of what is NaN
        return None
    total = f.sum(axis=1)
    completes = f.shape[1] > 1 and bool(np.ptp(total) <= 1e-6 * np.abs(f).max())
    held_out = np.arange(points) % HELD_OUT == 0
    fitted = _rounded(f[:, : f.shape[1] - completes])
    try:
        parts = [_boosted(X[~held_out], y[~held_out], rows, categories) for y in fitted.T]
    except (ImportError, Unsupported):  # no exact values of its trees here: without numba, or a broken one
        return None
    found = ControlVariate(tuple(p for p, _ in parts), tuple(e for _, e in parts), completes)
    left = f[held_out] - found(X[held_out])
    return found if left.var(axis=0).sum() <= CLOSE * f[held_out].var(axis=0).sum() else None


def _rounded(f: Array) -> Array:
    """Predictions to a millionth of their SD, so that noise in the last digits does not choose other splits."""
    sd = f.std(axis=0)
    grid = 2.0 ** (np.floor(np.log2(np.where(sd > 0, sd, 1.0))) - DIGITS)
    return np.round(f / grid) * grid


def _boosted(X: Array, y: Array, background: Array, categories: np.ndarray) -> tuple[Predictor, ExactShapley]:
    """A model of y with its exact Shapley values; the order of a category's codes means nothing to it.

    One thread: sums of several differ in their last bits, and threads do not exist in a forked process.
    """
    from sklearn.ensemble import HistGradientBoostingRegressor
    from threadpoolctl import ThreadpoolController

    from texplainer.gradients.trees.shapley import tree_shapley

    settings: dict[str, Any] = {**BOOSTING, "early_stopping": False, "categorical_features": categories}
    model, threads = HistGradientBoostingRegressor(**settings), ThreadpoolController()
    with threads.limit(limits=1, user_api="openmp"):
        model.fit(np.where(np.isnan(X).all(axis=0), 0.0, X), y)  # it refuses columns without a number

    def predict(rows: Array) -> Array:
        with threads.limit(limits=1, user_api="openmp"):
            return model.predict(rows)

    schema = Schema(tuple(f"x{j}" for j in range(X.shape[1])), "array")
    function = replace(predictor.adapt(predict, schema, background[:8]), model=model)
    return function, tree_shapley(function, background)
