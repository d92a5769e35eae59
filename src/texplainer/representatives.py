"""A few real rows that stand for the background, with their weights: a deterministic k-medoids.

It starts from quantiles along the direction of greatest variance and takes Lloyd's steps; the row
nearest to each mean stands for its cluster. No random start, so the same background always gives the
same rows, in whatever order its columns come.
"""

from __future__ import annotations

import hashlib

import numpy as np

from texplainer.signatures import Array

MOST_ROWS = 5000
STEPS = 20


def representatives(
    rows: Array, sigma: Array, count: int, numeric: np.ndarray | bool = True
) -> tuple[Array, Array]:
    """Pick at most `count` rows, and the share of the background each stands for.

    Missing cells count as their column's median; a picked row is whole. Only `numeric` columns are
    looked at: the codes of a category have no distances, and may be given in any order.
    """
    rows = _whole(rows)
    if len(rows) <= count:
        return rows, np.full(len(rows), 1 / max(1, len(rows)))
    rows = rows[np.linspace(0, len(rows) - 1, min(len(rows), MOST_ROWS)).astype(int)]
    z = np.where(numeric, (rows - rows.mean(axis=0)) / sigma, 0.0)
    z = z[:, np.argsort(places_by_content(z))]  # ties are broken by roundings, and these by the order
    main = np.linalg.svd(z, full_matrices=False)[2][0]
    main *= np.sign(main[np.argmax(np.abs(main))])  # the sign is the library's whim
    order = np.argsort(z @ main, kind="stable")
    centres = z[order[((np.arange(count) + 0.5) / count * len(z)).astype(int)]]
    for _ in range(STEPS):
        nearest = _distances(z, centres).argmin(axis=1)
        moved = np.stack([z[nearest == c].mean(axis=0) for c in np.unique(nearest)])
        if moved.shape == centres.shape and np.array_equal(moved, centres):
            break
        centres = moved
    distances = _distances(z, centres)
    sizes = np.bincount(distances.argmin(axis=1), minlength=len(centres))
    kept = sizes > 0
    return rows[distances.argmin(axis=0)][kept], (sizes / len(z))[kept]


def calibrated(weights: Array, predictions: Array, target: Array) -> Array:
    """Tilt weights, as little as it takes, so that the weighted predictions have the mean `target`.

    w_i (1 + (f_i - mean) · a), with a from the weighted covariance of the predictions (rows, outputs):
    the calibration estimator of survey sampling (Deville & Saerndal 1992).
    """
    away = predictions - weights @ predictions
    covariance = (away * weights[:, None]).T @ away
    tilt = np.linalg.pinv(covariance, rcond=1e-9, hermitian=True) @ (target - weights @ predictions)
    return weights * (1 + away @ tilt)


def places_by_content(rows: Array) -> np.ndarray:
    """A place for every column, (features,), that follows from its values and not from where it stands."""
    marks = [hashlib.sha256(np.sort(column).tobytes()).digest() for column in rows.T]
    places = np.empty(len(marks), dtype=int)
    places[sorted(range(len(marks)), key=marks.__getitem__)] = np.arange(len(marks))
    return places


def _whole(rows: Array) -> Array:
    gaps = ~np.isfinite(rows)
    if not gaps.any():
        return rows
    known = [column[np.isfinite(column)] for column in rows.T]
    middle = np.array([np.quantile(column, 0.5, method="lower") if len(column) else 0.0 for column in known])
    return np.where(gaps, middle, rows)


def _distances(z: Array, centres: Array) -> Array:
    return (z**2).sum(1)[:, None] - 2 * z @ centres.T + (centres**2).sum(1)
