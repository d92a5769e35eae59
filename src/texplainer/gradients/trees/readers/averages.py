"""Read what averages trees: bagging and voting, and AdaBoost, which adds up their votes.

A mean of forests is a forest. Bagging may show each member some of the columns only; AdaBoost (SAMME) lets
each tree name a class, so that its leaves hold votes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import repeat
from typing import Any

import numpy as np

from texplainer.errors import Unsupported
from texplainer.gradients.trees.ensemble import Tree, TreeEnsemble, assemble
from texplainer.gradients.trees.readers.sklearn import leaf_outputs, plain_tree


def load_average(model: Any) -> TreeEnsemble:
    """Read a mean of trees and forests, weighted or not."""
    if getattr(model, "voting", "soft") == "hard":
        raise Unsupported("it counts the votes of its members.")
    columns = np.arange(model.n_features_in_)
    trees = list(_trees(model, 1.0, columns, len(getattr(model, "classes_", ()))))
    width = trees[0].value.shape[1]
    link = "identity" if not hasattr(model, "classes_") else "share" if width == 1 else "shares"
    return assemble(trees, features=len(columns), base=np.zeros(width), link=link, dtype=np.float32)


def _trees(model: Any, weight: float, columns: np.ndarray, classes: int) -> Iterator[Tree]:
    """The trees of a model, their leaves times its weight; `columns` are those of the whole it is shown."""
    if hasattr(model, "tree_"):
        if classes and len(model.classes_) != classes:
            raise Unsupported(
                f"one of its trees saw only {len(model.classes_)} of {classes} classes in training."
            )
        yield _placed(plain_tree(model.tree_, weight * leaf_outputs(model)), columns)
        return
    members = model.estimators_
    weights = np.ones(len(members)) if getattr(model, "weights", None) is None else model._weights_not_none
    shown = getattr(model, "estimators_features_", repeat(slice(None)))
    for member, own, part in zip(members, weights / np.sum(weights), shown, strict=False):
        yield from _trees(member, weight * own, columns[part], classes)


def _placed(tree: Tree, columns: np.ndarray) -> Tree:
    """The tree with the columns of the whole; a leaf's is of no account."""
    return replace(tree, column=np.where(tree.left < 0, tree.column, columns[np.maximum(tree.column, 0)]))


def load_votes(model: Any) -> TreeEnsemble:
    """Read AdaBoost: a tree adds its weight to the class it names, and takes some from the others."""
    if getattr(model, "algorithm", "SAMME") == "SAMME.R":
        raise Unsupported("it adds up logarithms of probabilities (SAMME.R).")
    others, total = len(model.classes_) - 1, np.sum(model.estimator_weights_[: len(model.estimators_)])
    trees = []
    for member, weight in zip(model.estimators_, model.estimator_weights_, strict=False):
        named = member.classes_[member.tree_.value[:, 0, :].argmax(axis=1)]  # (nodes,)
        votes = np.where(named[:, None] == model.classes_, 1.0, -1.0 / others)  # (nodes, classes)
        value = 2 * votes[:, 1:] if others == 1 else votes
        trees.append(plain_tree(member.tree_, value * weight / total))
    return assemble(
        trees,
        features=model.n_features_in_,
        base=np.zeros(trees[0].value.shape[1]),
        link="logistic" if others == 1 else "softmax",
        steepness=1.0 / others,
        dtype=np.float32,
    )
