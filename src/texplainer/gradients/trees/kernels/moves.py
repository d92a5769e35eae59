"""The compiled walk behind the slopes of trees: what the leaves that a move of one feature leads to add.

A row goes down each tree once. At a node whose threshold lies within reach of the node's own feature, the far side
is kept with the interval of moves that lead there. From each far side the walk goes on with all other features as in
the row; further nodes of that feature cut the interval. A far leaf that the moves of an interval (a, b) lead to adds
what its value is above that of the row's own leaf, times the share of the moves: (b - a) / u upwards, and minus
(b - a) / d downwards. Where no move leads elsewhere, nothing is added at all.

Trees are taken one by one for a block of rows, so that a tree and the block stay in the cache.
"""

# pyright: basic, reportCallIssue=false, reportGeneralTypeIssues=false, reportOptionalSubscript=false

from typing import NamedTuple

import numpy as np

from texplainer.gradients.machine_code import cached_njit

LEAF, MISSING_LEFT = 1, 16  # bits of `kind`, as in `ensemble`
_U = np.uint64  # signed indices would be checked for wrap-around at every access: a fifth of the time


class MovedTrees(NamedTuple):
    """What the walk reads: an ensemble, thresholds of whole numbers moved to the middle between two."""

    kind: np.ndarray  # (nodes,) uint8
    column: np.ndarray  # (nodes,) uint32
    threshold: np.ndarray  # (nodes,)
    lower: np.ndarray  # (nodes,) thresholds of ancestors on the same column
    upper: np.ndarray  # (nodes,)
    right: np.ndarray  # (nodes,) uint32; at a leaf, its row of `value`
    roots: np.ndarray  # (trees,) uint64
    output: np.ndarray  # (trees,) uint64
    value: np.ndarray  # (leaves, width)
    depth: int


@cached_njit(error_model="numpy")
def add_moves(plan, cells, up, down, total, first, last, block):
    """Add to total (rows, columns, outputs) the mean change upwards minus the mean change downwards.

    cells, up, down are (rows, columns); columns that do not move have reach 0.
    """
    width, size = _U(plan.value.shape[1]), 2 * plan.depth + 4
    far_node, far_low, far_high = np.empty(size, np.uint64), np.empty(size), np.empty(size)
    far_column = np.empty(size, np.uint64)
    for start in range(first, last, block):
        stop = min(start + block, last)
        for tree in range(len(plan.roots)):
            root, output = plan.roots[tree], plan.output[tree]
            for position in range(start, stop):
                row, node, top = _U(position), root, _U(0)
                while not plan.kind[node] & LEAF:
                    column, near, far = _U(plan.column[node]), node + _U(1), _U(plan.right[node])
                    x = cells[row, column]
                    away = plan.threshold[node] - x
                    if away >= 0.0:
                        if away < up[row, column]:
                            high = min(up[row, column], plan.upper[node] - x)
                            if away < high:
                                far_node[top], far_column[top] = far, column
                                far_low[top], far_high[top] = away, high
                                top += _U(1)
                        node = near
                    elif away < 0.0:
                        if -away < down[row, column]:
                            low = max(-down[row, column], plan.lower[node] - x)
                            if low < away:
                                far_node[top], far_column[top] = near, column
                                far_low[top], far_high[top] = low, away
                                top += _U(1)
                        node = far
                    else:  # x is missing
                        node = near if plan.kind[node] & MISSING_LEFT else far
                own = _U(plan.right[node])
                while top > _U(0):
                    top -= _U(1)
                    node, moved, low, high = far_node[top], far_column[top], far_low[top], far_high[top]
                    while not plan.kind[node] & LEAF:
                        column, near, far = _U(plan.column[node]), node + _U(1), _U(plan.right[node])
                        away = plan.threshold[node] - cells[row, column]
                        if column == moved:
                            if away <= low:
                                node = far
                            else:
                                if away < high:
                                    far_node[top], far_column[top] = far, moved
                                    far_low[top], far_high[top] = away, high
                                    top += _U(1)
                                    high = away
                                node = near
                        elif away >= 0.0:
                            node = near
                        elif away < 0.0:
                            node = far
                        else:
                            node = near if plan.kind[node] & MISSING_LEFT else far
                    leaf = _U(plan.right[node])
                    share = (high - low) / up[row, moved] if low >= 0.0 else (low - high) / down[row, moved]
                    for i in range(width):
                        total[row, moved, output + i] += share * (plan.value[leaf, i] - plan.value[own, i])
