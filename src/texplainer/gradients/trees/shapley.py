"""Exact Shapley values of a tree model's raw columns, also behind transformers.

What is needed of the transformers is little: every column the trees see must be made from one raw column
(imputers, scalers, encoders, binning, column selection). Then a condition on it belongs to that raw column,
and the values follow from the transformed rows alone. Which column comes from which is found by changing one
raw column at a time, and proven on mixtures of background rows: a mixture must transform to the mixture.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from texplainer.errors import Unsupported
from texplainer.gradients.transformers import Map
from texplainer.gradients.trees.ensemble import LEAF, MISSING_LEFT, TreeEnsemble
from texplainer.gradients.trees.inputs import inputs_of, owners_by_row, owners_of, split_pipeline
from texplainer.gradients.trees.links import constant_slope, jacobian, link
from texplainer.gradients.trees.patterns import (
    PatternTables,
    columns_of,
    cover_expectation,
    cover_tables,
    pattern_tables,
)
from texplainer.gradients.trees.readers.table import find, load
from texplainer.models.predictor import Predictor
from texplainer.types import Array

CHECK_ROWS = 256
SATURATED = 20.0  # beyond it log-odds taken from a probability have lost their digits


@dataclass(frozen=True)
class TreeShapley:
    """Shapley values of the explained outputs against a background."""

    ensemble: TreeEnsemble
    inputs: Callable[[Array], Array]  # rows -> what the trees see
    owner: np.ndarray  # (inputs,) raw feature of each input; -1 where the background does not tell
    features: int
    after: Map  # raw sums -> all outputs
    outputs: list[int]  # those explained
    background: Array  # (background rows, inputs)
    probe: Callable[[Array, np.ndarray], np.ndarray]  # a row, inputs -> their features
    _tables: dict[tuple[bytes, bool], PatternTables] = field(default_factory=dict, repr=False, compare=False)

    def __call__(self, rows: Array) -> Array:
        """Shapley values, (rows, features, outputs)."""
        return self._computed(rows, False, PatternTables.__call__)

    def path_values(self, rows: Array) -> Array:
        """Path-dependent Shapley values, (rows, features, outputs)."""
        self._check_owners()
        return self._computed(rows, True, PatternTables.__call__)

    def pairs(self, rows: Array, path: bool = False) -> Array:
        """Shapley interaction values, (rows, features, features, outputs); of the path-dependent values too."""
        if path:
            self._check_owners()
        return self._computed(rows, path, PatternTables.pairs)

    def _check_owners(self) -> None:
        """Refuse inputs of an unknown feature where no background tells that they do not matter."""
        split = np.unique(self.ensemble.column[self.ensemble.kind & LEAF == 0].astype(np.int64))
        used = [c if c < len(self.owner) else self.ensemble.categories[c - len(self.owner)][0] for c in split]
        if (self.owner[used] < 0).any():
            raise Unsupported(
                "a column its trees see is constant in the background: it belongs to no feature."
            )

    def path_base(self) -> Array:
        """The mean prediction by the trees' own covers, (outputs,)."""
        return self.after(cover_expectation(self.ensemble)[None])[0][0, self.outputs]

    def _computed(self, rows: Array, covers: bool, compute: Callable[[PatternTables, Array], Array]) -> Array:
        """What the tables compute of rows, the raw sums last, as outputs."""
        inputs = self.inputs(rows)
        slope = jacobian(self.after, self.ensemble.base[None])[0, self.outputs]  # (outputs, raw sums)
        axes = (self.features,) * (1 if compute is PatternTables.__call__ else 2)
        values = np.empty((len(rows), *axes, len(slope)))
        unknown = np.flatnonzero(self.owner < 0)
        owners = np.repeat(self.owner[None], len(rows), axis=0)
        if len(unknown):
            constant = self.background[0, unknown]
            differs = (inputs[:, unknown] != constant) & ~(np.isnan(inputs[:, unknown]) & np.isnan(constant))
            for i in np.flatnonzero(differs.any(axis=1)):
                columns = unknown[differs[i]]
                owners[i, columns] = self.probe(rows[i], columns)
        for owner in np.unique(owners, axis=0):
            here = (owners == owner).all(axis=1)
            values[here] = compute(self._of(owner, covers), inputs[here]) @ slope.T
        return values

    def _of(self, owner: np.ndarray, covers: bool) -> PatternTables:
        """The tables for inputs of these features; where it is unknown any feature will do."""
        key = (owner.tobytes(), covers)
        if key not in self._tables:
            make = cover_tables if covers else partial(pattern_tables, background=self.background)
            self._tables[key] = make(self.ensemble, owner=np.maximum(owner, 0), features=self.features)
        return self._tables[key]


def tree_shapley(predictor: Predictor, background: Array) -> TreeShapley:
    """Prepare a model's Shapley values, or raise `Unsupported` with the reason."""
    transformers, final = split_pipeline(predictor.model)
    if find(final) is None:
        raise Unsupported("the model is not a tree ensemble.")
    ensemble = load(final)
    after = link(ensemble, predictor.scale, predictor.task)
    if constant_slope(after, len(ensemble.base)) is None:
        raise Unsupported(f"on the {predictor.scale} scale the model is not a sum of trees.")

    def inputs(rows: Array) -> Array:
        return ensemble.marked(inputs_of(predictor, transformers, rows))

    seen = inputs(background)
    if seen.shape[1] != ensemble.features:
        raise Unsupported(f"its trees were fitted on {ensemble.features} columns and see {seen.shape[1]}.")
    _check(predictor, ensemble, after, background, seen)
    owner = np.arange(ensemble.features)
    if transformers or predictor.schema.groups:
        owner = owners_of(inputs, background, predictor)
    return TreeShapley(
        ensemble,
        inputs,
        owner,
        background.shape[1],
        after,
        list(predictor.outputs),
        seen,
        partial(owners_by_row, inputs, background[0]),
    )


def raw_sums(ensemble: TreeEnsemble, inputs: Array) -> Array:
    """The ensemble's raw sums, (rows, raw outputs)."""
    cells = columns_of(ensemble, inputs)
    rows, trees = np.arange(len(inputs))[:, None], np.arange(len(ensemble.roots))
    node = np.repeat(ensemble.roots.astype(np.int64)[None], len(inputs), axis=0)  # (rows, trees)
    for _ in range(ensemble.depth):
        kind = ensemble.kind[node]
        x = cells[ensemble.column[node].astype(np.int64), rows]
        left = np.where(np.isnan(x), kind & MISSING_LEFT != 0, x <= ensemble.threshold[node])
        child = np.where(left, node + 1, ensemble.right[node].astype(np.int64))
        node = np.where(kind & LEAF != 0, node, child)
    found = ensemble.value[ensemble.right[node].astype(np.int64)]  # (rows, trees, width)
    raw = np.repeat(ensemble.base[None], len(inputs), axis=0)
    for tree in trees:
        first = int(ensemble.output[tree])
        raw[:, first : first + found.shape[2]] += found[:, tree]
    return raw


def _check(predictor: Predictor, ensemble: TreeEnsemble, after: Any, rows: Array, inputs: Array) -> None:
    """Compare the trees' predictions with the model's own."""
    some = slice(None, None, max(1, len(rows) // CHECK_ROWS))
    expected = predictor.everything(rows[some])
    found = after(raw_sums(ensemble, inputs[some]))[0]
    if found.shape != expected.shape:
        raise Unsupported(f"its trees give {found.shape[1]} outputs and the model {expected.shape[1]}.")
    known = np.isfinite(expected)
    size = max(1.0, float(np.abs(expected[known]).max(initial=0.0)))
    gap = float(np.abs(found - expected)[known].max(initial=0.0)) / size
    if not gap <= ensemble.tolerance:
        raise Unsupported(f"the trees as read miss the model's own predictions by {gap:.1e}.")
