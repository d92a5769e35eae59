"""Tree ensembles: exact slopes from their thresholds, and exact replacements of cells.

`read` compares the arrays with the model's own predictions, so whatever a loader may have misread is found out
before the first explanation. Behind column-wise transformers the trees are folded onto the raw columns. A tree
ensemble that cannot be read is explained as a black box, with a warning (without one where categories or the
transformers before it are the reason).

Slopes are exact: the mean of f over moves of one feature, from the thresholds in reach. The compiled walk
(`kernels/moves`) gives the change of the raw sums; a linear link carries it to the outputs. On a scale on which the
model is not a sum of trees, slopes are taken from its predictions, at more nodes than those of other models.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np

from texplainer.background.summary import ranges_without_codes
from texplainer.errors import EngineWarning, Unsupported
from texplainer.gradients.engine import Engine, Gradient, Settings
from texplainer.gradients.machine_code import in_threads
from texplainer.gradients.maps import LINKS, Map, affine, compose, constant_slope
from texplainer.gradients.moves import Moves, averaged_differences, moves_of
from texplainer.gradients.trees.ensemble import LARGEST, LEAF, TreeEnsemble, compared, raw_sums, unrounded
from texplainer.gradients.trees.fold import fold
from texplainer.gradients.trees.inputs import inputs_of, owners_of
from texplainer.gradients.trees.kernels.moves import MovedTrees, add_moves
from texplainer.gradients.trees.readers.table import cells_of, find, load, not_a_sum, split_pipeline
from texplainer.gradients.trees.replacements import Replacements, replacements_of
from texplainer.limits import CELLS
from texplainer.models.predictor import Predictor
from texplainer.types import Array

NODES = 16  # on a side, where the model is not a sum of trees
CHECK_ROWS = 256
BLOCK = 2048  # rows that pass a tree together: the longer, the better its branches are predicted
SHARE = 1024  # rows that a thread takes at least: shorter blocks cost more processor time
ROUNDINGS = 4.0  # error bound in units of round-off, for each tree
SATURATED = 20.0  # beyond it log-odds taken from a probability have lost their digits
CLASSES = ("logistic", "sigmoid", "softmax")  # links whose log-odds are not the raw sums themselves


def build(predictor: Predictor, background: Array, settings: Settings) -> Engine:
    """Read the trees and check them against the model."""
    transformers, final = split_pipeline(predictor.model)
    if find(final) is None:
        raise Unsupported("the model is not a tree ensemble.")
    reason = not_a_sum(final)
    if reason is not None:  # without a warning: there is nothing a user could change
        raise Unsupported(reason)
    if not settings.bandwidth > 0:
        raise Unsupported("smoothing=0 asks for the point gradient, which is 0 almost everywhere for trees.")
    try:
        model = read(predictor, background)
    except Unsupported as reason:
        # of trees behind transformers, or of encoded categories, there is nothing a user could mend
        if not transformers and not predictor.schema.levels:
            words = f"{reason} The trees are explained as a black box, from their predictions alone."
            warnings.warn(words, EngineWarning, stacklevel=2)
        raise
    link = constant_slope(model.after, len(model.ensemble.base))
    moves = moves_of(predictor, background, settings)
    if link is None or _moves_to_missing(model, moves, background):
        why = "differences of predictions, one feature at a time"
        gradient = averaged_differences(predictor, background, settings, NODES, steps=True)
    else:
        why = "exact slopes, from the thresholds of the trees"
        gradient = tree_slopes(model, moves, link)
    return Engine(
        "tree",
        why,
        gradient,
        averages=True,
        width=settings.bandwidth,
        owner=model.owner,
        replaced=_replaced(model),
    )


@dataclass(frozen=True)
class TreeModel:
    """Trees that take the table's own columns."""

    predictor: Predictor
    ensemble: TreeEnsemble
    after: Map  # raw sums -> all outputs on the explained scale
    inputs: Callable[[Array], Array]  # rows -> cells as the trees see them
    #: (inputs,) where transformers were folded into the thresholds: the raw column each input is made from
    owner: np.ndarray | None = None


def read(predictor: Predictor, background: Array) -> TreeModel:
    """Read a model's trees and check that they predict what the model predicts."""
    transformers, final = split_pipeline(predictor.model)
    ensemble, owner = load(final), None
    inputs: Callable[[Array], Array] = partial(cells_of, predictor.schema, codes=ensemble.codes)
    if transformers:
        owner = owners_of(partial(inputs_of, predictor, transformers), background, predictor)
        ensemble, inputs = fold(ensemble, predictor, background, owner)
    seen = ensemble.marked(inputs(background))
    if seen.shape[1] != ensemble.features:
        raise Unsupported(f"it was trained on {ensemble.features} features and the data has {seen.shape[1]}.")
    after = link(ensemble, predictor.scale, predictor.task)
    found = TreeModel(predictor, ensemble, after, lambda rows: ensemble.marked(inputs(rows)), owner)
    check(found, background)
    return found


def link(ensemble: TreeEnsemble, scale: str, task: str = "regression") -> Map:
    """Find the map from an ensemble's raw sums to all outputs on a scale."""
    if scale == "raw" and task != "regression":
        scale = "scores"
    if (ensemble.link, scale) not in LINKS:
        raise Unsupported(
            f"its objective's link is not known, so its {scale} cannot be differentiated (its raw scores can)."
        )
    chosen = LINKS[ensemble.link, scale]
    steepness = ensemble.steepness
    # the margin of a regression is its raw sums; a classifier's are its log-odds
    if steepness == 1.0 or scale == "scores" or (scale == "log-odds" and ensemble.link not in CLASSES):
        return chosen
    return compose(affine(steepness * np.eye(len(ensemble.base))), chosen)


def check(model: TreeModel, background: Array) -> None:
    """Compare the trees' own predictions with the model's on the explained scale."""
    sample = background[:: max(1, len(background) // CHECK_ROWS)][:CHECK_ROWS]
    predictor, ensemble = model.predictor, model.ensemble
    expected = predictor.everything(sample)
    found = model.after(raw_sums(ensemble, model.inputs(sample)))[0]
    if found.shape != expected.shape:
        raise Unsupported(f"its trees give {found.shape[1]} outputs and the model {expected.shape[1]}.")
    known = np.isfinite(expected)
    if predictor.scale == "log-odds" and ensemble.link in ("share", "shares"):
        known &= np.abs(expected) < SATURATED
    size = max(1.0, float(np.abs(expected[known]).max(initial=0.0)))
    gap = float(np.abs(found - expected)[known].max(initial=0.0)) / size
    if not gap <= ensemble.tolerance:
        raise Unsupported(
            f"the sum of its trees differs from the model's predictions by {gap:.1e} on {len(sample)} rows."
        )


# ---------------------------------------------------------------- their slopes


def _moves_to_missing(model: TreeModel, moves: Moves, background: Array) -> bool:
    """Whether moves to whole numbers reach the number that the model takes for a missing value.

    Among other numbers it has no weight in an average. The walk knows thresholds only.
    """
    mark = model.ensemble.missing
    if np.isnan(mark) or not moves.integers.any():
        return False
    low, high = ranges_without_codes(background.T[moves.integers])
    reach = moves.half[moves.integers] + 0.5
    return bool(((low - reach <= mark) & (mark <= high + reach)).any())


@dataclass(frozen=True)
class TreeSlopes:
    """Slopes of the explained outputs per unit of each feature."""

    model: TreeModel
    moves: Moves
    plan: MovedTrees
    link: Array  # (outputs, raw), the derivative of the link
    largest: Array  # (features, outputs), what all trees together can change by along a feature

    def __call__(self, rows: Array) -> Gradient:
        """Slopes, exact up to round-off."""
        reach = self.moves.reach(rows)
        unit = self.moves.width(rows, reach)[:, :, None]
        total = self.changes(rows, reach.up, reach.down) @ self.link.T
        safe = np.where(unit > 0, unit, np.inf)
        rounding = ROUNDINGS * 2.0**-53 * len(self.plan.roots) * self.largest / safe
        return Gradient(
            total / safe,
            rounding.astype(np.float32),
            np.full(rows.shape, np.nan),
            np.zeros(rows.shape, np.uint8),
            np.zeros(len(rows), dtype=np.int64),
        )

    def changes(self, rows: Array, up: Array, down: Array, threads: int | None = None) -> Array:
        """Mean change of the raw sums upwards minus that downwards, (rows, features, raw)."""
        inputs = self.model.inputs(rows)
        total = self._walked(inputs, up, down, threads)
        marked = np.isnan(inputs[:, : rows.shape[1]]) & ~np.isnan(rows) & ((up > 0) | (down > 0))
        row, column = np.nonzero(marked)
        size = max(1, CELLS // total[0].size)
        for first in range(0, len(row), size):
            cells = row[first : first + size], column[first : first + size]
            total[cells] = self._of_marked(rows, inputs, up, down, cells, threads)
        return total

    def _of_marked(
        self,
        rows: Array,
        inputs: Array,
        up: Array,
        down: Array,
        cells: tuple[np.ndarray, np.ndarray],
        threads: int | None,
    ) -> Array:
        """The changes of cells whose number stands for a missing value: it moves among the other numbers."""
        row, column = cells
        number, reach, own = inputs[row], np.zeros((2, len(row), rows.shape[1])), np.arange(len(row))
        number[own, column] = rows[cells]
        reach[:, own, column] = up[cells], down[cells]
        change = self._walked(number, reach[0], reach[1], threads)[own, column]
        for side, other, sign in ((up, down, 1.0), (down, up, -1.0)):  # with both sides f(x) itself cancels
            at = np.flatnonzero((side[cells] > 0) & (other[cells] == 0))
            missing, which = np.unique(row[at], return_inverse=True)
            here = raw_sums(self.model.ensemble, inputs[missing])[which]
            change[at] += sign * (raw_sums(self.model.ensemble, number[at]) - here)
        return change

    def _walked(self, inputs: Array, up: Array, down: Array, threads: int | None) -> Array:
        ensemble = self.model.ensemble
        cells = ensemble.widen(inputs)
        rounded = compared(ensemble, cells)  # the walk's thresholds are those of cells that are not rounded
        cells = np.where(np.abs(rounded) < LARGEST, cells, rounded)
        reach = np.zeros((2, *cells.shape))
        reach[:, :, : up.shape[1]] = up, down
        total = np.zeros((*cells.shape, len(ensemble.base)))

        def work(first: int, last: int) -> None:
            add_moves(self.plan, cells, reach[0], reach[1], total, first, last, BLOCK)

        in_threads(work, len(inputs), SHARE, threads)
        return total[:, : up.shape[1]]


def tree_slopes(model: TreeModel, moves: Moves, link: Array) -> TreeSlopes:
    """Prepare a model whose link has the constant slope `link` (all outputs, raw)."""
    link = link[list(model.predictor.outputs)]
    largest = largest_changes(model.ensemble)[: len(moves.half)] @ np.abs(link).T
    return TreeSlopes(model, moves, moved_trees(model.ensemble, moves.integers), link, largest)


def moved_trees(ensemble: TreeEnsemble, integers: np.ndarray) -> MovedTrees:
    """The walk's arrays; thresholds of columns of whole numbers lie in the middle between two of them."""
    bounds = [unrounded(ensemble, bound) for bound in (ensemble.threshold, ensemble.lower, ensemble.upper)]
    column = ensemble.column.astype(np.uint32)
    whole = ((ensemble.kind & LEAF) == 0) & np.isin(column, np.flatnonzero(integers))
    for bound in bounds:
        bound[whole] = np.floor(bound[whole]) + 0.5
    threshold, lower, upper = bounds
    return MovedTrees(
        ensemble.kind,
        column,
        threshold,
        lower,
        upper,
        ensemble.right.astype(np.uint32),
        ensemble.roots.astype(np.uint64),
        ensemble.output.astype(np.uint64),
        np.ascontiguousarray(ensemble.value),
        int(ensemble.depth),
    )


def largest_changes(ensemble: TreeEnsemble) -> Array:
    """What the trees can change by along a feature, at most, (features, raw): the ranges of their leaves."""
    leaf = (ensemble.kind & LEAF) != 0
    tree = np.repeat(
        np.arange(len(ensemble.roots)), np.diff(np.append(ensemble.roots, len(leaf)).astype(int))
    )
    width, outputs = ensemble.value.shape[1], ensemble.output.astype(int)
    first = np.flatnonzero(np.diff(tree[leaf], prepend=-1))
    span = np.maximum.reduceat(ensemble.value, first) - np.minimum.reduceat(ensemble.value, first)
    used = np.zeros((len(ensemble.roots), ensemble.columns), bool)
    used[tree[~leaf], ensemble.column[~leaf].astype(int)] = True
    found = np.zeros((ensemble.columns, len(ensemble.base)))
    for output in np.unique(outputs):
        here = outputs == output
        found[:, output : output + width] += used[here].T.astype(float) @ span[here]
    return found[: ensemble.features]


# ---------------------------------------------------------------- other values in place of cells


def _replaced(model: TreeModel) -> Any:
    """Other values in place of cells, prepared at the first asking.

    None where a last bit may take the other side of a threshold: behind transformers, and where the table is
    rounded and the model compares in float64; where the model has categories that the table calls numbers;
    and for log-odds of shares, which a last bit may move far.
    """
    predictor, ensemble = model.predictor, model.ensemble
    rounded = predictor.schema.narrow_floats and ensemble.dtype != np.float32
    coded = {feature for feature, _ in ensemble.categories} <= set(predictor.schema.levels)
    steep = predictor.scale == "log-odds" and ensemble.link in ("share", "shares")
    if model.owner is not None or rounded or steep or not coded:
        return None

    @cache
    def prepared() -> Replacements:
        return replacements_of(ensemble, model.inputs, model.after, list(predictor.outputs))

    return lambda *cells: prepared()(*cells)
