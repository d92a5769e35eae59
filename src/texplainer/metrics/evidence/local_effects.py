"""What the model does near x when one feature alone moves: the yardstick of locality.

Within a box of `radius` SDs around x, the effect of feature j is the largest range of f as x_j runs over
the box, the other features standing at x or at one of a few fixed places in the box. A category has no near
and far: it takes all its levels.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from texplainer.metrics.evidence.features import Features
from texplainer.types import Array

PLACES = 8  # where the other features stand, x itself the first
STOPS = np.linspace(-1.0, 1.0, 5)  # where the moved feature stops, in radii
LEVELS = 8  # the most levels a category is tried at


def local_effects(
    predict: Callable[[Array], Array],
    rows: Array,
    sd: Array,
    features: Features,
    *,
    radius: float,
    seed: int = 0,
) -> Array:
    """Measure the effect of each feature near each row, (rows, features); the same places for every row."""
    offsets = np.random.default_rng([seed, 13]).uniform(-1.0, 1.0, (PLACES, rows.shape[1]))
    offsets[0] = 0.0
    places = rows[:, None, :] + radius * sd * features.numeric * offsets  # (rows, places, columns)
    effects = np.empty((len(rows), len(features.names)))
    for feature, columns in enumerate(features.columns):
        cells = _stops(rows, sd, features, feature, radius)  # (rows or 1, stops, columns of the feature)
        moved = np.repeat(places[:, :, None, :], cells.shape[1], axis=2)
        moved[..., list(columns)] = cells[:, None]
        found = predict(moved.reshape(-1, rows.shape[1])).reshape(moved.shape[:3])
        effects[:, feature] = np.ptp(found, axis=2).max(axis=1)
    return effects


def _stops(rows: Array, sd: Array, features: Features, feature: int, radius: float) -> Array:
    columns = list(features.columns[feature])
    if feature in features.patterns:
        levels = features.patterns[feature]
        chosen = np.unique(np.linspace(0, len(levels) - 1, min(LEVELS, len(levels))).round().astype(int))
        return levels[chosen][None]
    return rows[:, None, columns] + radius * sd[columns] * STOPS[:, None]
