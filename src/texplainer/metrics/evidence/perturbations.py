"""The rows every explainer is tried on: neighbours of each row, and what a removed feature is replaced by.

Both are drawn once and shared by all explainers and metrics.

Neighbours: x' = x + N(0, sigma^2) on numeric columns (sigma^2 = 0.001 in the paper), a category moves to another of its
levels with probability `flip`, cells are clipped to the data's range. Of the candidates that keep the row's
predicted class the nearest are kept, so that rows near the decision boundary find neighbours too. A row that
still finds too few gets fewer: a shortage is reported, never padded with copies of x. `NEIGHBOURS` names the
conventions. "nearest" is the paper's text; "first-draws" is the code of its authors: the first draws of the same
class, with a standard deviation of 0.001 and without the data's range.

A mask is an array of replacement rows, (draws, rows or 1, columns): a removed feature takes its cells from
there, everything else stays. One-hot groups are replaced as a whole, so that (except under `zero`, the paper's
mask) the row stays a valid one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from texplainer.errors import InputError
from texplainer.metrics.evidence.features import Features
from texplainer.types import Array

SIGMA = 0.001**0.5
FLIP = 1e-4
ROUNDS = 4


@dataclass(frozen=True)
class NeighbourConvention:
    """Which draws become neighbours: the nearest or the first of the same class, their noise and range."""

    nearest: bool
    sigma: float  # standard deviation
    clipped: bool


NEIGHBOURS = {
    "nearest": NeighbourConvention(True, SIGMA, True),
    "first-draws": NeighbourConvention(False, 0.001, False),
}


@dataclass(frozen=True)
class Neighbourhood:
    """Neighbours (rows, neighbours, columns), in the convention's order; `valid` marks those that exist.

    Absent neighbours hold NaN and an infinite distance.
    """

    rows: Array
    valid: NDArray[np.bool_]
    distance: Array

    @property
    def counts(self) -> NDArray[np.int_]:
        """How many neighbours each row has."""
        return self.valid.sum(axis=1)


def comparable(rows: Array) -> Array:
    """Rows prepared for distances: a missing category is a separate category with the code -1."""
    return np.where(np.isnan(rows), -1.0, rows)


def neighbourhood(
    rows: Array,
    classify: Callable[[Array], NDArray[np.int_]],
    background: Array,
    features: Features,
    *,
    neighbours: int = 10,
    convention: str = "nearest",
    sigma: float | None = None,
    flip_share: float = FLIP,
    max_distance: float = np.inf,
    candidates: int | None = None,
    seed: int = 0,
) -> Neighbourhood:
    """Draw the neighbours of each row.

    Parameters
    ----------
    rows, background
        (rows, columns); perturbed values are kept in the background's range.
    classify
        Rows -> predicted class; a regressor's is constant.
    neighbours
        How many to keep.
    convention
        A name in `NEIGHBOURS`.
    sigma, flip_share
        Standard deviation of the noise, None is the convention's; chance that a category is flipped.
    max_distance
        Largest Euclidean distance allowed (the paper: half the smallest distance in the data).
    candidates
        Drawn per row and round, by default ten times `neighbours`; rows short of neighbours draw again, up to `ROUNDS`
        rounds in all.
    seed
        Seed of the draws. Row i has its own generator; its draws do not depend on the other rows.
    """
    if convention not in NEIGHBOURS:
        raise InputError(f"convention={convention!r} is unknown; expected one of {', '.join(NEIGHBOURS)}.")
    rule = NEIGHBOURS[convention]
    sigma = rule.sigma if sigma is None else sigma
    if neighbours < 1 or sigma < 0:
        raise InputError(
            f"neighbours={neighbours}, sigma={sigma}: expected at least 1 neighbour and sigma >= 0."
        )
    count, columns = rows.shape
    own = classify(rows)
    found = np.full((count, neighbours, columns), np.nan)
    distance = np.full((count, neighbours), np.inf)
    short = np.arange(count)
    for turn in range(ROUNDS):
        count_each = candidates or 10 * neighbours
        streams = [np.random.default_rng([seed, turn, int(i)]) for i in short]
        tries = [
            _perturb(
                rows[i], background if rule.clipped else None, features, sigma, flip_share, count_each, stream
            )
            for i, stream in zip(short, streams, strict=True)
        ]
        drawn = np.stack(tries)  # (short rows, candidates, columns)
        same = classify(drawn.reshape(-1, columns)).reshape(drawn.shape[:2]) == own[short, None]
        away = np.linalg.norm(comparable(drawn) - comparable(rows[short, None]), axis=-1)
        away = np.where(same & (away <= max_distance) & (away > 0), away, np.inf)
        pool, far = np.concatenate([found[short], drawn], 1), np.concatenate([distance[short], away], 1)
        order = far if rule.nearest else np.isinf(far)  # the first that count come first: the sort is stable
        kept = np.argsort(order, axis=1, kind="stable")[:, :neighbours]
        distance[short] = np.take_along_axis(far, kept, 1)
        found[short] = np.take_along_axis(pool, kept[..., None], 1)
        short = np.flatnonzero(np.isinf(distance[:, -1]))
        if not len(short):
            break
    valid = np.isfinite(distance)
    found[~valid] = np.nan
    return Neighbourhood(found, valid, distance)


def _perturb(
    row: Array,
    background: Array | None,  # None: values may leave the data's range
    features: Features,
    sigma: float,
    share: float,
    count: int,
    generator: np.random.Generator,
) -> Array:
    moved = row + features.numeric * generator.normal(0.0, sigma, (count, len(row)))
    if background is not None:  # a row outside the data keeps its own value as the edge
        low, high = np.fmin.reduce(background), np.fmax.reduce(background)
        moved = np.clip(moved, np.minimum(low, row), np.maximum(high, row))
    return flip(moved, features, share, generator)


def flip(rows: Array, features: Features, share: float, generator: np.random.Generator) -> Array:
    """Replace each category of each row, with the given probability, by another one."""
    rows = rows.copy()
    for feature, patterns in features.patterns.items():
        hit = np.flatnonzero(generator.random(len(rows)) < share)
        if len(patterns) < 2 or not len(hit):
            continue
        cells = hit[:, None], np.array(features.columns[feature])
        now = np.abs(rows[cells][:, None, :] - patterns).sum(axis=-1).argmin(axis=1)
        shift = generator.integers(1, len(patterns), len(hit))
        rows[cells] = patterns[(now + shift) % len(patterns)]
    return rows


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
