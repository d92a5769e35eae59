"""From an ensemble and half-widths to smoothed values and gradients of rows.

Columns with a half-width of zero (and the virtual columns of categories) are *hard*: their thresholds
and cells are replaced by ranks four apart, so that a cell always lies at least two half-widths (of 1)
from a threshold and the soft tree decides as the hard one. With all widths zero the smoothed ensemble
*is* the model: the self-check uses that.

The neighbourhood is kept in the data's range: a threshold outside it is not softened (HARD), and what lies
beyond is left out of a slope by dividing it by the kernel's mass inside (`mass_inside`). Thresholds of
columns of whole numbers are moved to the middle between the neighbouring integers first: the model says
nothing about where between them it decides.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from texplainer.gradients.machine_code import in_threads, is_compiled
from texplainer.gradients.trees.compiled import KernelArrays, block_rows, dense_rows, scalar_rows
from texplainer.gradients.trees.ensemble import (
    HARD,
    LARGEST,
    LEAF,
    LOWER,
    UPPER,
    Floats,
    TreeEnsemble,
    compared,
)
from texplainer.gradients.trees.layout import coherent_order, subtree_ends, subtree_ranges

FEW = 24  # rows for which the scalar execution is the faster one
TRIAL = 4  # rows that show how fast it is: on deep trees each costs as much as ten of the other
GROUP = 16  # rows that are put next to each other because they are alike
COMPILE_THRESHOLD = 2e7  # rows times nodes of one call from which the dense execution is worth compiling
TOGETHER = 2 * COMPILE_THRESHOLD  # the same of all calls so far: a long table comes in small blocks
_work_done = {"scalar": 0.0}  # rows times nodes done while the dense execution was not at hand
LEAST_MASS = 0.25  # a range narrower than the kernel: slopes are not blown up beyond it


@dataclass(frozen=True)
class Smoothed:
    """An ensemble prepared for one vector of half-widths."""

    ensemble: TreeEnsemble
    widths: Floats  # (features,) 0: a hard column
    plan: KernelArrays
    ranks: dict[int, Floats]  # hard column -> its sorted thresholds
    importance: Floats  # (columns,) how much a unit of each column decides, see `work`

    def code(self, rows: Floats) -> Floats:
        """Rows as the kernels read them: clipped, virtual columns appended, hard columns ranked."""
        cells = np.clip(self.ensemble.widen(rows), -LARGEST, LARGEST)
        if self.ranks:
            exact = compared(self.ensemble, cells)
            for column, thresholds in self.ranks.items():
                cells[:, column] = 4.0 * np.searchsorted(thresholds, exact[:, column], side="left")
            cells[np.isnan(exact)] = np.nan
        return np.ascontiguousarray(cells)

    def __call__(
        self, rows: Floats, *, execution: str = "auto", threads: int | None = None
    ) -> tuple[Floats, Floats]:
        """Smoothed raw outputs (rows, outputs) and their gradient (rows, features, outputs)."""
        cells, outputs = self.code(rows), len(self.ensemble.base)
        value = np.zeros((len(rows), outputs))
        gradient = np.zeros((len(rows), self.ensemble.columns, outputs))
        order, block = np.arange(len(rows)), block_rows(self.plan)
        if len(rows) >= 2 * GROUP and execution != "scalar":
            order = coherent_order(cells, self.importance, GROUP)
            middle = len(order) // 2 // block * block  # the first block is tried, and those at an end are odd
            if middle:
                order[:block], order[middle : middle + block] = (
                    order[middle : middle + block],
                    order[:block].copy(),
                )
        fill_rows(self.plan, (cells, order, value, gradient), execution, threads)
        inverse = self.plan.inverse[: self.ensemble.features, None]
        return value + self.ensemble.base, gradient[:, : self.ensemble.features] * inverse


def with_half_widths(
    ensemble: TreeEnsemble,
    widths: Floats,
    limits: tuple[Floats, Floats] | None = None,
    integers: Sequence[int] = (),
) -> Smoothed:
    """Prepare `ensemble` for the half-widths (features,), inside `limits` (low, high), (features,) each.

    `integers` are the features that hold whole numbers.
    """
    threshold, lower, upper = ensemble.threshold.copy(), ensemble.lower.copy(), ensemble.upper.copy()
    half = np.concatenate([widths, np.zeros(len(ensemble.categories))])
    split = (ensemble.kind & LEAF) == 0
    whole = split & np.isin(ensemble.column, np.asarray([j for j in integers if widths[j] > 0], dtype=int))
    for bound in (threshold, lower, upper):
        bound[whole] = np.floor(bound[whole]) + 0.5
    ranks: dict[int, Floats] = {}
    for column in np.flatnonzero(half == 0.0):
        here = np.flatnonzero(split & (ensemble.column == column))
        ranks[int(column)] = known = np.unique(threshold[here])
        for bound in (threshold, lower, upper):
            inside = here[np.isfinite(bound[here])]
            bound[inside] = 4.0 * np.searchsorted(known, bound[inside]) + 2.0
    plan = KernelArrays(
        kind=_hardened(ensemble, half, threshold, lower, upper, limits),
        column=ensemble.column,
        threshold=threshold,
        lower=lower,
        upper=upper,
        right=ensemble.right,
        roots=ensemble.roots,
        output=ensemble.output,
        value=ensemble.value,
        inverse=1.0 / np.where(half == 0.0, 1.0, half),
        outputs=np.uint64(len(ensemble.base)),
        depth=np.uint64(ensemble.depth),
    )
    return Smoothed(
        ensemble, np.asarray(widths, dtype=np.float64), plan, ranks, nodes_below(plan) * plan.inverse
    )


def _hardened(
    ensemble: TreeEnsemble,
    half: Floats,
    threshold: Floats,
    lower: Floats,
    upper: Floats,
    limits: tuple[Floats, Floats] | None,
) -> NDArray[np.uint8]:
    """The nodes' kinds with thresholds outside the limits HARD, and no bounds out there for the others."""
    if limits is None:
        return ensemble.kind
    soft = ((ensemble.kind & LEAF) == 0) & (half[ensemble.column] > 0)
    column = np.where(soft, ensemble.column, 0).astype(np.int64)
    low, high = limits[0][column], limits[1][column]
    kind = ensemble.kind.copy()
    kind[soft & ((threshold < low) | (threshold > high))] |= HARD
    kind[soft & (lower < low)] &= ~np.uint8(LOWER)
    kind[soft & (upper > high)] &= ~np.uint8(UPPER)
    return kind


def mass_inside(rows: Floats, widths: Floats, limits: tuple[Floats, Floats]) -> Floats:
    """How much of the kernel around each cell lies in the limits, (rows, features); 1 where there is none.

    A row outside the limits is their edge itself.
    """
    half = np.where(widths > 0, widths, 1.0)
    known = np.where(np.isnan(rows), 0.0, rows)
    up = np.minimum(np.maximum(limits[1] - known, 0.0) / half, 1.0)
    down = np.minimum(np.maximum(known - limits[0], 0.0) / half, 1.0)
    mass = up * (1 - up / 2) + down * (1 - down / 2)
    return np.where((widths > 0) & ~np.isnan(rows), np.maximum(mass, LEAST_MASS), 1.0)


def execute(
    execution: str, plan: KernelArrays, arrays: tuple[Any, ...], first: int, last: int, many: int | None
) -> None:
    """Run some rows by one execution."""
    if execution == "scalar":
        scalar_rows(plan, *arrays, first, last, many)
    else:
        dense_rows(plan, *arrays, first, last, many, block_rows(plan))


def fill_rows(plan: KernelArrays, arrays: tuple[Any, ...], execution: str, threads: int | None) -> None:
    """Fill all but (cells, order, ...) of the arrays, in parallel over rows; how changes nothing."""
    width = plan.value.shape[1]
    many = None if width == 1 else width
    done = 0
    if execution == "auto":
        done, execution = fastest(plan, arrays, many)

    def work(first: int, last: int) -> None:
        execute(execution, plan, arrays, done + first, done + last, many)

    in_threads(work, len(arrays[0]) - done, block_rows(plan), threads)


def nodes_below(plan: KernelArrays) -> Floats:
    """For each column the nodes below its splits, summed: what there is to skip."""
    leaf = (plan.kind & LEAF) != 0
    end = subtree_ends(plan.right, leaf, plan.roots)
    below = np.where(leaf, 0, end - np.arange(len(leaf)))
    return np.bincount(plan.column.astype(np.int64), weights=below, minlength=len(plan.inverse)).astype(
        np.float64
    )


def fastest(plan: KernelArrays, arrays: tuple[Any, ...], many: int | None) -> tuple[int, str]:
    """How many rows are done, and the execution for the rest: with many rows the faster one on some."""
    cells, order, *sums = arrays
    block = block_rows(plan)
    if not is_compiled(dense_rows) and not _worth_compiling(len(cells) * len(plan.kind)):
        return 0, "scalar"
    if len(cells) < 2 * block:
        return 0, "scalar" if len(cells) < FEW else "dense"
    few = order[: block : block // TRIAL][:TRIAL]  # of the same rows, on paper of their own
    tries = {
        "dense": (arrays, block),
        "scalar": ((cells[few], np.arange(TRIAL), *(np.zeros_like(one[:TRIAL]) for one in sums)), TRIAL),
    }
    took: dict[str, float] = {}
    for name, (given, count) in tries.items():
        execute(name, plan, given, 0, 0, many)  # compile, or load from the cache
        began = time.thread_time()
        execute(name, plan, given, 0, count, many)
        took[name] = (time.thread_time() - began) / count
    return block, min(took, key=lambda name: took[name])


def _worth_compiling(work: float) -> bool:
    """Whether to compile the dense execution, which takes seconds and is ten times faster afterwards."""
    _work_done["scalar"] += work
    return work >= COMPILE_THRESHOLD or _work_done["scalar"] >= TOGETHER


def largest_slopes(ensemble: TreeEnsemble, widths: Floats) -> Floats:
    """Bound on the slopes of the smoothed ensemble anywhere, (features, raw outputs).

    A tree changes along a feature by no more than the range of the leaves below its nodes on that feature.
    """
    leaf = (ensemble.kind & LEAF) != 0
    ranges = subtree_ranges(ensemble.right, leaf, ensemble.roots, ensemble.value)  # (nodes, width)
    tree = np.repeat(
        np.arange(len(ensemble.roots)), np.diff(np.append(ensemble.roots, len(leaf)).astype(np.int64))
    )
    inner = np.flatnonzero(~leaf & (ensemble.column < ensemble.features))
    largest = np.zeros((len(ensemble.roots), ensemble.features, ranges.shape[1]))
    np.maximum.at(largest, (tree[inner], ensemble.column[inner].astype(np.int64)), ranges[inner])
    found = np.zeros((ensemble.features, len(ensemble.base)))
    for change, output in zip(largest, ensemble.output.astype(np.int64), strict=True):
        found[:, output : output + ranges.shape[1]] += change
    return found / np.where(widths > 0, widths, np.inf)[:, None]
