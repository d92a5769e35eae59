"""Reference values: what a column holds, as evenly spaced quantiles, a missing cell as one more level."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from texplainer.background.summary import Background
from texplainer.types import Array

QUANTILES = 16


@dataclass(frozen=True)
class References:
    """Values (references, features) and their weights, which sum to 1 for every feature.

    The last reference is the missing cell, with the share of the background that misses it as its weight.
    """

    values: Array
    weights: Array


def references_of(background: Background) -> References:
    """The references of every column, made once."""
    return background.cached("references", lambda: _references(background.rows))


def _references(rows: Array) -> References:
    levels = (np.arange(QUANTILES) + 0.5) / QUANTILES
    values = np.full((QUANTILES + 1, rows.shape[1]), np.nan)
    weights = np.zeros_like(values)
    for j, column in enumerate(rows.T):
        known = column[np.isfinite(column)]
        present = len(known) / len(column)
        if len(known):
            values[:-1, j] = np.quantile(known, levels)
            weights[:-1, j] = present / QUANTILES
        weights[-1, j] = 1.0 - present
    return References(values, weights)
