"""From an ensemble and half-widths to smoothed values and gradients of rows.

Columns with a half-width of zero (and the virtual columns of categories) are *hard*: their thresholds
and cells are replaced by ranks four apart, so that a cell always lies at least two half-widths (of 1)
from a threshold and the soft tree decides as the hard one. With all widths zero the smoothed ensemble
*is* the model: the self-check uses that.
"""

import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from texplainer.gradients.trees.compiled import BLOCK, KernelArrays, scalar_rows, vector_rows
from texplainer.gradients.trees.ensemble import LEAF, Floats, TreeEnsemble
from texplainer.gradients.trees.layout import coherent_order, subtree_ends
from texplainer.gradients.trees.vectors import WIDTH

Execution = Callable[..., None]
EXECUTIONS: dict[str, Execution] = {"scalar": scalar_rows, "vector": vector_rows}
FEW = 24  # rows for which the scalar execution is the faster one
TRIAL = 4  # rows that show how fast it is: on deep trees each costs as much as ten of the other
COMPILE_THRESHOLD = (
    2e7  # rows times nodes of one call from which the vector execution is worth being compiled
)
TOGETHER = (
    2 * COMPILE_THRESHOLD
)  # the same of all calls so far: a long table comes in blocks that are small each
_work_done = {"scalar": 0.0}  # rows times nodes done while the vector execution was not at hand
LARGEST = 1e308  # between the stand-ins of infinite thresholds, see `ensemble.finite_threshold`


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
        return self.value_gradient_curvature(rows, execution=execution, threads=threads)[:2]

    def value_gradient_curvature(
        self, rows: Floats, *, execution: str = "auto", threads: int | None = None
    ) -> tuple[Floats, Floats, Floats]:
        """Values, gradient, and about how the gradient changes with its own feature (as the gradient).

        A feature met again on a path bends more than the sum of its splits; that is left out.
        """
        cells, outputs = self.code(rows), len(self.ensemble.base)
        value = np.zeros((len(rows), outputs))
        gradient, bent = np.zeros((2, len(rows), self.ensemble.columns, outputs))
        order = np.arange(len(rows))
        if len(rows) >= 2 * BLOCK and execution != "scalar":
            order = coherent_order(cells, self.importance, WIDTH)
            middle = len(order) // 2 // BLOCK * BLOCK  # the first block is tried, and those at an end are odd
            order[:BLOCK], order[middle : middle + BLOCK] = (
                order[middle : middle + BLOCK],
                order[:BLOCK].copy(),
            )
        fill_rows(self.plan, (cells, order, value, gradient, bent), execution, threads)
        inverse = self.plan.inverse[: self.ensemble.features, None]
        gradient, bent = (one[:, : self.ensemble.features] for one in (gradient, bent))
        return value + self.ensemble.base, gradient * inverse, bent * inverse**2


def compared(ensemble: TreeEnsemble, cells: Floats) -> Floats:
    """Cells as the library compares them, and within the stand-ins of infinite thresholds."""
    with np.errstate(over="ignore"):
        rounded = cells.astype(ensemble.dtype).astype(np.float64)
    return np.clip(rounded, -LARGEST, LARGEST)


def with_half_widths(ensemble: TreeEnsemble, widths: Floats) -> Smoothed:
    """Prepare `ensemble` for the half-widths (features,)."""
    threshold, lower, upper = ensemble.threshold.copy(), ensemble.lower.copy(), ensemble.upper.copy()
    half = np.concatenate([widths, np.zeros(len(ensemble.categories))])
    split = (ensemble.kind & LEAF) == 0
    ranks: dict[int, Floats] = {}
    for column in np.flatnonzero(half == 0.0):
        here = np.flatnonzero(split & (ensemble.column == column))
        ranks[int(column)] = known = np.unique(threshold[here])
        for bound in (threshold, lower, upper):
            inside = here[np.isfinite(bound[here])]
            bound[inside] = 4.0 * np.searchsorted(known, bound[inside]) + 2.0
    plan = KernelArrays(
        kind=ensemble.kind,
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
        block=np.uint64(BLOCK),
    )
    return Smoothed(
        ensemble, np.asarray(widths, dtype=np.float64), plan, ranks, nodes_below(plan) * plan.inverse
    )


def fill_rows(plan: KernelArrays, arrays: tuple[Any, ...], execution: str, threads: int | None) -> None:
    """Fill all but (cells, order, ...) of the arrays, in parallel over rows; how changes nothing."""
    width = plan.value.shape[1]
    many = None if width == 1 else width
    done = 0
    if execution == "auto":
        done, execution = fastest(plan, arrays, many)

    def execute(first: int, last: int) -> None:
        EXECUTIONS[execution](plan, *arrays, done + first, done + last, many)

    in_threads(execute, len(arrays[0]) - done, BLOCK, threads)


def in_threads(work: Callable[[int, int], None], rows: int, block: int, threads: int | None) -> None:
    """Call `work` for parts of the rows, whole blocks each."""
    workers = min(threads or os.cpu_count() or 1, -(-rows // block))
    if workers <= 1:
        return work(0, rows)
    share = -(-rows // (4 * workers * block)) * block
    with ThreadPoolExecutor(workers) as pool:
        for job in [pool.submit(work, at, min(at + share, rows)) for at in range(0, rows, share)]:
            job.result()
    return None


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
    if not vector_rows.signatures and not _worth_compiling(len(cells) * len(plan.kind)):
        return 0, "scalar"
    if len(cells) < 2 * BLOCK:
        return 0, "scalar" if len(cells) < FEW else "vector"
    few = order[: BLOCK : BLOCK // TRIAL]  # of the same rows, on paper of their own
    tries = {
        "vector": (arrays, BLOCK),
        "scalar": ((cells[few], np.arange(TRIAL), *(np.zeros_like(one[:TRIAL]) for one in sums)), TRIAL),
    }
    took: dict[str, float] = {}
    for name, (given, count) in tries.items():
        EXECUTIONS[name](plan, *given, 0, 0, many)  # compile, or load from the cache
        began = time.thread_time()
        EXECUTIONS[name](plan, *given, 0, count, many)
        took[name] = (time.thread_time() - began) / count
    return BLOCK, min(took, key=lambda name: took[name])


def _worth_compiling(work: float) -> bool:
    """Whether to compile the vector execution, which takes seconds and is ten times faster afterwards."""
    _work_done["scalar"] += work
    return work >= COMPILE_THRESHOLD or _work_done["scalar"] >= TOGETHER
