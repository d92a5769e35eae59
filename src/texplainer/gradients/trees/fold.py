"""Trees behind column-wise transformers as trees of the raw columns.

If every column the trees see is made from one raw column (imputers, scalers, encoders, binning, selection), a
condition T(x) <= t is a condition on that raw column alone. Of a number it is a threshold, if T is monotone:
the last raw number for which it holds, found by bisection down to neighbouring floats with the transformer
itself, so that the folded trees predict bit for bit what the model predicts. Nothing is known of the transformers;
a condition that is not one interval is refused. Conditions on categories, and on inputs that no tried number
changes, stay conditions on the transformed row: only numbers are moved.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np

from texplainer.errors import Unsupported
from texplainer.gradients.trees.ensemble import (
    LEAF,
    MISSING_LEFT,
    Tree,
    TreeEnsemble,
    assemble,
)
from texplainer.gradients.trees.inputs import beyond, inputs_of
from texplainer.gradients.trees.readers.table import split_pipeline
from texplainer.limits import CELLS
from texplainer.models.predictor import Predictor
from texplainer.types import Array

GRID = 64  # values of a column between which changes are looked for
NEAR = 64 * np.finfo(np.float64).eps  # how well an affine transformer is inverted by a straight line


def fold(
    ensemble: TreeEnsemble, predictor: Predictor, background: Array, owner: np.ndarray
) -> tuple[TreeEnsemble, Callable[[Array], Array]]:
    """The same trees on the raw columns and some of their inputs, `owner` of each; and these of raw rows.

    `Unsupported` with the reason where a condition is not one interval.
    """
    if len(owner) != ensemble.features:
        raise Unsupported(f"its trees were fitted on {ensemble.features} columns and get {len(owner)}.")
    owner = np.concatenate([owner, owner[[feature for feature, _ in ensemble.categories]]]).astype(int)
    inner = np.flatnonzero(ensemble.kind & LEAF == 0)
    left = (ensemble.kind[inner] & MISSING_LEFT != 0).astype(float)
    nodes = np.column_stack([ensemble.column[inner].astype(float), ensemble.threshold[inner], left])
    unique, which = np.unique(nodes, axis=0, return_inverse=True)
    conditions = _Conditions(ensemble, predictor, background, unique, owner)
    return _rebuilt(ensemble, inner, which.ravel(), conditions, background)


class _Conditions:
    """The distinct conditions of an ensemble, asked of raw values."""

    def __init__(
        self,
        ensemble: TreeEnsemble,
        predictor: Predictor,
        background: Array,
        unique: Array,
        owner: np.ndarray,
    ) -> None:
        self.ensemble, self.predictor = ensemble, predictor
        self.transformers = split_pipeline(predictor.model)[0]
        complete = np.flatnonzero(np.isfinite(background).all(axis=1))
        self.base = background[complete[0] if len(complete) else 0]
        self.column, self.threshold = unique[:, 0].astype(int), unique[:, 1]
        self.missing = unique[:, 2] > 0
        self.feature = owner[self.column]  # -1: nothing that was tried changes it

    def seen(self, rows: Array) -> Array:
        """What the trees compare, (rows, columns)."""
        size = max(1, CELLS // max(1, rows.shape[1]))
        parts = []
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            for first in range(0, len(rows), size):
                inputs = inputs_of(self.predictor, self.transformers, rows[first : first + size])
                parts.append(self.ensemble.widen(self.ensemble.marked(inputs)))
        return np.concatenate(parts).astype(self.ensemble.dtype).astype(np.float64)

    def goes_left(self, which: np.ndarray, seen: Array) -> np.ndarray:
        """Whether conditions hold of what the trees compare; one each, or all of every row."""
        return np.where(np.isnan(seen), self.missing[which], seen <= self.threshold[which])

    def of_values(self, which: np.ndarray, values: Array) -> np.ndarray:
        """Whether conditions hold of raw values, one each."""
        rows = np.repeat(self.base[None], len(which), axis=0)
        rows[np.arange(len(which)), self.feature[which]] = values
        return self.goes_left(which, self.seen(rows)[np.arange(len(which)), self.column[which]])

    def of_points(self, which: np.ndarray, feature: int, points: Array) -> np.ndarray:
        """Whether conditions on one feature hold at each point, (points, conditions)."""
        rows = np.repeat(self.base[None], len(points), axis=0)
        rows[:, feature] = points
        return self.goes_left(which, self.seen(rows)[:, self.column[which]])

    def of_missing(self, which: np.ndarray) -> np.ndarray:
        """Whether conditions hold of a missing value; a transformer that refuses it leaves them as they are."""
        try:
            return self.of_values(which, np.full(len(which), np.nan))
        except Exception:  # whatever a transformer raises: the model does not take missing values
            return self.missing[which]


def _rebuilt(
    ensemble: TreeEnsemble, inner: np.ndarray, which: np.ndarray, conditions: _Conditions, background: Array
) -> tuple[TreeEnsemble, Callable[[Array], Array]]:
    """The ensemble with its conditions on numbers in terms of raw columns, the others of inputs behind these."""
    features = background.shape[1]
    folded = np.append(conditions.predictor.schema.numeric, False)[conditions.feature]  # -1: of no feature
    kept, place = np.unique(conditions.column[~folded], return_inverse=True)
    column, threshold = conditions.feature.copy(), conditions.threshold.copy()
    swapped, missing = np.zeros(len(column), bool), conditions.missing.copy()
    column[~folded] = features + place
    threshold[folded], swapped[folded] = _thresholds(conditions, np.flatnonzero(folded), background)
    for j in np.unique(conditions.feature[folded]):
        own = np.flatnonzero(folded & (conditions.feature == j))
        missing[own] = conditions.of_missing(own) ^ swapped[own]

    def inputs(rows: Array) -> Array:
        return np.hstack([rows, conditions.seen(rows)[:, kept]]) if len(kept) else rows

    trees = _trees(ensemble, inner, (column[which], threshold[which], swapped[which], missing[which]))
    found = assemble(
        trees,
        features=features + len(kept),
        base=ensemble.base,
        link=ensemble.link,
        steepness=ensemble.steepness,
        tolerance=ensemble.tolerance,
    )
    return found, inputs


def _thresholds(
    conditions: _Conditions, numbers: np.ndarray, background: Array
) -> tuple[np.ndarray, np.ndarray]:
    """Threshold and swap of the conditions on numbers; those of all columns are bisected together."""
    threshold, swapped = np.empty(len(numbers)), np.zeros(len(numbers), bool)
    open_, low, high, before = [], [], [], []
    for j in np.unique(conditions.feature[numbers]):
        own = np.flatnonzero(conditions.feature[numbers] == j)
        grid, left = _grid(conditions, numbers[own], j, background[:, j])
        changes = left[1:] != left[:-1]  # (grid - 1, conditions)
        if (changes.sum(axis=0) > 1).any():
            name = conditions.predictor.schema.names[j]
            raise Unsupported(f"a condition on the column {name!r} holds in several intervals of it.")
        threshold[own] = np.where(left[0], np.inf, -np.inf)
        some = np.flatnonzero(changes.any(axis=0))
        at = changes[:, some].argmax(axis=0)
        swapped[own[some]] = ~left[0, some]
        open_.append(own[some])
        low.append(grid[at])
        high.append(grid[at + 1])
        before.append(left[at, some])
    if open_:
        which = np.concatenate(open_)
        ends = (np.concatenate(parts) for parts in (low, high, before))
        threshold[which] = _bisected(conditions, numbers[which], *ends)
    return threshold, swapped


def _grid(conditions: _Conditions, own: np.ndarray, feature: int, values: Array) -> tuple[Array, np.ndarray]:
    """Increasing raw values, and whether conditions hold there, (grid, conditions)."""
    known = np.unique(values[np.isfinite(values)])
    known = known if len(known) else np.zeros(1)
    known = known[np.unique(np.linspace(0, len(known) - 1, GRID).astype(int))]
    grid, left = known, conditions.of_points(own, feature, known)
    for ends in beyond(known):
        for side, point in enumerate(ends):
            row = conditions.base[None].copy()
            row[0, feature] = point
            try:
                seen = conditions.seen(row)[:, conditions.column[own]]
            except Exception:  # outside what the transformer takes
                continue
            if np.isnan(seen).any():
                continue
            there = conditions.goes_left(own, seen)
            grid = np.insert(grid, len(grid) * side, point)
            left = np.concatenate([left, there] if side else [there, left])
    return grid, left


def _bisected(conditions: _Conditions, which: np.ndarray, low: Array, high: Array, left: np.ndarray) -> Array:
    """The last raw numbers at which conditions are what they are at `low`."""
    low, high = low.copy(), high.copy()
    guess = _by_straight_line(conditions, which, low, high)
    for try_at in (guess - NEAR * np.abs(guess), guess + NEAR * np.abs(guess)):
        inside = (try_at > low) & (try_at < high)
        same = np.zeros(len(which), bool)
        if inside.any():
            same[inside] = conditions.of_values(which[inside], try_at[inside]) == left[inside]
        low, high = np.where(inside & same, try_at, low), np.where(inside & ~same, try_at, high)
    while True:
        middle = _from_order((_order(low) >> 1) + (_order(high) >> 1) + (_order(low) & _order(high) & 1))
        open_ = np.flatnonzero((middle > low) & (middle < high))
        if not len(open_):
            return low
        same = conditions.of_values(which[open_], middle[open_]) == left[open_]
        low[open_] = np.where(same, middle[open_], low[open_])
        high[open_] = np.where(same, high[open_], middle[open_])


def _by_straight_line(conditions: _Conditions, which: np.ndarray, low: Array, high: Array) -> Array:
    """Where a straight line between two values meets the thresholds; exact but for round-off if T is affine."""
    rows = np.repeat(conditions.base[None], 2 * len(which), axis=0)
    at = np.arange(len(which))
    rows[at, conditions.feature[which]] = low
    rows[at + len(which), conditions.feature[which]] = high
    seen = conditions.seen(rows)[np.arange(len(rows)), np.tile(conditions.column[which], 2)]
    first, last = seen[: len(which)], seen[len(which) :]
    with np.errstate(all="ignore"):
        share = (conditions.threshold[which] - first) / (last - first)
    return np.nan_to_num(low + share * (high - low), nan=0.0)


def _order(x: Array) -> np.ndarray:
    """Whole numbers in the order of floats."""
    bits = np.ascontiguousarray(x, dtype=np.float64).view(np.int64)
    return np.where(bits < 0, np.int64(-(2**63)) - bits, bits)


def _from_order(order: np.ndarray) -> Array:
    bits = np.where(order < 0, np.int64(-(2**63)) - order, order)
    return bits.view(np.float64)


def _trees(
    ensemble: TreeEnsemble,
    inner: np.ndarray,
    conditions: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray],
) -> list[Tree]:
    """The ensemble's trees with other conditions at their inner nodes."""
    nodes = len(ensemble.kind)
    column, threshold, swapped, missing = conditions
    full: dict[str, np.ndarray] = {
        "column": np.zeros(nodes, int),
        "threshold": np.zeros(nodes),
        "missing": np.zeros(nodes, bool),
    }
    full["column"][inner], full["threshold"][inner], full["missing"][inner] = column, threshold, missing
    left, right = np.full(nodes, -1), np.full(nodes, -1)
    first, second = inner + 1, ensemble.right[inner].astype(int)
    left[inner], right[inner] = np.where(swapped, second, first), np.where(swapped, first, second)
    value = np.zeros((nodes, ensemble.value.shape[1]))
    leaves = np.flatnonzero(ensemble.kind & LEAF != 0)
    value[leaves] = ensemble.value[ensemble.right[leaves].astype(int)]
    starts = ensemble.roots.astype(int)
    ends = [*starts[1:], nodes]
    return [
        Tree(
            np.where(left[a:b] < 0, -1, left[a:b] - a),
            np.where(right[a:b] < 0, -1, right[a:b] - a),
            full["column"][a:b],
            full["threshold"][a:b],
            full["missing"][a:b],
            value[a:b],
            int(output),
        )
        for a, b, output in zip(starts, ends, ensemble.output, strict=True)
    ]
