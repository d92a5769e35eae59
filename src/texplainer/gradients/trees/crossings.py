"""The jumps of trees along straight lines, compiled.

On the way from b to x a tree changes only where a threshold of its current leaf's path is crossed. The
line's interval is split at crossed nodes, so that each node is visited once, and the jump between two leaves
belongs to the column of the node that parted them.

At which side of a node either end lies is decided by ranks, exactly as the library compares; the place of a
crossing, ``threshold * pace + shift``, only orders the crossings and may be rounded to float32. So the jumps
of a line always sum to f(x) - f(b).

Two executions: `scalar_lines` walks one line with a stack and can tell the places of its jumps apart;
`vector_lines` carries a block of lines through each node (`spans`), skips what none of them reaches, and in
each node the groups of lines that are not there.
"""

# pyright: basic, reportCallIssue=false, reportGeneralTypeIssues=false

from typing import NamedTuple

import numpy as np
from numba import njit

from texplainer.gradients.machine_code import compiled
from texplainer.gradients.trees.ensemble import LEAF, LEAF_PAIR, MISSING_LEFT
from texplainer.gradients.trees.spans import LANES, cross_leaves, fill_double, join_spans, part_spans
from texplainer.gradients.trees.vectors import aligned, all_groups, next_group

_U = np.uint64
_F = np.float32
SINCE, UNTIL = _F(-1e30), _F(1e30)  # the ends of the way, with all places strictly between them
COARSE = 1e4  # steps of the way beyond which float32 cannot tell places
TIE = 1e-4  # columns move that much early or late, in an order of their own on every line
NEVER = _F(1e9)  # a rank above all


class LinePlan(NamedTuple):
    """What the kernels read of an ensemble."""

    kind: np.ndarray  # (nodes,) uint8
    column: np.ndarray  # (nodes,) uint64
    rank: np.ndarray  # (nodes,) float32, a cell above it goes right
    threshold: np.ndarray  # (nodes,) float32, less the column's centre
    right: np.ndarray  # (nodes,) uint64
    roots: np.ndarray  # (trees,) uint64
    output: np.ndarray  # (trees,) uint64
    value: np.ndarray  # (leaves, width)
    outputs: np.uint64
    depth: np.uint64
    block: np.uint64  # lines a node visit


class Ends(NamedTuple):
    """The rows at one end of lines, both (rows, columns)."""

    rank: np.ndarray  # float32, NaN where missing
    cell: np.ndarray  # less the column's centre; NaN where the column only switches


class Lines(NamedTuple):
    """What is known of each line, whatever row it ends in."""

    starts: Ends
    place: np.ndarray  # (lines, columns) where a column switches
    weight: np.ndarray  # (lines,)
    slot: np.ndarray  # (lines,) where its jumps go


@njit(nogil=True, error_model="numpy")
def _aim(b, x, cell_b, cell_x, place, default):
    """Code one column of one line as (pace, shift, start, end).

    The place of a crossing is affine in the threshold, unless the column cannot move evenly (missing at an
    end, a category): then it switches at `place`. A line from right to left has a pace below zero (or minus
    zero) and mirrored ranks. `default` is the rank of a missing cell.
    """
    b, x = default if np.isnan(b) else b, default if np.isnan(x) else x
    sign = _F(1.0) if b <= x else _F(-1.0)
    pace, shift = 1.0 / (cell_x - cell_b), TIE * (place - 0.5)
    shift -= cell_b * pace
    if b == x or not abs(shift) < COARSE:
        return sign * _F(0.0), _F(place), sign * b, sign * x
    return sign * _F(abs(pace)), _F(shift), sign * b, sign * x


@njit(nogil=True, cache=True, error_model="numpy")
def scalar_lines(plan, lines, rows, jumps, first, last):
    """Add the jumps on the lines to ``rows[first:last]`` to `jumps`, (rows, slots, bins, columns, outputs).

    The jumps of line l, times its weight, go to its slot, in the bin of their place.
    """
    size, width, bins = plan.depth + _U(2), plan.value.shape[1], jumps.shape[2]
    later, until, crossed = np.empty(size, np.uint64), np.empty(size, np.float32), np.empty(size, np.uint64)
    codes = np.empty((2, lines.place.shape[1], 4), np.float32)
    for row in range(first, last):
        for line in range(len(lines.weight)):
            weight, slot = lines.weight[line], lines.slot[line]
            for left in range(2):
                for at in range(codes.shape[1]):
                    codes[left, at] = _aim(
                        lines.starts.rank[line, at],
                        rows.rank[row, at],
                        lines.starts.cell[line, at],
                        rows.cell[row, at],
                        lines.place[line, at],
                        -NEVER if left else NEVER,
                    )
            for tree in range(_U(len(plan.roots))):
                node, output, top = plan.roots[tree], plan.output[tree], _U(0)
                since, until[0], leaf, column = SINCE, UNTIL, _U(0), _U(0)
                while True:
                    kind = plan.kind[node]
                    while not kind & LEAF:
                        at = plan.column[node]
                        pace, shift, start, end = codes[1 if kind & MISSING_LEFT else 0, at]
                        mirrored = np.signbit(pace)
                        rank = -plan.rank[node] if mirrored else plan.rank[node]
                        here = plan.threshold[node] * pace + shift
                        if rank < start or (here <= since and rank <= end):  # passed already
                            left = mirrored
                        else:
                            left = not mirrored
                            if rank <= end and here < until[top]:
                                top += _U(1)
                                later[top] = plan.right[node] if left else node + _U(1)
                                until[top], crossed[top] = here, at
                        node = node + _U(1) if left else plan.right[node]
                        kind = plan.kind[node]
                    if since > SINCE:
                        part = min(max(int(since * bins), 0), bins - 1)
                        for i in range(width):
                            jump = plan.value[plan.right[node], i] - plan.value[leaf, i]
                            jumps[row, slot, part, column, output + _U(i)] += weight * jump
                    leaf = plan.right[node]
                    if top == _U(0):
                        break
                    node, since, column = later[top], until[top], crossed[top]
                    top -= _U(1)


@njit(error_model="numpy")
def _fill(plan, lines, rows, pairs, filled, codes, low, high, missing):
    """Code a block of (row, line) pairs, both for nodes that send missing cells right and left.

    codes (2, columns, 4, block); low and high: the range of ranks the block covers in each column.
    """
    block = np.int64(plan.block)
    for column in range(codes.shape[1]):
        missing[column] = False
        for left in range(2):
            if left and not missing[column]:
                continue
            default = -NEVER if left else NEVER
            bottom, top = NEVER, -NEVER
            for lane in range(block):
                row, line = pairs[min(lane, filled - 1)]
                b, x = lines.starts.rank[line, column], rows.rank[row, column]
                missing[column] |= np.isnan(b) or np.isnan(x)
                pace, shift, start, end = _aim(
                    b,
                    x,
                    lines.starts.cell[line, column],
                    rows.cell[row, column],
                    lines.place[line, column],
                    default,
                )
                codes[left, column, 0, lane] = pace
                codes[left, column, 1, lane] = shift
                codes[left, column, 2, lane] = start
                codes[left, column, 3, lane] = end
                b, x = default if np.isnan(b) else b, default if np.isnan(x) else x
                bottom, top = min(bottom, b, x), max(top, b, x)
            low[left, column], high[left, column] = bottom, top


@njit(error_model="numpy")
def _pair(order, start, rows, line, step, lines, pairs):
    """List the (row, line) pairs of a block; how many they are."""
    filled = 0
    for one in range(line, min(line + step, lines)):
        for i in range(rows):
            pairs[filled, 0], pairs[filled, 1] = order[start + i], one
            filled += 1
    return filled


@njit(error_model="numpy")
def _deliver(lines, pairs, filled, shares, jumps):
    """Add what the lanes of a block have gathered, (columns x outputs, block), to their rows and slots."""
    outputs = jumps.shape[4]
    for lane in range(filled):
        row, line = pairs[lane]
        weight, slot = lines.weight[line], lines.slot[line]
        for at in range(len(shares)):
            jumps[row, slot, 0, at // outputs, at % outputs] += weight * shares[at, lane]


@compiled("spans", "vectors", "ensemble")
def vector_lines(plan, lines, rows, order, together, jumps, first, last, many):
    """As `scalar_lines` with one bin, `plan.block` lines a node visit, for rows ``order[first:last]``.

    `together` rows share a block, each with ``block // together`` lines. `many` is the number of values in a
    leaf, or None for one. Not split, for the same reason as `compiled.scalar_rows`.
    """
    width = _U(1) if many is None else _U(many)
    columns, outputs, block = _U(lines.place.shape[1]), plan.outputs, plan.block
    step, size = np.int64(block) // together, plan.depth + _U(2)
    node_at, side_at = np.empty(size, np.uint64), np.empty(size, np.uint64)
    groups_at = np.empty(_U(2) * size, np.uint64)
    codes = aligned(columns * _U(4) * block).view(np.float32)
    codes = codes.reshape((2, np.int64(columns), 4, np.int64(block)))
    low, high = np.empty((2, np.int64(columns)), np.float32), np.empty((2, np.int64(columns)), np.float32)
    missing, pairs = np.empty(columns, np.bool_), np.empty((np.int64(block), 2), np.int64)
    spans = aligned(size * _U(2) * block).view(np.float32).reshape((np.int64(size), 4, np.int64(block)))
    # The results of nodes stand behind the shares, (depths, 2, 2, width, block): an array of their own would
    # be freed at once, for nothing but its address is used later.
    own = columns * outputs
    shares = aligned((own + size * _U(4) * width) * block)[: own * block]
    shares = shares.reshape((np.int64(own), np.int64(block)))
    single, double = block * _U(4), block * _U(8)
    short, long = _U(4 * LANES), _U(8 * LANES)  # bytes of a group
    codes_at, spans_at = _U(codes.ctypes.data), _U(spans.ctypes.data)
    shares_at = _U(shares.ctypes.data)
    done_at = shares_at + own * double
    apart = width * double
    for start in range(first, last, together):
        for line in range(0, len(lines.weight), step):
            filled = _pair(order, start, min(together, last - start), line, step, len(lines.weight), pairs)
            _fill(plan, lines, rows, pairs, filled, codes, low, high, missing)
            shares[:] = 0.0
            for lane in range(np.int64(block)):
                spans[0, 0, lane], spans[0, 1, lane] = SINCE, UNTIL if lane < filled else SINCE
            groups_at[0] = all_groups(filled, LANES)
            for tree in range(_U(len(plan.roots))):
                node, output, depth = plan.roots[tree], plan.output[tree], _U(0)
                side_at[0] = _U(0)
                while True:
                    kind, column = plan.kind[node], plan.column[node]
                    side = side_at[depth]
                    result = done_at + (depth * _U(2) + side) * _U(2) * apart
                    groups = groups_at[depth * _U(2) + side]
                    if not kind & LEAF:
                        rank, threshold = plan.rank[node], plan.threshold[node]
                        left = _U(1) if missing[column] and kind & MISSING_LEFT else _U(0)
                        if rank > high[left, column]:  # all lines of the block on one side
                            node += _U(1)
                            continue
                        if rank < low[left, column]:
                            node = plan.right[node]
                            continue
                        code = codes_at + (left * columns + column) * _U(4) * single
                        span = spans_at + (depth * _U(4) + side * _U(2)) * single
                        if many is None and kind & LEAF_PAIR:
                            share = shares_at + (column * outputs + output) * double
                            small = plan.value[plan.right[node + _U(1)], 0]
                            large = plan.value[plan.right[node + _U(2)], 0]
                            while groups:
                                group, groups = next_group(groups)
                                cross_leaves(
                                    code + group * short,
                                    span + group * short,
                                    share + group * long,
                                    result + group * long,
                                    single,
                                    rank,
                                    threshold,
                                    small,
                                    large,
                                )
                        else:
                            below = spans_at + (depth + _U(1)) * _U(4) * single
                            to_left, to_right = _U(0), _U(0)
                            while groups:
                                group, groups = next_group(groups)
                                at = group * short
                                went = part_spans(code + at, span + at, below + at, single, rank, threshold)
                                to_left |= (went & _U(1)) << group
                                to_right |= (went >> _U(1)) << group
                            if to_left and to_right:
                                node_at[depth] = node
                                depth += _U(1)
                                side_at[depth] = _U(0)
                                groups_at[depth * _U(2)], groups_at[depth * _U(2) + _U(1)] = to_left, to_right
                                node += _U(1)
                            else:
                                node = plan.right[node] if to_right else node + _U(1)
                            continue
                    else:
                        for i in range(width):
                            value = plan.value[plan.right[node], i]
                            todo = groups
                            while todo:
                                group, todo = next_group(todo)
                                at = result + i * double + group * long
                                fill_double(at, value)
                                fill_double(at + apart, value)
                    while depth > _U(0) and side_at[depth] == _U(1):
                        below = spans_at + depth * _U(4) * single
                        left_at = done_at + depth * _U(4) * apart
                        depth -= _U(1)
                        result = done_at + (depth * _U(2) + side_at[depth]) * _U(2) * apart
                        share = shares_at + (plan.column[node_at[depth]] * outputs + output) * double
                        groups = groups_at[depth * _U(2) + side_at[depth]]
                        for i in range(width):
                            todo = groups
                            while todo:
                                group, todo = next_group(todo)
                                at = i * double + group * long
                                join_spans(
                                    below + group * short,
                                    left_at + at,
                                    left_at + _U(2) * apart + at,
                                    share + at,
                                    result + at,
                                    single,
                                    apart,
                                )
                    if depth == _U(0):
                        break
                    side_at[depth] = _U(1)
                    node = plan.right[node_at[depth - _U(1)]]
            _deliver(lines, pairs, filled, shares, jumps)
