"""The order of nodes against a plain recursive walk."""

import numpy as np
import pytest

pytest.importorskip("numba")

from oracles_trees import random_tree

from texplainer.gradients.trees.ensemble import LEAF, assemble, subtree_ends


def walked(tree):
    """(old node, lower, upper, clamped threshold, size) in preorder, one node after the other."""
    rows = []

    def visit(node, box):
        at = len(rows)
        rows.append(None)
        if tree.left[node] < 0:
            rows[at] = (node, -np.inf, np.inf, 0.0, 1)
            return at
        column = int(tree.column[node])
        low, high = box.get(column, (-np.inf, np.inf))
        threshold = min(max(tree.threshold[node], low), high)
        visit(tree.left[node], {**box, column: (low, threshold)})
        visit(tree.right[node], {**box, column: (threshold, high)})
        rows[at] = (node, low, high, threshold, len(rows) - at)
        return at

    visit(0, {})
    return rows


@pytest.mark.parametrize("seed", range(20))
def test_preorder_bounds_and_subtrees(seed):
    rng = np.random.default_rng(seed)
    trees = [random_tree(rng, 3, 2, int(rng.integers(0, 8))) for _ in range(4)]
    ensemble = assemble(trees, features=3, base=np.zeros(2), link="identity")
    expected = [row for tree in trees for row in walked(tree)]
    leaf = (ensemble.kind & LEAF) != 0
    assert len(leaf) == len(expected)
    for name, position in (("lower", 1), ("upper", 2), ("threshold", 3)):
        np.testing.assert_array_equal(getattr(ensemble, name), [row[position] for row in expected])
    size = subtree_ends(ensemble.right, leaf, ensemble.roots) - np.arange(len(leaf))
    np.testing.assert_array_equal(size, [row[4] for row in expected])
