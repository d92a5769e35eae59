"""Agreement between two explainers of the same rows (Krishna et al., 2022, arXiv 2202.01602).

Each function takes two attribution arrays (rows, features) and returns one score per row in [0, 1], or [-1,
1] for the correlations. `ties` (rows, features) decides between equal attributions; see `ranking`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.stats import kendalltau, rankdata

from texplainer.types import Array


def ranking(values: Array, ties: Array) -> NDArray[np.int_]:
    """Features of each row, largest value first; equal values in the order of the random keys `ties`.

    Breaking ties by position would favour the first columns for a constant explanation; a random order shared
    by all explainers is fair.
    """
    return np.lexsort((ties, -values), axis=-1)


def _tops(a: Array, b: Array, ties: Array, k: int) -> tuple[NDArray[np.int_], NDArray[np.int_]]:
    return ranking(np.abs(a), ties)[:, :k], ranking(np.abs(b), ties)[:, :k]


def _signs(values: Array, top: NDArray[np.int_]) -> Array:
    return np.sign(np.take_along_axis(values, top, axis=1))


def feature_agreement(a: Array, b: Array, ties: Array, k: int) -> Array:
    """Fraction of the top k that both contain."""
    one, two = _tops(a, b, ties, k)
    return (one[:, :, None] == two[:, None, :]).any(axis=2).mean(axis=1)


def rank_agreement(a: Array, b: Array, ties: Array, k: int) -> Array:
    """Fraction of the top k that agree in rank."""
    one, two = _tops(a, b, ties, k)
    return (one == two).mean(axis=1)


def sign_agreement(a: Array, b: Array, ties: Array, k: int) -> Array:
    """Fraction of the top k that agree in sign."""
    one, two = _tops(a, b, ties, k)
    same = (one[:, :, None] == two[:, None, :]) & (_signs(a, one)[:, :, None] == _signs(b, two)[:, None, :])
    return same.any(axis=2).mean(axis=1)


def signed_rank_agreement(a: Array, b: Array, ties: Array, k: int) -> Array:
    """Fraction of the top k that agree in rank and sign."""
    one, two = _tops(a, b, ties, k)
    return ((one == two) & (_signs(a, one) == _signs(b, two))).mean(axis=1)


def spearman(a: Array, b: Array) -> Array:
    """Rank correlation of |a| and |b| over all features; 0 where one of them is flat."""
    one, two = (rankdata(np.abs(v), axis=-1) for v in (a, b))
    return correlation(one, two)


def kendall(a: Array, b: Array) -> Array:
    """Kendall's tau-b of |a| and |b| over all features; 0 where one of them is flat."""
    tau = [kendalltau(one, two)[0] for one, two in zip(np.abs(a), np.abs(b), strict=True)]
    return np.nan_to_num(np.array(tau, dtype=float))


def correlation(a: Array, b: Array) -> Array:
    """Pearson correlation along the last axis; 0 where one side does not vary: it carries no information."""
    one, two = (v - v.mean(axis=-1, keepdims=True) for v in (a, b))
    sizes = np.linalg.norm(one, axis=-1) * np.linalg.norm(two, axis=-1)
    # Sums of equal numbers differ by rounding: what varies by no more than that does not vary.
    flat = _flat(a, one) | _flat(b, two)
    return np.where(flat, 0.0, np.sum(one * two, axis=-1) / np.where(flat, 1.0, sizes))


def _flat(values: Array, centred: Array) -> NDArray[np.bool_]:
    noise = 8 * np.finfo(np.float64).eps * values.shape[-1] ** 0.5
    return np.linalg.norm(centred, axis=-1) <= noise * np.linalg.norm(values, axis=-1)


AGREEMENTS: dict[str, Callable[[Array, Array, Array, int], Array]] = {
    "feature": feature_agreement,
    "rank": rank_agreement,
    "sign": sign_agreement,
    "signed_rank": signed_rank_agreement,
    "spearman": lambda a, b, ties, k: spearman(a, b),
    "kendall": lambda a, b, ties, k: kendall(a, b),
}
