"""Trees of random shape, and rows with missing values for them."""

import numpy as np

from texplainer.gradients.trees.ensemble import Tree, assemble


def grown(rng, depth, features):
    left, right, column, threshold = [], [], [], []

    def grow(level):
        at = len(left)
        left.append(-1), right.append(-1), column.append(0), threshold.append(0.0)
        if level < depth and (level < 2 or rng.random() < 0.8):
            column[at], threshold[at] = rng.integers(features), rng.normal()
            left[at] = grow(level + 1)
            right[at] = grow(level + 1)
        return at

    grow(0)
    return left, right, column, threshold


def random_ensemble(rng, *, depth, features=6, trees=3, width=1, missing=True):
    """Trees of random shape, some columns again and again on a path."""
    found = []
    for _ in range(trees):
        left, right, column, threshold = grown(rng, depth, features)
        count = len(left)
        went = rng.random(count) < 0.5 if missing else np.zeros(count, bool)
        value = rng.normal(size=(count, width))
        arrays = (np.array(one) for one in (left, right, column, threshold))
        found.append(Tree(*arrays, went, value))
    return assemble(found, features=features, base=np.zeros(width), link="identity")


def random_rows(rng, count, features=6):
    rows = rng.normal(size=(count, features))
    return np.where(rng.random(rows.shape) < 0.1, np.nan, rows)
