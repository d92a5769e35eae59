"""Shares of tree ensembles: the exact integral along straight lines from starts b to rows x.

On the way a tree changes only where a threshold of its current leaf's path is crossed, and each jump
belongs to the crossed feature, so that the shares of a line sum to F(x) - F(b) exactly (`crossings`). What
cannot move evenly switches from b's to x's state at one place of the way: a category, a cell that is missing
or infinite at either end. The places are fixed low-discrepancy numbers, one for each line and column and
knowing nothing of the data; the lines of a group average over them. Crossings at the same place are taken in
the order of the same numbers, another one on every line, so that no tie is broken by round-off.

Behind a link that is not linear (probabilities of boosted trees) the jumps are kept by eighths of the way,
and each eighth is carried through the link's mean derivative on it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
from numpy.typing import NDArray

from texplainer.errors import Unsupported
from texplainer.gradients.trees.crossings import Ends, LinePlan, Lines, scalar_lines, vector_lines
from texplainer.gradients.trees.ensemble import LEAF, Floats, TreeEnsemble
from texplainer.gradients.trees.layout import coherent_order
from texplainer.gradients.trees.links import constant_slope, jacobian
from texplainer.gradients.trees.model import SmoothedTreeModel
from texplainer.gradients.trees.soft import Smoothed, in_threads, with_half_widths
from texplainer.types import Array

BINS = 8
HUGE = 1e30  # cells beyond it count as infinite: the kernels hold them as float32
BLOCK = 128  # lines a node visit
TOGETHER = 32  # rows of a block: neighbours, so that groups of lines to them go the same way
CHUNK = 2**22  # numbers of binned jumps held at a time


@dataclass(frozen=True)
class PreparedLines:
    """An ensemble ready to be walked along lines."""

    hard: Smoothed  # the ensemble without widths: all columns ranked
    plan: LinePlan
    feature: NDArray[np.int64]  # (columns,) the feature a column belongs to
    switching: NDArray[np.bool_]  # (columns,) whether it always changes at one place
    centre: Floats  # (columns,) of the thresholds

    def ends(self, inputs: Floats) -> Ends:
        """Code rows as the ends of lines."""
        cells = self.hard.ensemble.widen(np.asarray(inputs, dtype=np.float64))
        with np.errstate(over="ignore"):
            cells = cells.astype(self.hard.ensemble.dtype).astype(np.float64)
        still = self.switching | ~(np.abs(cells) < HUGE)
        return Ends(self.hard.code(inputs).astype(np.float32), np.where(still, np.nan, cells - self.centre))

    def folded(self, jumps: Floats) -> Floats:
        """Add virtual columns to the features they belong to; columns are the last axis but one."""
        features = self.hard.ensemble.features
        out = jumps[..., :features, :]
        for column in range(features, len(self.feature)):
            out[..., self.feature[column], :] += jumps[..., column, :]
        return out


def rank_thresholds(
    ensemble: TreeEnsemble, switching: Iterable[int] = (), hard: Smoothed | None = None
) -> PreparedLines:
    """Rank an ensemble's thresholds (`hard` where that is done); features `switching` change at one place."""
    hard = hard or with_half_widths(ensemble, np.zeros(ensemble.features))
    centre = _centres(ensemble)
    own = np.clip(ensemble.threshold - centre[ensemble.column.astype(np.int64)], -HUGE, HUGE)
    plan = LinePlan(
        kind=ensemble.kind,
        column=ensemble.column,
        rank=hard.plan.threshold.astype(np.float32),
        threshold=own.astype(np.float32),
        right=ensemble.right,
        roots=ensemble.roots,
        output=ensemble.output,
        value=ensemble.value,
        outputs=np.uint64(len(ensemble.base)),
        depth=np.uint64(ensemble.depth),
        block=np.uint64(BLOCK),
    )
    owners = [feature for feature, _ in ensemble.categories]
    mask = np.zeros(ensemble.columns, dtype=bool)
    mask[[*switching, *range(ensemble.features, ensemble.columns)]] = True
    feature = np.array([*range(ensemble.features), *owners], dtype=np.int64)
    return PreparedLines(hard, plan, feature, mask, centre)


def _centres(ensemble: TreeEnsemble) -> Floats:
    """Give the middle threshold of each column: relative to it, float32 places keep their digits."""
    used = ((ensemble.kind & LEAF) == 0) & (np.abs(ensemble.threshold) < HUGE)
    column, threshold = ensemble.column[used].astype(np.int64), ensemble.threshold[used]
    order = np.lexsort((threshold, column))
    count = np.bincount(column, minlength=ensemble.columns)
    middle = np.cumsum(count) - count + count // 2
    out = np.zeros(ensemble.columns)
    out[count > 0] = threshold[order][middle[count > 0]]
    return out


def line_shares(
    prepared: PreparedLines,
    starts: Floats,
    weights: Floats,
    groups: NDArray[np.int64],
    rows: Floats,
    threads: int | None = None,
) -> Floats:
    """Sum ``weights[l]`` times the shares of line l over the lines of each group.

    Parameters
    ----------
    prepared
        The ensemble.
    starts
        (lines, inputs), where the lines begin.
    weights, groups
        (lines,) each; groups are numbered from 0.
    rows
        (rows, inputs), where they all end.
    threads
        At most so many; None takes all cores.

    Returns
    -------
    Array
        (rows, groups, features, raw outputs); over the features it sums to the group's weighted F(x) - F(b).
    """
    slots = int(groups.max(initial=-1)) + 1
    jumps = _walk(prepared, starts, (weights, groups, groups, slots), rows, 1, threads)
    return prepared.folded(jumps[:, :, 0])


def line_shares_by_bin(
    prepared: PreparedLines,
    starts: Floats,
    groups: NDArray[np.int64],
    rows: Floats,
    bins: int = BINS,
    threads: int | None = None,
) -> Floats:
    """Split the shares of lines by their place on the way, (rows, lines, bins, features, raw outputs)."""
    alone = np.arange(len(starts))
    return prepared.folded(
        _walk(prepared, starts, (np.ones(len(starts)), groups, alone, len(starts)), rows, bins, threads)
    )


def _walk(
    prepared: PreparedLines,
    starts: Floats,
    lines: tuple[Floats, NDArray[np.int64], NDArray[np.int64], int],
    rows: Floats,
    bins: int,
    threads: int | None,
) -> Floats:
    weights, groups, slot, slots = lines
    end = prepared.ends(rows)
    place = np.ascontiguousarray(
        crossing_places(groups, prepared.hard.ensemble.features)[:, prepared.feature]
    )
    known = Lines(
        prepared.ends(starts), place, np.asarray(weights, dtype=np.float64), np.asarray(slot, dtype=np.int64)
    )
    outputs, width = len(prepared.hard.ensemble.base), prepared.plan.value.shape[1]
    jumps = np.zeros((len(rows), slots, bins, len(prepared.feature), outputs))
    if bins > 1:
        in_threads(partial(scalar_lines, prepared.plan, known, end, jumps), len(rows), 1, threads)
        return jumps
    together = int(np.clip(len(rows), 1, TOGETHER))
    order = np.arange(len(rows))
    if len(rows) > together:
        order = coherent_order(prepared.hard.code(rows), prepared.hard.importance, together)
    many = None if width == 1 else width

    def walk(first: int, last: int) -> None:
        vector_lines(prepared.plan, known, end, order, together, jumps, first, last, many)

    in_threads(walk, len(rows), together, threads)
    return jumps


def crossing_places(groups: NDArray[np.int64], features: int) -> Floats:
    """Where on its way each line switches each feature, (lines, features).

    Within a group lines come in pairs u, 1 - u, so that of two features either is first equally often; the
    pairs follow Richtmyer's sequence, multiples of the square roots of primes.
    """
    order = np.argsort(groups, kind="stable")
    sizes = np.bincount(groups[order])
    number = np.empty(len(groups), dtype=np.int64)  # of the line within its group
    number[order] = np.arange(len(groups)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    u = (0.5 + (number // 2 + 1)[:, None] * np.sqrt(_primes(features))) % 1.0
    u = np.where(number[:, None] % 2 == 1, 1.0 - u, u)
    alone = (sizes % 2 == 1)[groups] & (number == sizes[groups] - 1)  # without a partner: the middle
    return np.where(alone[:, None], 0.5, u)


@cache
def _primes(count: int) -> Floats:
    limit = 16 + int(2 * count * np.log(count + 2))
    sieve = np.ones(limit, dtype=bool)
    sieve[:2] = False
    for i in range(2, int(limit**0.5) + 1):
        sieve[i * i :: i] &= not sieve[i]
    return np.flatnonzero(sieve)[:count].astype(np.float64)


# --- on the explained scale
# ---------------------------------------------------------------------------------------


def explained_line_shares(
    explained: SmoothedTreeModel, starts: Array, weights: Array, groups: NDArray[np.int64], rows: Array
) -> Array:
    """Shares of features in the explained outputs, (rows, groups, features, outputs).

    As `line_shares`, of rows as the schema codes them: categories switch, the link is passed.
    """
    if not explained.diagonal:
        raise Unsupported("its transformers mix features, so a threshold crossed belongs to several of them.")
    hard = None if explained.smoothed.widths.any() else explained.smoothed
    prepared = rank_thresholds(explained.ensemble, explained.predictor.schema.levels, hard)
    begin, end = (explained.before(explained.cells(table))[0] for table in (starts, rows))
    outputs = list(explained.predictor.outputs)
    slope = constant_slope(explained.after, len(explained.ensemble.base))
    if slope is not None:
        return line_shares(prepared, begin, weights, groups, end) @ slope[outputs].T
    shape = (int(groups.max(initial=-1)) + 1, rows.shape[1], len(outputs))
    found = np.zeros((len(rows), *shape))
    size = max(
        1, CHUNK // (len(starts) * BINS * prepared.hard.ensemble.columns * len(prepared.hard.ensemble.base))
    )
    raw = prepared.hard(begin, execution="scalar")[0]  # (lines, raw)
    for at in range(0, len(rows), size):
        jumps = line_shares_by_bin(prepared, begin, groups, end[at : at + size])
        shares = _through_link(explained, outputs, raw, jumps) * weights[:, None, None]
        for group in range(shape[0]):
            found[at : at + size, group] = shares[:, groups == group].sum(axis=1)
    return found


NODES, SHARES = np.polynomial.legendre.leggauss(3)


def _through_link(explained: SmoothedTreeModel, outputs: list[int], raw: Array, jumps: Array) -> Array:
    """Carry jumps (rows, lines, bins, features, raw) through the link, (rows, lines, features, outputs)."""
    asked = list(range(len(outputs)))
    if explained.predictor.scale == "probability":  # all classes share what is put right, so that they cancel
        asked, outputs = outputs, list(range(len(explained.predictor.all_names)))
    rows, lines, bins, features, width = jumps.shape
    steps = jumps.sum(axis=3)  # (rows, lines, bins, raw)
    low = raw[:, None] + np.cumsum(steps, axis=2) - steps
    shares = np.zeros((rows, lines, features, len(outputs)))
    for node, share in zip((NODES + 1) / 2, SHARES / 2, strict=True):
        slope = jacobian(explained.after, (low + node * steps).reshape(-1, width))[:, outputs]
        slope = slope.reshape(rows, lines, bins, len(outputs), width)
        shares += share * np.einsum("rlbok,rlbfk->rlfo", slope, jumps, optimize=True)
    ends = (low[:, :, -1] + steps[:, :, -1]).reshape(-1, width)
    change = (
        explained.after(ends)[0][:, outputs].reshape(rows, lines, -1) - explained.after(raw)[0][:, outputs]
    )
    # what three Gauss nodes miss goes where the shares are, so that the sum is exact
    size = np.abs(shares)
    if explained.predictor.scale == "probability":
        size = size.sum(axis=3, keepdims=True)
    total = size.sum(axis=2, keepdims=True)
    shares += (change - shares.sum(axis=2))[:, :, None] * size / np.where(total > 0, total, 1.0)
    return shares[..., asked]
