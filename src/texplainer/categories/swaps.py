"""Categorical features without retraining: the effect of replacing a row's category by another.

A categorical feature does not have a derivative. Its finite counterpart are the swap effects Delta_c = f(x
with category c) - f(x), one for every category c in the background. Together with the category frequencies
pi_c in the background they give one value per feature, in the unit of f:

    slope, gradient      f(x) - sum_c pi_c f(x^c): this category against the average one
    variation            the root mean square of Delta

Ordered categories (an ordered category dtype, or declared "ordinal") have a difference between neighbouring
categories. This is their gradient; multiplied by the SD of the category positions it is their slope.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from texplainer.models.predictor import Predictor
from texplainer.types import Array


@dataclass(frozen=True)
class Feature:
    """One categorical feature: its column of codes and its categories in the background.

    `codes` and `frequencies` are (categories,); a missing category has the code NaN and the name None;
    `positions` are those of every category of the schema, None for unordered categories; `sd` is their robust
    SD over the background.
    """

    name: str
    column: int
    levels: tuple[Any, ...]
    codes: Array
    frequencies: Array
    positions: Array | None
    sd: float = np.nan

    def own_level(self, rows: Array) -> np.ndarray:
        """Mark each row's own category, (rows, categories)."""
        cells = rows[:, self.column, None]
        return (cells == self.codes) | (np.isnan(cells) & np.isnan(self.codes))

    def places(self, codes: Array) -> Array:
        """Return the positions of some codes in the category order; NaN stays NaN."""
        if self.positions is None:
            return np.full(codes.shape, np.nan)
        known = codes < len(self.positions)  # neither missing nor first met after the background
        return np.where(known, self.positions[np.where(known, codes, 0).astype(int)], np.nan)


@dataclass(frozen=True)
class Swap:
    """The swap effects of one feature: delta (rows, categories, outputs), weights and own (rows, categories).

    `slope` (rows, outputs) and `sd` are NaN for unordered categories.
    """

    delta: Array
    weights: Array
    own: np.ndarray
    slope: Array
    sd: float


def against_average(swap: Swap) -> Array:
    """f(x) - sum_c pi_c f(x^c)."""
    return 0.0 - _mean(swap.delta, swap)


def sd_or_average(swap: Swap) -> Array:
    """The row's category against the average one; for ordered categories the slope times the SD."""
    return np.where(np.isnan(swap.slope), against_average(swap), swap.slope * swap.sd)


def slope_or_average(swap: Swap) -> Array:
    """The row's category against the average one; for ordered categories the slope."""
    return np.where(np.isnan(swap.slope), against_average(swap), swap.slope)


def root_mean_square(swap: Swap) -> Array:
    """The root mean square of the swap effects."""
    return np.sqrt(_mean(swap.delta**2, swap))


def _mean(values: Array, swap: Swap) -> Array:
    return (swap.weights[:, :, None] * values).sum(axis=1)


def level_slopes(delta: Array, positions: Array, own: Array) -> Array:
    """Compute the central difference between the neighbours of each row's position, one-sided at the ends."""
    gap = positions - own[:, None]  # (rows, levels)
    rows = np.arange(len(gap))
    ends = []
    for side in (-1.0, 1.0):
        away = np.where(side * gap > 0, side * gap, np.inf)
        nearest = away.argmin(axis=1)
        there = np.isfinite(away[rows, nearest])[:, None]
        ends.append(
            (np.where(there, delta[rows, nearest], 0.0), np.where(there, gap[rows, nearest, None], 0.0))
        )
    (low, below), (high, above) = ends
    slope = np.divide(high - low, above - below, out=np.zeros_like(low), where=above > below)
    return np.where(np.isnan(own)[:, None], np.nan, slope)


# ---------------------------------------------------------------- the swaps themselves


def swap_effects(
    predictor: Predictor, features: Sequence[Feature], floor: Array, rows: Array, f0: Array
) -> list[Array]:
    """Compute Delta for all categories of all features and rows, in one batched call.

    Effects within the model's round-off error (`floor`, per output) are set to exactly 0.
    """
    column = np.concatenate([np.full(len(f.codes), f.column) for f in features])
    code = np.concatenate([f.codes for f in features])
    own = np.concatenate([f.own_level(rows) for f in features], axis=1)  # (rows, all levels)
    row, at = np.nonzero(~own)
    moved = rows[row]
    moved[np.arange(len(row)), column[at]] = code[at]
    delta = np.zeros((*own.shape, f0.shape[1]))
    if len(row):
        delta[row, at] = predictor(moved) - f0[row]
    noise = floor + 8 * predictor.unit * np.abs(f0)[:, None, :]
    delta[np.abs(delta) <= noise] = 0.0
    return np.split(delta, np.cumsum([len(f.codes) for f in features])[:-1], axis=1)


def swap_of(feature: Feature, delta: Array, rows: Array) -> Swap:
    """Collect the swap effects of one feature, with its ordered slope; weights are frequencies in the background."""
    weights = np.broadcast_to(feature.frequencies, (len(rows), len(feature.codes)))
    positions, own = feature.places(feature.codes), feature.places(rows[:, feature.column])
    return Swap(delta, weights, feature.own_level(rows), level_slopes(delta, positions, own), feature.sd)
