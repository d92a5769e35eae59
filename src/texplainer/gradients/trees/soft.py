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

Execution = Callable[..., None]
EXECUTIONS: dict[str, Execution] = {"scalar": scalar_rows, "vector": vector_rows}
WORTH = 2e7  # rows times nodes of one call from which the vector execution is worth being compiled
TOGETHER = 2 * WORTH  # the same of all calls so far: a long table comes in blocks that are small each
_so_far = {"scalar": 0.0}  # rows times nodes done while the vector execution was not at hand
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
        for column, thresholds in self.ranks.items():
            with np.errstate(over="ignore"):
                exact = np.clip(
                    cells[:, column].astype(self.ensemble.dtype).astype(np.float64), -LARGEST, LARGEST
                )
            rank = 4.0 * np.searchsorted(thresholds, exact, side="left")
            cells[:, column] = np.where(np.isnan(exact), np.nan, rank)
        return np.ascontiguousarray(cells)

    def __call__(
        self, rows: Floats, *, execution: str = "auto", threads: int | None = None
    ) -> tuple[Floats, Floats]:
        """Smoothed raw outputs (rows, outputs) and their gradient (rows, features, outputs)."""
        return self.bent(rows, execution=execution, threads=threads)[:2]

    def bent(
        self, rows: Floats, *, execution: str = "auto", threads: int | None = None
    ) -> tuple[Floats, Floats, Floats]:
        """Values, gradient, and about how the gradient changes with its own feature (as the gradient).

        A feature met again on a path bends more than the sum of its splits; that is left out.
        """
        cells, outputs = self.code(rows), len(self.ensemble.base)
        value = np.zeros((len(rows), outputs))
        gradient, bent = np.zeros((2, len(rows), self.ensemble.columns, outputs))
        order = np.arange(len(rows))
        if len(rows) >= 4 * BLOCK and execution != "scalar":
            order = coherent_order(cells, self.importance, BLOCK)
        fill_rows(self.plan, (cells, order, value, gradient, bent), execution, threads)
        inverse = self.plan.inverse[: self.ensemble.features, None]
        gradient, bent = (one[:, : self.ensemble.features] for one in (gradient, bent))
        return value + self.ensemble.base, gradient * inverse, bent * inverse**2


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

    def execute(name: str, first: int, last: int) -> None:
        EXECUTIONS[name](plan, *arrays, first, last, many)

    first, last = 0, len(arrays[0])
    if execution == "auto":
        first, last, execution = fastest(execute, last, len(plan.kind))
    workers = min(threads or os.cpu_count() or 1, -(-(last - first) // (2 * BLOCK)))
    if workers <= 1:
        return execute(execution, first, last)
    share = -(-(last - first) // (4 * workers * BLOCK)) * BLOCK
    with ThreadPoolExecutor(workers) as pool:
        jobs = [
            pool.submit(execute, execution, at, min(at + share, last)) for at in range(first, last, share)
        ]
        for job in jobs:
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


def fastest(execute: Callable[[str, int, int], None], rows: int, nodes: int) -> tuple[int, int, str]:
    """The faster execution, by trying both on a few rows if there are many; and the rows that remain."""
    if not vector_rows.signatures and not _worth_compiling(rows * nodes):
        return 0, rows, "scalar"
    if rows < 4 * BLOCK:
        return 0, rows, "scalar" if rows < BLOCK // 4 else "vector"
    took: dict[str, float] = {}
    tries = {"vector": (0, BLOCK), "scalar": (rows - BLOCK // 12, rows)}
    for name, (first, last) in tries.items():
        execute(name, 0, 0)  # compile, or load from the cache
        began = time.thread_time()
        execute(name, first, last)
        took[name] = (time.thread_time() - began) / (last - first)
    return BLOCK, rows - BLOCK // 12, min(took, key=lambda name: took[name])


def _worth_compiling(work: float) -> bool:
    """Whether to compile the vector execution, which takes seconds and is ten times faster afterwards."""
    _so_far["scalar"] += work
    return work >= WORTH or _so_far["scalar"] >= TOGETHER
