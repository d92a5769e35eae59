"""Read scikit-learn's trees, forests and boosting.

Trees and forests round inputs to float32 and compare ``x <= t`` with a float64 threshold; histogram
boosting compares in float64. A forest's probability is the mean of its trees' class shares; of two
classes one is enough.
"""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from scipy.special import logit

from texplainer.errors import Unsupported
from texplainer.gradients.trees.ensemble import CategoryColumns, Tree, TreeEnsemble, assemble
from texplainer.gradients.trees.readers.lightgbm import set_bits

#: losses of the boosting models -> link
LINKS = {
    "log_loss": "logistic",
    "exponential": "logistic",
    "squared_error": "identity",
    "absolute_error": "identity",
    "huber": "identity",
    "quantile": "identity",
    "poisson": "exponential",
    "gamma": "exponential",
    "coxph": "identity",  # of scikit-survival, and the two below
    "squared": "exponential",
    "ipcwls": "exponential",
}


def load_forest(model: Any) -> TreeEnsemble:
    """Read a forest of trees, or one tree."""
    members = getattr(model, "estimators_", [model])
    trees = [plain_tree(member.tree_, leaf_outputs(member) / len(members)) for member in members]
    width = trees[0].value.shape[1]
    link = "identity"
    if hasattr(model, "classes_"):
        link = "share" if width == 1 and not isinstance(model.classes_, list) else "shares"
    return assemble(trees, features=model.n_features_in_, base=np.zeros(width), link=link, dtype=np.float32)


def load_survival(model: Any) -> TreeEnsemble:
    """Read a survival tree or forest of scikit-survival: it predicts the sum of the hazards at event times."""
    members = getattr(model, "estimators_", [model])
    trees = []
    for member in members:
        hazard = member.tree_.value[:, member.is_event_time_, 0].sum(axis=1)  # (nodes,)
        trees.append(plain_tree(member.tree_, hazard[:, None] / len(members)))
    return assemble(trees, features=model.n_features_in_, base=np.zeros(1), link="identity", dtype=np.float32)


def leaf_outputs(member: Any) -> np.ndarray:
    """(nodes, width): the mean of a regression; of each target's classes the shares, one of two."""
    value = member.tree_.value  # (nodes, targets, classes or 1)
    if not hasattr(member, "classes_"):
        return value[:, :, 0]
    counts = np.atleast_1d(member.tree_.n_classes)
    shares = [value[:, i, :count] for i, count in enumerate(counts)]
    shares = [share / share.sum(axis=1, keepdims=True) for share in shares]
    return np.hstack([share[:, 1:] if share.shape[1] == 2 else share for share in shares])


def plain_tree(tree: Any, value: np.ndarray, output: int = 0) -> Tree:
    """One tree of scikit-learn with other values at its nodes, (nodes, width)."""
    missing = getattr(tree, "missing_go_to_left", np.zeros(tree.node_count))
    sides, cover = (tree.children_left, tree.children_right), tree.weighted_n_node_samples
    return Tree(*sides, tree.feature, tree.threshold, missing, value, output, cover)


def load_boosting(model: Any) -> TreeEnsemble:
    """Read gradient boosting; its initial estimator must be a constant."""
    members = model.estimators_  # (iterations, outputs)
    outputs = members.shape[1]
    trees = [
        plain_tree(member.tree_, model.learning_rate * member.tree_.value[:, :, 0], output)
        for iteration in members
        for output, member in enumerate(iteration)
    ]
    return assemble(
        trees,
        features=model.n_features_in_,
        base=_first_guess(model, outputs),
        link="softmax" if outputs > 1 else LINKS.get(model.loss, "unknown"),
        steepness=2.0 if model.loss == "exponential" else 1.0,
        dtype=np.float32,
    )


def _first_guess(model: Any, outputs: int) -> np.ndarray:
    init = model.init_
    if isinstance(init, str):  # "zero"
        return np.zeros(outputs)
    if type(init).__name__ == "DummyRegressor":
        return np.asarray(init.constant_, dtype=np.float64).reshape(-1)
    if type(init).__name__ != "DummyClassifier":
        raise Unsupported(f"its initial estimator is a {type(init).__name__}, which is not a constant.")
    tiny = np.finfo(np.float32).eps
    prior = np.clip(init.class_prior_, tiny, 1 - tiny)
    if outputs > 1:
        return np.log(prior) - np.log(prior).mean() if _symmetric(model) else np.log(prior)
    return logit(prior[1:]) * (0.5 if model.loss == "exponential" else 1.0)


def _symmetric(model: Any) -> bool:
    """Whether the multiclass guess is centred, as newer releases of scikit-learn do."""
    return hasattr(model, "_loss") and hasattr(
        getattr(model._loss, "link", None), "symmetrize_raw_prediction"
    )


def load_histogram(model: Any) -> TreeEnsemble:
    """Read histogram boosting, from the predictors it keeps (private, as there is no public form)."""
    features = model.n_features_in_
    origin, levels = _columns(model, features)
    categories = CategoryColumns(features)
    trees = [
        _histogram_tree(member, output, origin, levels, categories)
        for iteration in model._predictors
        for output, member in enumerate(iteration)
    ]
    outputs = len(model._predictors[0])
    return assemble(
        trees,
        features=features,
        base=np.asarray(model._baseline_prediction, dtype=np.float64).reshape(-1),
        link="softmax" if outputs > 1 else LINKS.get(model.loss, "unknown"),
        categories=categories.known,
        codes=[(int(origin[rank]), own) for rank, own in levels.items()],
    )


def _columns(model: Any, features: int) -> tuple[np.ndarray, dict[int, dict[Any, float]]]:
    """Inside the model categorical columns come first, as ranks: original column and the code of every level.

    The places of levels in the model's order; numbers stay as they are.
    """
    mask = getattr(model, "is_categorical_", None)
    if mask is None:
        return np.arange(features), {}
    origin = np.concatenate([np.flatnonzero(mask), np.flatnonzero(~mask)])
    encoder = model._preprocessor.named_transformers_["encoder"]
    levels = (
        enumerate(own.tolist()) for own in encoder.categories_
    )  # a missing one is last, and has no code
    return origin, {
        rank: {v: float(v if isinstance(v, Real) else place) for place, v in own if v is not None and v == v}
        for rank, own in enumerate(levels)
    }


def _histogram_tree(
    member: Any,
    output: int,
    origin: np.ndarray,
    levels: dict[int, dict[Any, float]],
    categories: CategoryColumns,
) -> Tree:
    nodes = member.nodes
    leaf = nodes["is_leaf"].astype(bool)
    threshold, column = nodes["num_threshold"].astype(np.float64), origin[nodes["feature_idx"]]
    missing = nodes["missing_go_to_left"].astype(bool)
    for at in np.flatnonzero(nodes["is_categorical"].astype(bool) & ~leaf):
        known = list(levels[int(nodes["feature_idx"][at])].values())
        codes = set_bits(member.raw_left_cat_bitsets[nodes["bitset_idx"][at]])
        inside = [int(known[code]) for code in codes]
        column[at], threshold[at] = categories.column(int(column[at]), inside), 0.5
    left = np.where(leaf, -1, nodes["left"].astype(np.int64))
    right = np.where(leaf, -1, nodes["right"].astype(np.int64))
    return Tree(left, right, column, threshold, missing, nodes["value"][:, None], output, nodes["count"])
