"""The kernel-smoothed ensemble and its exact gradient, compiled.

The smoothed ensemble is ``f_s(x) = E f(x + s e)``, with independent triangular noise e_j on [-1, 1]. On
a tree this expectation is a *soft tree*, and differentiating it in reverse at the nodes gives the
gradient without enumerating leaves, at O(1) a visited node: with mass W reaching a node, values S_L and
S_R of its children and slope dp of the probability of going right, ``G[column] += W dp (S_R - S_L)``.

Two executions of the same formulas (`split`), equal to the last bit. `scalar_rows` walks one row
with a stack and skips every child without mass: few rows, deep trees, narrow kernels. `vector_rows`
carries `BLOCK` rows through each node, skips a child that no row of the block reaches, and in each node the
groups of rows that are not there.
"""

# pyright: basic, reportCallIssue=false, reportGeneralTypeIssues=false

from typing import NamedTuple

import numpy as np
from numba import njit

from texplainer.gradients.machine_code import compiled
from texplainer.gradients.trees.ensemble import LEAF, LEAF_PAIR, LOWER, MISSING_LEFT, UPPER
from texplainer.gradients.trees.split import split_between, split_free, split_once, take_default
from texplainer.gradients.trees.vectors import (
    WIDTH,
    aligned,
    all_groups,
    any_positive,
    load_vector,
    next_group,
    splat,
    store,
)

BLOCK = 192  # rows a node visit: the walk itself costs as much as a dozen rows
_U = np.uint64  # signed indices would be checked for wrap-around at every access
_compiled = compiled("vectors", "ensemble", "split")


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
    block: np.uint64  # rows a node visit; as data, or the compiler unrolls every loop over it


# --- one row at a time
# --------------------------------------------------------------------------------------------


@_compiled
def scalar_rows(plan, rows, order, value, gradient, bent, first, last, many):
    """Add f_s and its gradient, in units of the half-widths, for the rows ``order[first:last]``.

    rows (rows, columns), value (rows, outputs), gradient (rows, columns, outputs). `many` is the number
    of values in a leaf, or None for one, which compiles to code of its own. Longer than other functions:
    the state of the walk is a dozen local variables, which a split would hand to and fro at every node.
    """
    width = _U(1) if many is None else _U(many)
    size = plan.depth + _U(1)
    node_at, side_at = np.empty(size, np.uint64), np.empty(size, np.uint8)
    mass_at, left_at, right_at = np.empty(size), np.empty(size), np.empty(size)
    slope_at, bend_at = np.empty(size), np.empty(size)
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
                    bounds = kind & (LOWER | UPPER)
                    threshold, lower, upper = plan.threshold[node], plan.lower[node], plan.upper[node]
                    inverse = plan.inverse[plan.column[node]]
                    if bounds == 0:
                        left, right, slope, bend = split_free(threshold, lower, upper, x, inverse)
                    elif bounds == UPPER:
                        left, right, slope, bend = split_once(threshold, lower, upper, x, inverse)
                    elif bounds == LOWER:
                        right, left, slope, bend = split_once(threshold, upper, lower, x, -inverse)
                        bend = -bend
                    else:
                        left, right, slope, bend = split_between(threshold, lower, upper, x, inverse)
                    if right == 0.0:
                        node += _U(1)
                    elif left == 0.0:
                        node = plan.right[node]
                    else:
                        node_at[depth], side_at[depth] = node, 0
                        mass_at[depth], left_at[depth], right_at[depth] = mass, left, right
                        slope_at[depth], bend_at[depth] = mass * slope, mass * bend
                        mass *= left
                        depth += _U(1)
                        node += _U(1)
                    kind = plan.kind[node]
                for i in range(width):
                    current[i] = plan.value[plan.right[node], i]
                while depth > _U(0) and side_at[depth - _U(1)] == 1:  # up, where both children are done
                    depth -= _U(1)
                    column = plan.column[node_at[depth]]
                    left, right = left_at[depth], right_at[depth]
                    slope, bend = slope_at[depth], bend_at[depth]
                    for i in range(width):
                        low, high = done_at[depth * width + i], current[i]
                        gradient[row, column, output + i] += slope * (high - low)
                        bent[row, column, output + i] += bend * (high - low)
                        current[i] = left * low + right * high
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


_SPLITS = (split_free, split_once, split_between)


def _leaf_pair(split):
    """Compile `leaf_pair` for one kind of split (a function handed over at run time could not be cached)."""

    @njit(error_model="numpy")
    def leaf_pair(groups, soft, leaves, places):
        """A node whose children are leaves: split, add to the slopes and return, all at once."""
        threshold, lower, upper, inverse, nans, default = soft
        low, high, rise = leaves
        at, cells, mass, slopes, bends, done, mirror = places
        while groups:
            group, groups = next_group(groups)
            lane = group * _U(WIDTH)
            x = load_vector(at, cells + lane)
            left, right, slope, bend = split(threshold, lower, upper, x, inverse)
            if nans:
                left, right, slope, bend = take_default(x, default, left, right, slope, bend)
            weight = load_vector(at, mass + lane)
            store(at, slopes + lane, load_vector(at, slopes + lane) + weight * slope * rise)
            store(at, bends + lane, load_vector(at, bends + lane) + weight * (mirror * bend) * rise)
            store(at, done + lane, left * low + right * high)

    return leaf_pair


def _open(split):
    """Compile `open_node` for one kind of split."""

    @njit(error_model="numpy")
    def open_node(groups, block, soft, swap, places):
        """Split a node: frame <- (left, right, slope), below <- the children's masses; who has any."""
        threshold, lower, upper, inverse, nans, default = soft
        at, cells, mass, frame, below, mirror = places
        near = block if swap else _U(0)
        far = block - near
        in_near, in_far = _U(0), _U(0)
        while groups:
            group, groups = next_group(groups)
            lane = group * _U(WIDTH)
            x = load_vector(at, cells + lane)
            to_near, to_far, slope, bend = split(threshold, lower, upper, x, inverse)
            if nans:
                to_near, to_far, slope, bend = take_default(x, default, to_near, to_far, slope, bend)
            weight = load_vector(at, mass + lane)
            mass_near, mass_far = weight * to_near, weight * to_far
            store(at, frame + near + lane, to_near)
            store(at, frame + far + lane, to_far)
            store(at, frame + _U(2) * block + lane, weight * slope)
            store(at, frame + _U(3) * block + lane, weight * (mirror * bend))
            store(at, below + near + lane, mass_near)
            store(at, below + far + lane, mass_far)
            in_near |= _U(any_positive(mass_near)) << group
            in_far |= _U(any_positive(mass_far)) << group
        return in_near, in_far

    return open_node


_leaf_pair_free, _leaf_pair_once, _leaf_pair_between = map(_leaf_pair, _SPLITS)
_open_free, _open_once, _open_between = map(_open, _SPLITS)


@njit(error_model="numpy")
def _fill(block, rows, order, start, filled, memory, low_cell, high_cell, has_nan):
    """Transpose a block of rows into `memory` (a short one repeats its last row); each column's range."""
    for column in range(_U(rows.shape[1])):
        low, high, nan = np.inf, -np.inf, False
        for lane in range(np.int64(block)):
            x = rows[_U(order[start + min(lane, filled - 1)]), column]
            memory[column * block + _U(lane)] = x
            low, high, nan = min(low, x), max(high, x), nan or np.isnan(x)
        low_cell[column], high_cell[column], has_nan[column] = low, high, nan


@njit(error_model="numpy")
def _close(groups, block, width, places):
    """Both children are done: add to the slopes and return the node's own value."""
    at, children, frame, slopes, bends, done = places
    while groups:
        group, groups = next_group(groups)
        lane = group * _U(WIDTH)
        left, right = load_vector(at, frame + lane), load_vector(at, frame + block + lane)
        slope = load_vector(at, frame + _U(2) * block + lane)
        bend = load_vector(at, frame + _U(3) * block + lane)
        for i in range(width):
            to = i * block + lane
            low, high = load_vector(at, children + to), load_vector(at, children + width * block + to)
            store(at, slopes + to, load_vector(at, slopes + to) + slope * (high - low))
            store(at, bends + to, load_vector(at, bends + to) + bend * (high - low))
            store(at, done + to, left * low + right * high)


@_compiled
def vector_rows(plan, rows, order, value, gradient, bent, first, last, many):
    """As `scalar_rows`, `BLOCK` rows a node visit; not split either, for the same reason."""
    width = _U(1) if many is None else _U(many)
    outputs, columns, block = plan.outputs, _U(rows.shape[1]), plan.block
    size = plan.depth + _U(2)
    node_at, side_at = np.empty(size, np.uint64), np.empty(size, np.uint64)
    groups_at = np.empty(_U(2) * size, np.uint64)
    # One piece of memory, each word of it times BLOCK: cells (columns), slopes and bends (columns, outputs),
    # values (outputs); then for every depth the masses of two siblings, a frame (left, right, slope, bend),
    # the siblings' results (2, width).
    slopes_at = columns * block
    apart = columns * outputs * block  # from the slopes to the bends
    values_at = slopes_at + _U(2) * apart
    masses_at = values_at + outputs * block
    frames_at = masses_at + _U(2) * size * block
    done_at = frames_at + _U(4) * size * block
    memory = aligned(done_at + _U(2) * size * width * block)
    low_cell, high_cell, has_nan = np.empty(columns), np.empty(columns), np.empty(columns, np.bool_)
    at = _U(memory.ctypes.data)
    for start in range(first, last, np.int64(block)):
        filled = min(np.int64(block), last - start)
        _fill(block, rows, order, start, filled, memory, low_cell, high_cell, has_nan)
        memory[slopes_at:masses_at] = 0.0
        for lane in range(np.int64(block)):
            memory[masses_at + _U(lane)] = 1.0 if lane < filled else 0.0
        groups_at[0] = all_groups(filled, WIDTH)
        for tree in range(_U(len(plan.roots))):
            node, output, depth = plan.roots[tree], plan.output[tree], _U(0)
            side_at[0] = _U(0)
            while True:
                kind, column = plan.kind[node], plan.column[node]
                with_attribution = _U(2) * depth + side_at[depth]
                groups = groups_at[with_attribution]
                mass, done = masses_at + with_attribution * block, done_at + with_attribution * width * block
                if not kind & LEAF:
                    threshold, lower, upper = plan.threshold[node], plan.lower[node], plan.upper[node]
                    inverse, nans = plan.inverse[column], has_nan[column]
                    if not nans:  # all rows of the block on one side
                        if (threshold - high_cell[column]) * inverse >= 1.0:
                            node += _U(1)
                            continue
                        if (threshold - low_cell[column]) * inverse <= -1.0:
                            node = plan.right[node]
                            continue
                    bounds = kind & (LOWER | UPPER)
                    swap = bounds == LOWER
                    if swap:
                        inverse, lower, upper = -inverse, upper, lower
                    default = 1.0 if swap != (kind & MISSING_LEFT != 0) else 0.0
                    mirror = -1.0 if swap else 1.0
                    soft = (threshold, lower, upper, inverse, nans, default)
                    if many is None and kind & LEAF_PAIR:
                        slopes = slopes_at + (column * outputs + output) * block
                        low = plan.value[plan.right[node + _U(1)], 0]
                        high = plan.value[plan.right[node + _U(2)], 0]
                        leaves = (high, low, high - low) if swap else (low, high, high - low)
                        places = (at, column * block, mass, slopes, slopes + apart, done, mirror)
                        if bounds == 0:
                            _leaf_pair_free(groups, soft, leaves, places)
                        elif bounds == LOWER | UPPER:
                            _leaf_pair_between(groups, soft, leaves, places)
                        else:
                            _leaf_pair_once(groups, soft, leaves, places)
                    else:
                        frame = frames_at + _U(4) * depth * block
                        below = masses_at + _U(2) * (depth + _U(1)) * block
                        places = (at, column * block, mass, frame, below, mirror)
                        if bounds == 0:
                            near, far = _open_free(groups, block, soft, swap, places)
                        elif bounds == LOWER | UPPER:
                            near, far = _open_between(groups, block, soft, swap, places)
                        else:
                            near, far = _open_once(groups, block, soft, swap, places)
                        if swap:
                            near, far = far, near
                        if not far:
                            node += _U(1)
                        elif not near:
                            node = plan.right[node]
                        else:
                            node_at[depth] = node
                            depth += _U(1)
                            side_at[depth] = _U(0)
                            groups_at[_U(2) * depth], groups_at[_U(2) * depth + _U(1)] = near, far
                            node += _U(1)
                        continue
                else:
                    for i in range(width):
                        leaf = splat(plan.value[plan.right[node], i])
                        todo = groups
                        while todo:
                            group, todo = next_group(todo)
                            store(at, done + i * block + group * _U(WIDTH), leaf)
                while depth > _U(0) and side_at[depth] == _U(1):
                    children = done_at + _U(2) * depth * width * block
                    depth -= _U(1)
                    frame = frames_at + _U(4) * depth * block
                    slopes = slopes_at + (plan.column[node_at[depth]] * outputs + output) * block
                    done = done_at + (_U(2) * depth + side_at[depth]) * width * block
                    groups = groups_at[_U(2) * depth + side_at[depth]]
                    _close(groups, block, width, (at, children, frame, slopes, slopes + apart, done))
                if depth == _U(0):
                    break
                side_at[depth] = _U(1)
                node = plan.right[node_at[depth - _U(1)]]
            for lane in range(_U(0), width * block, _U(WIDTH)):
                total = values_at + output * block + lane
                store(at, total, load_vector(at, total) + load_vector(at, done_at + lane))
        for lane in range(filled):
            row = _U(order[start + lane])
            for i in range(outputs):
                value[row, i] += memory[values_at + i * block + _U(lane)]
                for column in range(columns):
                    place = slopes_at + (column * outputs + i) * block + _U(lane)
                    gradient[row, column, i] += memory[place]
                    bent[row, column, i] += memory[place + apart]
