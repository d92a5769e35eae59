"""Complexity: how many features an explanation uses.

Every function takes attributions (rows, features) and returns one score per row. The score of an explanation
of zeros is NaN, so that it is not the best one.
"""

from __future__ import annotations

import numpy as np

from texplainer.types import Array


def attribution_shares(values: Array) -> Array:
    """|e_i| / sum |e|, NaN for a row of zeros."""
    size = np.abs(values)
    total = size.sum(axis=-1, keepdims=True)
    return size / np.where(total > 0, total, np.nan)


def complexity(values: Array) -> Array:
    """Entropy of |e_i| / sum |e|, in nats (Bhatt et al., 2020, arXiv 2005.00631)."""
    share = attribution_shares(values)
    return -np.sum(share * np.log(np.where(share > 0, share, 1.0)), axis=-1)


def sparseness(values: Array) -> Array:
    """Gini index of |e|: 0 when all are equal, 1 - 1/features when only one is not 0 (Chalasani, 2020)."""
    ordered = np.sort(attribution_shares(values), axis=-1)
    features = values.shape[-1]
    weights = (2 * np.arange(1, features + 1) - features - 1) / features
    return ordered @ weights


def effective_complexity(values: Array, *, eps: float = 1e-2) -> Array:
    """Count the features above `eps` of the row's largest |e| (after Nguyen and Martinez, 2020)."""
    size = np.abs(values)
    top = size.max(axis=-1, keepdims=True)
    return np.where(top[..., 0] > 0, np.sum(size > eps * top, axis=-1), np.nan)
