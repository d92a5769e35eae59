"""The relative change: how much other a row's values would be, had it been measured a little differently.

It is the expected relative change of its values, |values' - values| / |values| over the
features, when every continuous number of the row moves by 5% of its SD (a normal deviate of that size each);
discrete columns are known exactly and stay. Slopes averaged over points tell it for nothing
(`Gradient.change`); slopes of trees are taken again at four moved rows, exact Shapley values at three, other
attributions at two.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from texplainer.attributions.attribution import ExplainContext
from texplainer.types import Array

SHIFT = 0.05  # of an SD
MOVES, MANY_MOVES = 2, 4
FLOOR = 0.01  # values below this share of the output's SD are as good as none


def directions(features: int, count: int = MOVES) -> Array:
    """Up to four fixed moves in standard coordinates, (count, features): signs without a pattern.

    Signs times the mean size of a normal deviate, not deviates: of few of these some features hardly get any,
    while the mean of |J z|² over signs misses least of its expectation (Hutchinson 1990), and nothing
    where J is diagonal. The mean size, for the steps a tree takes grow with |z|, not with z². The moves are
    one pattern times Walsh functions, which are at right angles.
    """
    number = np.arange(1, features + 1)
    first = np.where(number * ((5**0.5 - 1) / 2) % 1.0 < 0.5, 1.0, -1.0)
    bits = np.arange(count)[:, None] & ((number - 1) % MANY_MOVES)
    odd = (bits ^ bits >> 1 ^ bits >> 2) & 1  # parity
    return np.sqrt(2 / np.pi) * first * np.where(odd, -1.0, 1.0)


def moved(context: ExplainContext, count: int = MOVES) -> list[Array]:
    """The rows, moved by 5% of an SD each; a move that would leave the bounds goes the other way."""
    moves = context.predictor.schema.numeric & ~context.background.discrete.mask(context.rows.shape[1])
    step = np.where(moves, SHIFT * context.background.unit, 0.0)
    out = []
    for z in directions(context.rows.shape[1], count):
        there = context.rows + step * z
        if context.bounds is not None:
            low, high = context.bounds
            outside = (there < np.minimum(low, context.rows)) | (there > np.maximum(high, context.rows))
            there = np.where(outside, context.rows - step * z, there)
        out.append(there)
    return out


def expected_change(changes: Sequence[Array], size: Array, output_sd: Array) -> Array:
    """Root mean square over moves of |change|, (rows, features, outputs), over `size` (rows, outputs)."""
    squares = np.mean([(change**2).sum(axis=1) for change in changes], axis=0)
    return relative(np.sqrt(squares), size, output_sd)


def relative(change: Array, size: Array, output_sd: Array) -> Array:
    """A change (rows, outputs) over the values' size, which is at least a trace of the SD."""
    least = np.maximum(FLOOR * output_sd, np.finfo(float).tiny)
    return change / np.maximum(size, least)
