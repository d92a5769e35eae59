"""Read models that add up tree ensembles of any kind: votes of regressors, stacks, one model a target.

The raw sums of the members must be their predictions: regressors without a link. A stack whose last step is linear
adds up its members' predictions, each times its coefficient.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from texplainer.errors import Unsupported
from texplainer.gradients.trees.ensemble import (
    LEAF,
    MISSING_LEFT,
    CategoryColumns,
    Tree,
    TreeEnsemble,
    assemble,
)

#: linear models that a stack may end in
LINEAR = (
    "LinearRegression",
    "Ridge",
    "RidgeCV",
    "Lasso",
    "LassoCV",
    "ElasticNet",
    "ElasticNetCV",
    "HuberRegressor",
)


def load_vote(model: Any) -> TreeEnsemble:
    """Read a weighted mean of regressors."""
    weights = (
        np.ones(len(model.estimators_)) if model.weights is None else np.asarray(model._weights_not_none)
    )
    return _weighted(_members(model), (weights / weights.sum())[:, None], np.zeros(1))


def load_stack(model: Any) -> TreeEnsemble:
    """Read regressors that a linear model adds up."""
    final = model.final_estimator_
    if type(final).__name__ not in LINEAR:
        raise Unsupported(
            f"its final estimator, a {type(final).__name__}, is not linear: it is not a sum of trees."
        )
    if model.passthrough:
        raise Unsupported("its final estimator sees the columns, too: it is not a sum of trees.")
    return _weighted(_members(model), np.ravel(final.coef_)[:, None], np.ravel(final.intercept_))


def load_targets(model: Any) -> TreeEnsemble:
    """Read one regressor for each target."""
    members = _members(model)
    return _weighted(members, np.eye(len(members)), np.zeros(len(members)))


def _members(model: Any) -> list[TreeEnsemble]:
    from texplainer.gradients.trees.readers.table import load

    members = [load(member) for member in model.estimators_]
    odd = next((one.link for one in members if one.link != "identity" or len(one.base) != 1), None)
    if odd is not None:
        raise Unsupported(
            f"a member does not predict its sum of trees, but {odd!r} of it: it is not a sum of trees."
        )
    if len({one.dtype for one in members}) > 1:
        raise Unsupported("its members compare their columns in floats of different width.")
    return members


def _weighted(members: list[TreeEnsemble], weights: np.ndarray, base: np.ndarray) -> TreeEnsemble:
    """The sum of ensembles; `weights` are (members, outputs)."""
    categories = CategoryColumns(members[0].features)
    trees = [
        tree
        for member, weight in zip(members, weights, strict=True)
        for tree in trees_of(member, categories, weight * member.steepness)
    ]
    base = base + sum(w * one.steepness * one.base for w, one in zip(weights, members, strict=True))
    return assemble(
        trees,
        features=members[0].features,
        base=base,
        link="identity",
        dtype=members[0].dtype,
        tolerance=max(one.tolerance for one in members),
        categories=categories.known,
        missing=_only_missing(members),
        missing_within=members[0].missing_within,
        codes=_same_codes(members),
    )


def _same_codes(members: list[TreeEnsemble]) -> tuple[tuple[int, dict[Any, float]], ...]:
    if any(one.codes != members[0].codes for one in members):
        raise Unsupported("its members were fitted on different categories.")
    return members[0].codes


def _only_missing(members: list[TreeEnsemble]) -> float:
    marks = {None if np.isnan(one.missing) else one.missing for one in members}
    if len(marks) > 1:
        raise Unsupported("its members take different numbers for a missing value.")
    mark = marks.pop()
    return np.nan if mark is None else mark


def trees_of(ensemble: TreeEnsemble, categories: CategoryColumns, weight: np.ndarray) -> list[Tree]:
    """An ensemble of one raw sum as trees again, their leaves times a weight per output."""
    column = ensemble.column.astype(int)
    for place, (feature, codes) in enumerate(ensemble.categories):
        column[ensemble.column == ensemble.features + place] = categories.column(feature, codes)
    nodes, leaf = len(column), ensemble.kind & LEAF != 0
    left = np.where(leaf, -1, np.arange(nodes) + 1)
    right = np.where(leaf, -1, ensemble.right.astype(int))
    value = np.zeros((nodes, len(weight)))
    value[leaf] = ensemble.value[ensemble.right[leaf].astype(int)] * weight
    missing = ensemble.kind & MISSING_LEFT != 0
    ends = [*ensemble.roots.astype(int)[1:], nodes]
    return [
        Tree(
            np.where(left[a:b] < 0, -1, left[a:b] - a),
            np.where(right[a:b] < 0, -1, right[a:b] - a),
            column[a:b],
            ensemble.threshold[a:b],
            missing[a:b],
            value[a:b],
            0,
            None if ensemble.cover is None else ensemble.cover[a:b],
        )
        for a, b in zip(ensemble.roots.astype(int), ends, strict=True)
    ]
