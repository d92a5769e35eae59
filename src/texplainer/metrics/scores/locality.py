"""Locality: whether an explanation speaks of what matters near x, and of nothing else.

`effects` (rows, features) are measured on the model: the largest change of the explained function when one
feature alone moves within a small box around x, from places in that box (evidence/local_effects.py).
"""

from __future__ import annotations

import numpy as np
from scipy.stats import rankdata

from texplainer.metrics.scores.agreement import correlation
from texplainer.metrics.scores.complexity import attribution_shares
from texplainer.types import Array

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
