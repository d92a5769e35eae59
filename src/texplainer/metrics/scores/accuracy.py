"""Accuracy: whether an explanation adds up, meets a known truth, and names what matters near x."""

from __future__ import annotations

import numpy as np
from scipy.stats import rankdata

from texplainer.metrics.scores.agreement import correlation
from texplainer.metrics.scores.complexity import attribution_shares
from texplainer.metrics.scores.stability import Scores
from texplainer.types import Array


def local_accuracy(predictions: Array, base: Array, contributions: Array, *, tol: float = 1e-2) -> Scores:
    """LAP: whether |f(x) - base - sum(contributions)| <= tol, and that residual's quantiles.

    predictions and base are (rows,), contributions (rows, features), all on the explainer's own scale; the
    share of rows within tolerance is the mean of the first part (Lundberg and Lee, 2017, local accuracy).
    """
    residual = np.abs(predictions - base - contributions.sum(axis=-1))
    within = np.where(np.isnan(residual), np.nan, residual <= tol)
    return {"mean": within, "median": residual, "p95": residual}


def truth_error(values: Array, truth: Array) -> Array:
    """Relative error ‖e - t‖ / ‖t‖ to the known gradient or weights t, (rows, features)."""
    size = np.linalg.norm(truth, axis=-1)
    return np.linalg.norm(values - truth, axis=-1) / np.where(size > 0, size, np.nan)


def truth_mass(values: Array, truth: Array) -> Array:
    """Share of sum |e| on features whose true weight is zero; NaN where there is none, or e is all zeros."""
    absent = truth == 0
    size = np.abs(values).sum(axis=-1)
    share = np.where(absent, np.abs(values), 0.0).sum(axis=-1) / np.where(size > 0, size, np.nan)
    return np.where(absent.any(axis=-1), share, np.nan)


def truth_cosine(values: Array, truth: Array) -> Array:
    """Cosine between the explanation and the known truth; 0 for an explanation of zeros."""
    sizes = np.linalg.norm(values, axis=-1) * np.linalg.norm(truth, axis=-1)
    return np.where(sizes > 0, np.sum(values * truth, axis=-1) / np.where(sizes > 0, sizes, 1.0), 0.0)


NOTHING = 1e-2  # of the row's largest effect: below it a feature counts as one that does not matter here


def misplaced_mass(values: Array, effects: Array, *, nothing: float = NOTHING) -> Array:
    """Fraction of sum |e| on features without a measured effect near x; NaN for an explanation of zeros.

    A feature has an effect if it exceeds the fraction `nothing` of the row's largest. If no feature or every
    feature has an effect, the row is undefined.
    """
    largest = effects.max(axis=-1, keepdims=True)
    absent = effects <= nothing * largest
    telling = (largest[..., 0] > 0) & absent.any(axis=-1)
    mass = np.where(absent, attribution_shares(values), 0.0).sum(axis=-1)
    silent = ~np.any(values != 0, axis=-1)
    return np.where(telling & ~silent, mass, np.nan)


def effect_correlation(values: Array, effects: Array) -> Array:
    """Rank correlation of |e| with the measured effects near x; 0 where one of them does not vary."""
    return correlation(rankdata(np.abs(values), axis=-1), rankdata(effects, axis=-1))
