"""A control variate for walks: a boosted model of the function, whose Shapley values are exact.

Shapley values are linear: those of f are those of a model g and those of f - g. The values of g come from its trees,
those of f - g from walks, and walks find f - g with less error the closer g is to f. g is fitted once per background
to predictions of mixtures of two background rows, so that a row's values do not depend on the rows beside it. It is
used if its residual on other mixtures has at most half the standard deviation of f.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
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
LEAST_POINTS = 100
HELD_OUT = 8  # every eighth point judges the fit
CLOSE = 0.25  # of the variance of f: the most that may be left
#: chosen on seven pairs of model and table; three times as many trees are no better
BOOSTING = {"max_iter": 100, "learning_rate": 0.2, "max_leaf_nodes": 15, "min_samples_leaf": 10}


@dataclass(frozen=True)
class BoostedModel:
    """A boosted model of one output; categories have the rank of f's mean, whatever they are called."""

    model: Predictor
    exact: ExactShapley
    ranks: dict[int, Array]  # column -> the rank of each of its codes

    def __call__(self, rows: Array) -> Array:
        """Predictions, (rows, 1)."""
        return self.model(ranked(rows, self.ranks))

    def shapley(self, rows: Array) -> Array:
        """Shapley values, (rows, features, 1)."""
        return self.exact(ranked(rows, self.ranks))


@dataclass(frozen=True)
class ControlVariate:
    """A boosted model for each output; `completes`: the last output is what the others leave of a constant."""

    models: tuple[BoostedModel, ...]
    completes: bool

    def __call__(self, rows: Array) -> Array:
        """Predictions, (rows, outputs), up to a constant of each output."""
        return self._all(np.concatenate([model(rows) for model in self.models], axis=1))

    def shapley(self, rows: Array) -> Array:
        """Shapley values, (rows, features, outputs)."""
        return self._all(np.concatenate([model.shapley(rows) for model in self.models], axis=2))

    def _all(self, found: Array) -> Array:
        last = -found.sum(axis=-1, keepdims=True)
        return np.concatenate([found, last], axis=-1) if self.completes else found


def control_variate(context: ExplainContext, points: int) -> ControlVariate | None:
    """The model of the explained function fitted to so many predictions; made once per background."""
    points = min(points, MOST_POINTS)
    if points < LEAST_POINTS:
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
    X = mixtures(rows, points)
    try:
        f = context.predictor(X)
    except ModelError:  # it refuses some mixture
        return None
    total = f.sum(axis=1)
    completes = f.shape[1] > 1 and bool(np.ptp(total) <= 1e-6 * np.abs(f).max())
    held_out = np.arange(points) % HELD_OUT == 0
    fitted = f[:, : f.shape[1] - completes]
    try:
        levels = context.predictor.schema.levels
        models = tuple(_boosted(X[~held_out], y[~held_out], rows, levels) for y in fitted.T)
    except (ModuleNotFoundError, Unsupported):  # no exact values of its trees here
        return None
    found = ControlVariate(models, completes)
    left = f[held_out] - found(X[held_out])
    return found if left.var(axis=0).sum() <= CLOSE * f[held_out].var(axis=0).sum() else None


def ranked(rows: Array, ranks: dict[int, Array]) -> Array:
    """The rows with the ranks of their categories; one that was not met ranks last."""
    out = rows.copy()
    for j, rank in ranks.items():
        known = rows[:, j] < len(rank)
        rest = np.where(np.isnan(rows[:, j]), np.nan, len(rank))
        out[:, j] = np.where(known, rank[np.where(known, rows[:, j], 0).astype(int)], rest)
    return out


def _rank(codes: Array, count: int, y: Array) -> Array:
    """The rank of each category by the mean of y where it occurs, (count,); those that do not occur rank last."""
    where = np.isfinite(codes)
    own, weights = codes[where].astype(int), y[where]
    met = np.bincount(own, minlength=count)[:count]
    mean = np.bincount(own, weights, minlength=count)[:count] / np.where(met > 0, met, 1)
    rank = np.full(count, float(count))
    rank[np.argsort(np.where(met > 0, mean, np.inf), kind="stable")[: np.sum(met > 0)]] = np.arange(
        np.sum(met > 0)
    )
    return rank


def _boosted(X: Array, y: Array, background: Array, levels: Mapping[int, Any]) -> BoostedModel:
    from sklearn.ensemble import HistGradientBoostingRegressor
    from threadpoolctl import threadpool_limits

    from texplainer.gradients.trees.shapley import tree_shapley

    ranks = {j: _rank(X[:, j], len(own), y) for j, own in levels.items()}
    X, background = ranked(X, ranks), ranked(background, ranks)
    settings: dict[str, Any] = {**BOOSTING, "early_stopping": False, "random_state": 0}
    with threadpool_limits(1, user_api="openmp"):  # sums of several threads differ in their last bits
        model = HistGradientBoostingRegressor(**settings).fit(X, y)
    schema = Schema(tuple(f"x{j}" for j in range(X.shape[1])), "array")
    function = predictor.adapt(model, schema, background[:8])
    return BoostedModel(function, tree_shapley(function, background), ranks)
