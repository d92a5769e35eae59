"""Slopes of tree ensembles, exactly: the mean of f over moves of one feature, from the thresholds in reach.

The compiled walk (`kernels/moves`) gives the change of the raw sums; a linear link carries it to the outputs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from texplainer.gradients.engine import Gradient
from texplainer.gradients.machine_code import in_threads
from texplainer.gradients.moves import Moves
from texplainer.gradients.trees.ensemble import LEAF, TreeEnsemble, compared
from texplainer.gradients.trees.kernels.moves import MovedTrees, add_moves
from texplainer.gradients.trees.model import TreeModel
from texplainer.types import Array

BLOCK = 1024  # rows that pass a tree together: the longer, the better its branches are predicted
SHARE = 512  # rows that a thread takes at least
ROUNDINGS = 4.0  # error bound in units of round-off, for each tree


@dataclass(frozen=True)
class TreeSlopes:
    """Slopes of the explained outputs per unit of each feature."""

    model: TreeModel
    moves: Moves
    plan: MovedTrees
    link: Array  # (outputs, raw), the derivative of the link
    largest: Array  # (features, outputs), what all trees together can change by along a feature

    def __call__(self, rows: Array) -> Gradient:
        """Slopes, exact up to round-off."""
        reach = self.moves.reach(rows)
        unit = self.moves.width(rows, reach)[:, :, None]
        total = self.changes(rows, reach.up, reach.down) @ self.link.T
        safe = np.where(unit > 0, unit, np.inf)
        rounding = ROUNDINGS * 2.0**-53 * len(self.plan.roots) * self.largest / safe
        return Gradient(
            total / safe,
            rounding.astype(np.float32),
            np.full(rows.shape, np.nan),
            np.zeros(rows.shape, np.uint8),
            np.zeros(len(rows), dtype=np.int64),
        )

    def changes(self, rows: Array, up: Array, down: Array, threads: int | None = None) -> Array:
        """Mean change of the raw sums upwards minus that downwards, (rows, features, raw)."""
        ensemble = self.model.ensemble
        cells = compared(ensemble, ensemble.widen(self.model.inputs(rows)))
        reach = np.zeros((2, *cells.shape))
        reach[:, :, : rows.shape[1]] = up, down
        total = np.zeros((*cells.shape, len(ensemble.base)))

        def work(first: int, last: int) -> None:
            add_moves(self.plan, cells, reach[0], reach[1], total, first, last, BLOCK)

        in_threads(work, len(rows), SHARE, threads)
        return total[:, : rows.shape[1]]


def tree_slopes(model: TreeModel, moves: Moves, link: Array) -> TreeSlopes:
    """Prepare a model whose link has the constant slope `link` (all outputs, raw)."""
    link = link[list(model.predictor.outputs)]
    largest = largest_changes(model.ensemble) @ np.abs(link).T
    return TreeSlopes(model, moves, moved_trees(model.ensemble, moves.integers), link, largest)


def moved_trees(ensemble: TreeEnsemble, integers: np.ndarray) -> MovedTrees:
    """The walk's arrays; thresholds of columns of whole numbers lie in the middle between two of them."""
    bounds = [ensemble.threshold.copy(), ensemble.lower.copy(), ensemble.upper.copy()]
    column = ensemble.column.astype(np.uint32)
    whole = ((ensemble.kind & LEAF) == 0) & np.isin(column, np.flatnonzero(integers))
    for bound in bounds:
        bound[whole] = np.floor(bound[whole]) + 0.5
    threshold, lower, upper = bounds
    return MovedTrees(
        ensemble.kind,
        column,
        threshold,
        lower,
        upper,
        ensemble.right.astype(np.uint32),
        ensemble.roots.astype(np.uint64),
        ensemble.output.astype(np.uint64),
        np.ascontiguousarray(ensemble.value),
        int(ensemble.depth),
    )


def largest_changes(ensemble: TreeEnsemble) -> Array:
    """What the trees can change by along a feature, at most, (features, raw): the ranges of their leaves."""
    leaf = (ensemble.kind & LEAF) != 0
    tree = np.repeat(
        np.arange(len(ensemble.roots)), np.diff(np.append(ensemble.roots, len(leaf)).astype(int))
    )
    width, outputs = ensemble.value.shape[1], ensemble.output.astype(int)
    first = np.flatnonzero(np.diff(tree[leaf], prepend=-1))
    span = np.maximum.reduceat(ensemble.value, first) - np.minimum.reduceat(ensemble.value, first)
    used = np.zeros((len(ensemble.roots), ensemble.columns), bool)
    used[tree[~leaf], ensemble.column[~leaf].astype(int)] = True
    found = np.zeros((ensemble.columns, len(ensemble.base)))
    for output in np.unique(outputs):
        here = outputs == output
        found[:, output : output + width] += used[here].T.astype(float) @ span[here]
    return found[: ensemble.features]
