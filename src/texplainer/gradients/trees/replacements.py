"""Other values in place of a cell: f(x with x_j = v) - f(x), for all values v in one walk of the trees.

Trees in which the row does not come to a split on column j cancel in the difference. In the others the row
goes down alone to its first split on j, and from there with all values at once: sorted, they are an interval
that a split on j cuts in two and any other split sends one way. So a cell costs about two predictions,
whatever the number of values; and a value that leads to the row's own leaves changes nothing, exactly.

Cells are compared as the library does, rounded to its floats; leaves are added in float64.
"""

# pyright: basic, reportCallIssue=false, reportOptionalSubscript=false

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numba import njit

from texplainer.gradients.machine_code import compiled, in_threads, is_compiled
from texplainer.gradients.maps import Map, constant_slope
from texplainer.gradients.trees.ensemble import (
    LEAF,
    MISSING_LEFT,
    Floats,
    TreeEnsemble,
    compared,
    depth_levels,
    raw_sums,
)
from texplainer.types import Array

_U = np.uint64
NUMBERS = 2**18  # of links and their slopes held at a time
BLOCK = 1024  # cells a thread takes at least
COMPILE_THRESHOLD = 1e6  # cells times values times trees so far from which the walk is worth being compiled
_work_done = {"uncompiled": 0.0}


class ColumnsBelow(NamedTuple):
    """An ensemble, and which columns it splits on below each node."""

    kind: np.ndarray  # (nodes,) uint8
    column: np.ndarray  # (nodes,) uint64
    threshold: np.ndarray  # (nodes,)
    right: np.ndarray  # (nodes,) uint64; at a leaf, its row of `value`
    roots: np.ndarray  # (trees,) uint64
    output: np.ndarray  # (trees,) uint64
    value: np.ndarray  # (leaves, width)
    below: np.ndarray  # (nodes,) uint64, bits of the columns from the node on; 64 columns apart share one
    depth: np.uint64


@njit(error_model="numpy")
def _child(node, kind, x, threshold, right):
    left = kind & MISSING_LEFT != 0 if np.isnan(x) else x <= threshold
    return node + _U(1) if left else right


@compiled("ensemble")
def add_changes(plan, rows, row, column, values, order, change, first, last):
    """Add up what each of the values does in the cells ``first..last``, (cells, values, raw outputs).

    `values` (columns, values) are sorted, `order` says where they stood before.
    """
    width, count = plan.value.shape[1], values.shape[1]
    later, until = np.empty(plan.depth + _U(1), np.uint64), np.empty(plan.depth + _U(1), np.int64)
    for tree in range(len(plan.roots)):
        output = plan.output[tree]
        for cell in range(first, last):
            at, own, node = _U(row[cell]), _U(column[cell]), plan.roots[tree]
            bit = _U(1) << own % _U(64)
            while plan.below[node] & bit and plan.column[node] != own:  # to the first split on the column
                x = rows[at, plan.column[node]]
                node = _child(node, plan.kind[node], x, plan.threshold[node], plan.right[node])
            if not plan.below[node] & bit:  # there is none on the row's way
                continue
            home = node
            while not plan.kind[home] & LEAF:
                x = rows[at, plan.column[home]]
                home = _child(home, plan.kind[home], x, plan.threshold[home], plan.right[home])
            home = plan.right[home]
            low, high, top = 0, count, 0
            while True:
                while not plan.kind[node] & LEAF:
                    if plan.column[node] != own:
                        x = rows[at, plan.column[node]]
                        node = _child(node, plan.kind[node], x, plan.threshold[node], plan.right[node])
                        continue
                    middle = low
                    while middle < high and values[own, middle] <= plan.threshold[node]:
                        middle += 1
                    if middle == low:
                        node = plan.right[node]
                        continue
                    if middle < high:
                        later[top], until[top] = plan.right[node], high
                        top, high = top + 1, middle
                    node += _U(1)
                leaf = plan.right[node]
                if leaf != home:
                    for v in range(low, high):
                        for i in range(width):
                            gain = plan.value[leaf, i] - plan.value[home, i]
                            change[cell, order[own, v], output + _U(i)] += gain
                if top == 0:
                    break
                top -= 1
                low, high, node = high, until[top], later[top]


def columns_below(ensemble: TreeEnsemble) -> ColumnsBelow:
    """Find the columns that are split on below every node."""
    leaf = (ensemble.kind & LEAF) != 0
    below = np.where(leaf, _U(0), _U(1) << ensemble.column % _U(64))
    for inner in reversed(depth_levels(ensemble.right, leaf, ensemble.roots)):
        below[inner] |= below[inner + 1] | below[ensemble.right[inner].astype(np.int64)]
    return ColumnsBelow(
        kind=ensemble.kind,
        column=ensemble.column,
        threshold=ensemble.threshold,
        right=ensemble.right,
        roots=ensemble.roots,
        output=ensemble.output,
        value=ensemble.value,
        below=below,
        depth=_U(ensemble.depth),
    )


def raw_changes(
    plan: ColumnsBelow,
    rows: Floats,
    row: np.ndarray,
    column: np.ndarray,
    values: Floats,
    outputs: int,
    threads: int | None = None,
) -> Floats:
    """What each of the `values` (values, inputs) of its column would do to the raw sums in place of a cell.

    The cells are ``rows[row, column]``, all as `compared`; the answer is (cells, values, raw outputs).
    """
    change = np.zeros((len(row), len(values), outputs))
    if not _worth_compiling(change.size * len(plan.roots)):
        _add_uncompiled(plan, rows, row, column, values, change)
        return change
    order = np.argsort(values.T, axis=1, kind="stable")
    ordered = np.take_along_axis(values.T, order, axis=1)

    def work(first: int, last: int) -> None:
        add_changes(plan, rows, row, column, ordered, order, change, first, last)

    in_threads(work, len(row), BLOCK, threads)
    return change


def _worth_compiling(work: float) -> bool:
    """Whether the compiled walk is at hand, or worth waiting for."""
    _work_done["uncompiled"] += work
    return is_compiled(add_changes) or _work_done["uncompiled"] >= COMPILE_THRESHOLD


def _add_uncompiled(plan, rows, row, column, values, change) -> None:
    """As `add_changes`, to the last bit, every value through all trees."""
    there, home = (
        _leaves(plan, rows, row, column, cell) for cell in (values[:, column].T, rows[row, column][:, None])
    )
    gain = plan.value[there] - plan.value[home]  # (cells, values, trees, width)
    for tree, output in enumerate(plan.output.astype(int)):
        change[:, :, output : output + gain.shape[3]] += gain[:, :, tree]


def _leaves(plan, rows, row, column, cell) -> np.ndarray:
    """Rows of `value` that rows come to with other cells (cells, values): (cells, values, trees)."""
    node = np.broadcast_to(plan.roots.astype(np.int64), (*cell.shape, len(plan.roots)))
    for _ in range(plan.depth):
        kind, at = plan.kind[node], plan.column[node]
        x = np.where(at == column[:, None, None], cell[:, :, None], rows[row[:, None, None], at])
        left = np.where(np.isnan(x), kind & MISSING_LEFT != 0, x <= plan.threshold[node])
        node = np.where(kind & LEAF != 0, node, np.where(left, node + 1, plan.right[node].astype(np.int64)))
    return plan.right[node]


# --- on the explained scale
# ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Replacements:
    """What other values do in place of cells, on the explained scale; of trees that read the table itself."""

    ensemble: TreeEnsemble
    inputs: Callable[[Array], Array]  # rows -> cells as the trees see them
    after: Map  # raw sums -> all outputs on the explained scale
    outputs: list[int]  # the explained ones
    plan: ColumnsBelow
    slope: Array | None  # of the link, (all outputs, raw); None where it is not constant

    def __call__(self, rows: Array, row: np.ndarray, column: np.ndarray, values: Array) -> Array:
        """Changes f(x with a value in the cell) - f(x), (cells, values, outputs), for the cells rows[row, column]."""
        ensemble, outputs = self.ensemble, self.outputs
        needed, row = np.unique(row, return_inverse=True)
        inputs, others = (self.inputs(z) for z in (rows[needed], values))
        cells, others = (compared(ensemble, ensemble.widen(z)) for z in (inputs, others))
        raw = None if self.slope is not None else raw_sums(ensemble, inputs)  # (needed rows, raw)
        found = np.empty((len(row), len(values), len(outputs)))
        order = np.argsort(column, kind="stable")  # cells of one column take alike ways
        size = max(1, NUMBERS // (len(values) * len(ensemble.base) ** 2))
        for at in range(0, len(row), size):
            part = order[at : at + size]
            change = raw_changes(self.plan, cells, row[part], column[part], others, len(ensemble.base))
            if raw is None:
                found[part] = np.einsum("cvk,ok->cvo", change, self.slope[outputs])
            else:
                found[part] = self._through_link(raw[row[part]], change)[..., outputs]
        return found

    def _through_link(self, raw: Array, change: Array) -> Array:
        there = self.after((raw[:, None] + change).reshape(-1, raw.shape[1]))[0]
        return there.reshape(*change.shape[:2], -1) - self.after(raw)[0][:, None]


def replacements_of(
    ensemble: TreeEnsemble, inputs: Callable[[Array], Array], after: Map, outputs: list[int]
) -> Replacements:
    """Prepare a model's trees."""
    slope = constant_slope(after, len(ensemble.base))
    return Replacements(ensemble, inputs, after, outputs, columns_below(ensemble), slope)
