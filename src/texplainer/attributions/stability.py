"""The relative change: how much other a row's values would be, had it been measured a little differently.

It is the expected relative change of its values, |values' - values| / |values| over the
features, when every continuous number of the row moves by 5% of its SD (a normal deviate of that size each);
discrete columns are known exactly and stay. Slopes and exact Shapley values of trees are taken again at three
moved rows, other attributions at two; slopes from predictions have patterns of moves of their own
(`gradients/moves`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from texplainer.attributions.attribution import ExplainContext
from texplainer.gradients.engine import MOVE
from texplainer.gradients.moves import directions, normal_moves
from texplainer.types import Array

MOVES = 2
Moves = Callable[[int, int], Array]  # (features, count) -> moves in standard coordinates
FLOOR = 0.01  # values below this share of the output's SD are as good as none


def moved(context: ExplainContext, count: int = MOVES, moves_of: Moves = directions) -> list[Array]:
    """The rows, moved by 5% of an SD each; a move that would leave the bounds goes the other way."""
    moves = context.predictor.schema.numeric & ~context.background.discrete.mask(context.rows.shape[1])
    step = np.where(moves, MOVE * context.background.unit, 0.0)
    out = []
    for z in moves_of(context.rows.shape[1], count):
        there = context.rows + step * z
        if context.bounds is not None:
            low, high = context.bounds
            outside = (there < np.minimum(low, context.rows)) | (there > np.maximum(high, context.rows))
            there = np.where(outside, context.rows - step * z, there)
        out.append(there)
    return out


def normally_moved(context: ExplainContext, count: int) -> list[Array]:
    """The rows, moved by normal deviates of 5% of an SD and clipped to the bounds."""
    moves = moved(replace(context, bounds=None), count, normal_moves)
    if context.bounds is None:
        return moves
    low, high = np.minimum(context.bounds[0], context.rows), np.maximum(context.bounds[1], context.rows)
    return [np.clip(rows, low, high) for rows in moves]


def expected_change(changes: Sequence[Array], size: Array, output_sd: Array) -> Array:
    """Root mean square over moves of |change|, (rows, features, outputs), over `size` (rows, outputs)."""
    squares = np.mean([(change**2).sum(axis=1) for change in changes], axis=0)
    return relative(np.sqrt(squares), size, output_sd)


def relative(change: Array, size: Array, output_sd: Array) -> Array:
    """A change (rows, outputs) over the values' size, which is at least a trace of the SD."""
    least = np.maximum(FLOOR * output_sd, np.finfo(float).tiny)
    return change / np.maximum(size, least)
