"""The kernel-smoothed ensemble and its exact gradient, compiled.

The smoothed ensemble is ``f_s(x) = E f(x + s e)``, with independent triangular noise e_j on [-1, 1]. On
a tree this expectation is a *soft tree*, and differentiating it in reverse at the nodes gives the
gradient without enumerating leaves, at O(1) a visited node: with mass W reaching a node, values S_L and
S_R of its children and slope dp of the probability of going right, ``G[column] += W dp (S_R - S_L)``.

Two executions of the same formulas (`split`), equal to the last bit:

- `scalar_rows` walks one row with a stack and skips every child without mass: few rows, deep trees.
- `dense_rows` takes a block of rows through each node: a few loops over contiguous rows, which LLVM turns
  into vector code, and none where no row of the block is. Each loop names at most four arrays: with more,
  LLVM gives up proving that they do not overlap.

Nodes marked HARD have no noise: those of discrete columns and categories, and thresholds outside the range
that the neighbourhood is kept in.
"""

# pyright: basic, reportCallIssue=false, reportGeneralTypeIssues=false

from typing import NamedTuple

import numpy as np
from numba import njit

from texplainer.gradients.machine_code import compiled
from texplainer.gradients.trees.ensemble import HARD, LEAF, LEAF_PAIR, LOWER, MISSING_LEFT, UPPER
from texplainer.gradients.trees.split import split_between, split_free, split_hard, split_once

BLOCK_CELLS = 65_536  # of a block: its columns and their slopes stay in the cache
LEAST_BLOCK, MOST_BLOCK = 64, 1024  # rows
_U = np.uint64  # signed indices would be checked for wrap-around at every access
_compiled = compiled("ensemble", "split")


class KernelArrays(NamedTuple):
    """What the kernels read: an ensemble, its thresholds coded for one set of widths (`soft`)."""

    kind: np.ndarray  # (nodes,) uint8
    column: np.ndarray  # (nodes,) uint64
    threshold: np.ndarray  # (nodes,)
    lower: np.ndarray  # (nodes,)
    upper: np.ndarray  # (nodes,)
    right: np.ndarray  # (nodes,) uint64
    roots: np.ndarray  # (trees,) uint64
    output: np.ndarray  # (trees,) uint64
    value: np.ndarray  # (leaves, width)
    inverse: np.ndarray  # (columns,) one over the half-width
    outputs: np.uint64
    depth: np.uint64


def block_rows(plan: KernelArrays) -> int:
    """Rows that `dense_rows` takes through a node at a time."""
    cells = len(plan.inverse) * (1 + int(plan.outputs))
    return int(np.clip(BLOCK_CELLS // cells, LEAST_BLOCK, MOST_BLOCK))


# --- one row at a time
# --------------------------------------------------------------------------------------------


@_compiled
def scalar_rows(plan, rows, order, value, gradient, first, last, many):
    """Add f_s and its gradient, in units of the half-widths, for the rows ``order[first:last]``.

    rows (rows, columns), value (rows, outputs), gradient (rows, columns, outputs). `many` is the number
    of values in a leaf, or None for one, which compiles to code of its own. Longer than other functions:
    the state of the walk is a dozen local variables, which a split would hand to and fro at every node.
    """
    width = _U(1) if many is None else _U(many)
    size = plan.depth + _U(1)
    node_at, side_at = np.empty(size, np.uint64), np.empty(size, np.uint8)
    mass_at, left_at, right_at, slope_at = np.empty(size), np.empty(size), np.empty(size), np.empty(size)
    done_at, current = np.empty(size * width), np.empty(width)
    for position in range(first, last):
        row = _U(order[position])
        for tree in range(_U(len(plan.roots))):
            node, output, depth, mass = plan.roots[tree], plan.output[tree], _U(0), 1.0
            while True:
                kind = plan.kind[node]
                while not kind & LEAF:  # down, leaving a frame wherever both children have mass
                    x = rows[row, plan.column[node]]
                    if np.isnan(x):
                        node = node + _U(1) if kind & MISSING_LEFT else plan.right[node]
                        kind = plan.kind[node]
                        continue
                    threshold, bounds = plan.threshold[node], kind & (LOWER | UPPER)
                    inverse = plan.inverse[plan.column[node]]
                    if kind & HARD:
                        left, right, slope = split_hard(threshold, x)
                    elif bounds == 0:
                        left, right, slope = split_free(threshold, x, inverse)
                    elif bounds == UPPER:
                        left, right, slope = split_once(threshold, plan.upper[node], x, inverse)
                    elif bounds == LOWER:
                        right, left, slope = split_once(threshold, plan.lower[node], x, -inverse)
                    else:
                        left, right, slope = split_between(
                            threshold, plan.lower[node], plan.upper[node], x, inverse
                        )
                    if right == 0.0:
                        node += _U(1)
                    elif left == 0.0:
                        node = plan.right[node]
                    else:
                        node_at[depth], side_at[depth] = node, 0
                        mass_at[depth], left_at[depth], right_at[depth] = mass, left, right
                        slope_at[depth] = mass * slope
                        mass *= left
                        depth += _U(1)
                        node += _U(1)
                    kind = plan.kind[node]
                for i in range(width):
                    current[i] = plan.value[plan.right[node], i]
                while depth > _U(0) and side_at[depth - _U(1)] == 1:  # up, where both children are done
                    depth -= _U(1)
                    column = plan.column[node_at[depth]]
                    for i in range(width):
                        low, high = done_at[depth * width + i], current[i]
                        gradient[row, column, output + i] += slope_at[depth] * (high - low)
                        current[i] = left_at[depth] * low + right_at[depth] * high
                if depth == _U(0):
                    break
                top = depth - _U(1)
                for i in range(width):
                    done_at[top * width + i] = current[i]
                side_at[top] = 1
                mass = mass_at[top] * right_at[top]
                node = plan.right[node_at[top]]
            for i in range(width):
                value[row, output + i] += current[i]


# --- a block of rows at a time
# ------------------------------------------------------------------------------------


@njit(error_model="numpy")
def _split_rows(kind, threshold, lower, upper, inverse, x, left, right, slope):
    """Split a node for all rows x of a span."""
    bounds = kind & (LOWER | UPPER)
    if kind & HARD:
        for i in range(len(x)):
            left[i], right[i], slope[i] = split_hard(threshold, x[i])
    elif bounds == 0:
        for i in range(len(x)):
            left[i], right[i], slope[i] = split_free(threshold, x[i], inverse)
    elif bounds == UPPER:
        for i in range(len(x)):
            left[i], right[i], slope[i] = split_once(threshold, upper, x[i], inverse)
    elif bounds == LOWER:
        for i in range(len(x)):
            right[i], left[i], slope[i] = split_once(threshold, lower, x[i], -inverse)
    else:
        for i in range(len(x)):
            left[i], right[i], slope[i] = split_between(threshold, lower, upper, x[i], inverse)


@njit(error_model="numpy")
def _take_default(default, x, left, right, slope):
    """Where x is NaN, `default` (1 or 0) is the share that goes left, and nothing reacts to x."""
    for i in range(len(x)):
        missing = x[i] != x[i]
        left[i] = default if missing else left[i]
        right[i] = 1.0 - default if missing else right[i]
        slope[i] = 0.0 if missing else slope[i]


@njit(error_model="numpy")
def _multiply(mass, share, out):
    for i in range(len(mass)):
        out[i] = mass[i] * share[i]


@njit(error_model="numpy")
def _add_slopes(slope, low, high, total):
    for i in range(len(slope)):
        total[i] += slope[i] * (high[i] - low[i])


@njit(error_model="numpy")
def _add_leaf_slopes(slope, rise, total):
    for i in range(len(slope)):
        total[i] += slope[i] * rise


@njit(error_model="numpy")
def _mix(left, low, right, high, out):
    for i in range(len(left)):
        out[i] = left[i] * low[i] + right[i] * high[i]


@njit(error_model="numpy")
def _mix_leaves(left, low, right, high, out):
    for i in range(len(left)):
        out[i] = left[i] * low + right[i] * high


@njit(error_model="numpy")
def _reached(mass, first, last):
    """The span between the first and the last row with mass."""
    while first < last and mass[first] == 0.0:
        first += 1
    while last > first and mass[last - 1] == 0.0:
        last -= 1
    return first, last


@njit(error_model="numpy")
def _fill(rows, order, start, filled, cells, low_cell, high_cell, has_nan):
    """Transpose a block of rows into `cells` (columns, block); each column's range."""
    for column in range(cells.shape[0]):
        low, high, nan = np.inf, -np.inf, False
        for lane in range(filled):
            x = rows[order[start + lane], column]
            cells[column, lane] = x
            low, high, nan = min(low, x), max(high, x), nan or np.isnan(x)
        low_cell[column], high_cell[column], has_nan[column] = low, high, nan


@_compiled
def dense_rows(plan, rows, order, value, gradient, first, last, many, block):
    """As `scalar_rows`, `block` rows a node visit; not split either, for the same reason."""
    width = 1 if many is None else many
    columns, outputs, size = rows.shape[1], np.int64(plan.outputs), np.int64(plan.depth) + 2
    cells, slopes = np.empty((columns, block)), np.empty((columns, outputs, block))
    values, done = np.empty((outputs, block)), np.zeros((size, 2, width, block))
    mass, span = np.empty((size, 2, block)), np.zeros((size, 2, 2), np.int64)
    left, right, slope = np.empty((size, block)), np.empty((size, block)), np.empty((size, block))
    node_at, side_at = np.empty(size, np.int64), np.zeros(size, np.int64)
    low_cell, high_cell, has_nan = np.empty(columns), np.empty(columns), np.empty(columns, np.bool_)
    for start in range(first, last, block):
        filled = min(block, last - start)
        _fill(rows, order, start, filled, cells, low_cell, high_cell, has_nan)
        slopes[:], values[:], mass[0, 0, :filled] = 0.0, 0.0, 1.0
        span[0, 0, 1] = filled
        for tree in range(len(plan.roots)):
            node, output, depth = np.int64(plan.roots[tree]), np.int64(plan.output[tree]), 0
            while True:
                kind, side = plan.kind[node], side_at[depth]
                a, b = span[depth, side, 0], span[depth, side, 1]
                if kind & LEAF:
                    for i in range(width):
                        done[depth, side, i, a:b] = plan.value[np.int64(plan.right[node]), i]
                else:
                    column, far = np.int64(plan.column[node]), np.int64(plan.right[node])
                    threshold, inverse = plan.threshold[node], plan.inverse[column]
                    nans = has_nan[column]
                    if not nans:  # all rows of the block on one side
                        reach = 0.0 if kind & HARD else 1.0
                        if (threshold - high_cell[column]) * inverse >= reach:
                            node += 1
                            continue
                        if (threshold - low_cell[column]) * inverse < -reach:
                            node = far
                            continue
                    x, weight = cells[column, a:b], mass[depth, side, a:b]
                    here, there = left[depth, a:b], right[depth, a:b]
                    bent = slope[depth, a:b]
                    _split_rows(
                        kind, threshold, plan.lower[node], plan.upper[node], inverse, x, here, there, bent
                    )
                    if nans:
                        _take_default(1.0 if kind & MISSING_LEFT else 0.0, x, here, there, bent)
                    _multiply(weight, bent, bent)
                    if many is None and kind & LEAF_PAIR:
                        low = plan.value[np.int64(plan.right[node + 1]), 0]
                        high = plan.value[np.int64(plan.right[node + 2]), 0]
                        _add_leaf_slopes(bent, high - low, slopes[column, output, a:b])
                        _mix_leaves(here, low, there, high, done[depth, side, 0, a:b])
                    else:
                        _multiply(weight, here, mass[depth + 1, 0, a:b])
                        _multiply(weight, there, mass[depth + 1, 1, a:b])
                        a0, b0 = _reached(mass[depth + 1, 0], a, b)
                        a1, b1 = _reached(mass[depth + 1, 1], a, b)
                        if a1 == b1:
                            node += 1
                        elif a0 == b0:
                            node = far
                        else:
                            node_at[depth] = node
                            depth += 1
                            side_at[depth] = 0
                            span[depth, 0, 0], span[depth, 0, 1] = a0, b0
                            span[depth, 1, 0], span[depth, 1, 1] = a1, b1
                            node += 1
                        continue
                while depth > 0 and side_at[depth] == 1:  # up, where both children are done
                    depth -= 1
                    side, column = side_at[depth], np.int64(plan.column[node_at[depth]])
                    a, b = span[depth, side, 0], span[depth, side, 1]
                    for i in range(width):
                        low, high = done[depth + 1, 0, i, a:b], done[depth + 1, 1, i, a:b]
                        _add_slopes(slope[depth, a:b], low, high, slopes[column, output + i, a:b])
                        _mix(left[depth, a:b], low, right[depth, a:b], high, done[depth, side, i, a:b])
                if depth == 0:
                    break
                side_at[depth] = 1
                node = np.int64(plan.right[node_at[depth - 1]])
            for i in range(width):
                values[output + i, :filled] += done[0, 0, i, :filled]
        for lane in range(filled):
            row = order[start + lane]
            for i in range(outputs):
                value[row, i] += values[i, lane]
                for column in range(columns):
                    gradient[row, column, i] += slopes[column, i, lane]
