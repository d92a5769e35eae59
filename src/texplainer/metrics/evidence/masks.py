"""What a removed feature is replaced by.

A mask is an array of replacement rows, (draws, rows or 1, columns): a removed feature takes its cells from
there, everything else stays. Drawn once, it is the same for every explainer. One-hot groups are replaced as a
whole, so that (except under `zero`, the paper's mask) the row stays a valid one.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from texplainer.metrics.evidence.features import Features
from texplainer.metrics.evidence.neighbourhood import flip
from texplainer.types import Array

DRAWS = 16


def fill_zero(rows: Array, background: Array, features: Features, sigma: float, seed: int) -> Array:
    """Fill with zeros: the paper's removal."""
    return np.zeros((1, 1, rows.shape[1]))


def fill_mean(rows: Array, background: Array, features: Features, sigma: float, seed: int) -> Array:
    """Fill with the background's mean; for a categorical feature its most frequent category."""
    fill = background.mean(axis=0)
    for feature in features.patterns:
        columns = list(features.columns[feature])
        levels, counts = np.unique(background[:, columns], axis=0, return_counts=True)
        fill[columns] = levels[counts.argmax()]
    return fill[None, None, :]


def fill_marginal(rows: Array, background: Array, features: Features, sigma: float, seed: int) -> Array:
    """Fill with evenly spaced quantiles of each feature, shuffled independently for each feature."""
    generator = np.random.default_rng([seed, 1])
    fills = np.empty((DRAWS, 1, rows.shape[1]))
    places = ((np.arange(DRAWS) + 0.5) / DRAWS * len(background)).astype(int)
    for columns in features.columns:
        cells = background[:, list(columns)]
        ordered = cells[np.lexsort(cells.T[::-1])]
        fills[:, 0, list(columns)] = ordered[generator.permutation(places)]
    return fills


def fill_gaussian(rows: Array, background: Array, features: Features, sigma: float, seed: int) -> Array:
    """Add N(0, sigma^2) to the row; a category is replaced with probability one half (OpenXAI)."""
    generator = np.random.default_rng([seed, 2])
    draws = np.repeat(rows[None], DRAWS, axis=0)  # (draws, rows, columns)
    draws += features.numeric * generator.normal(0.0, sigma, draws.shape)
    return flip(draws.reshape(-1, rows.shape[1]), features, 0.5, generator).reshape(draws.shape)


Mask = Callable[[Array, Array, Features, float, int], Array]
MASKS: dict[str, Mask] = {
    "zero": fill_zero,
    "mean": fill_mean,
    "marginal": fill_marginal,
    "gaussian": fill_gaussian,
}


def apply(rows: Array, fills: Array, removed: NDArray[np.bool_], owner: NDArray[np.int_]) -> Array:
    """Replace the removed features (..., rows, features) of rows: (draws, ..., rows, columns)."""
    fills = fills.reshape(len(fills), *(1,) * (removed.ndim - 2), *fills.shape[1:])
    return np.where(removed[..., owner], fills, rows)
